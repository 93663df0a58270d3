/* What the tests of runs share. The clock is the test's: it moves by what is slept, and by a step with each look at it, as ticks
 * come. run.c is taken in whole for that. */
#ifndef TESTS_E2B_RUN_FIXTURE_H
#define TESTS_E2B_RUN_FIXTURE_H

#define clock_ms test_clock_ms
#include "../../plugins/e2b/run.c"

#include "life_fixture.h"

#define BEGUN "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n"
#define OUT(text) "{\"type\": \"stdout\", \"text\": \"" text "\", \"timestamp\": \"t\"}\n"
#define ENDED "{\"type\": \"end_of_execution\"}\n"
#define ALIVE "{\"type\": \"keepalive\"}\n"
#define EXECUTE "https://49999-" ID ".e2b.app/execute"
#define CONTEXTS "https://49999-" ID ".e2b.app/contexts"
#define HEALTH "https://49983-" ID ".e2b.app/health"
#define CLOSED             \
    "{\"sandboxId\":\"" ID \
    "\",\"message\":\"The sandbox is running but port is not open\",\"port\":49999,\"code\":502}"
#define GONE "{\"sandboxId\":\"" ID "\",\"message\":\"The sandbox was not found\",\"code\":502}"
#define MEBIBYTE ((size_t)1 << 20)

static long long now_ms, step_ms;

long long test_clock_ms(void)
{
    now_ms += step_ms;
    return now_ms;
}

static struct { /* what command_run() was called with, in place of command.c */
    size_t count;
    bool is_running, is_interrupted;
} commands;

int command_run(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                const struct sg_run *asked, struct sg_error *err)
{
    commands.count++;
    commands.is_running = sandbox->is_running;
    CU_ASSERT_STRING_EQUAL(asked->code, "ls");
    CU_ASSERT_EQUAL(e2b_interrupt(e2b, call, ID, err), 0);
    commands.is_interrupted = sandbox_is_interrupted(e2b, sandbox);
    return SG_E_CANCELLED;
}

static inline void slept(struct sg_call *call, void *context)
{
    (void)call;
    *(size_t *)context += 1;
    now_ms += 5000; /* more than any pause */
}

static size_t sleeps;

static inline void renew_call(struct fixture *f)
{
    next_call(f);
    f->call->on_sleep = slept;
    f->call->on_sleep_context = &sleeps;
}

static inline void begin(struct fixture *f)
{
    now_ms = 1000000;
    step_ms = 0;
    sleeps = 0;
    commands.count = 0;
    fixture_init(f);
    fixture_open(f);
    make(f, CREATED(ID));
    renew_call(f);
}

static inline int run_as(struct fixture *f, const char *language, const char *code,
                         int64_t timeout_ms)
{
    struct sg_run asked = {language, code, strlen(code), timeout_ms};
    return e2b_run(f->e2b, f->call, ID, &asked, call_error(f->call));
}

static inline int run_it(struct fixture *f)
{
    return run_as(f, NULL, "1", 60000);
}

static inline void answer(struct fixture *f, const char *lines)
{
    reply(f, 200, lines);
}

/* An answer in which so many ticks come after the lines. */
static inline void answer_ticks(struct fixture *f, const char *lines, size_t ticks)
{
    const char **pieces = host_table()->alloc(f->call, (ticks + 2) * sizeof *pieces);
    pieces[0] = lines;
    for (size_t i = 0; i < ticks; i++) {
        pieces[i + 1] = "";
    }
    call_reply(f->call, (struct fake_reply){.status = 200, .pieces = pieces});
}

static inline void expect_text(struct fixture *f, enum sg_out kind, const char *text)
{
    CU_ASSERT_STRING_EQUAL(call_text(f->call, kind), text);
}

#endif
