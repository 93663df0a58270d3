/* What the tests of shell commands share: streams of frames, and the killing of processes. */
#ifndef TESTS_E2B_COMMAND_FIXTURE_H
#define TESTS_E2B_COMMAND_FIXTURE_H

#include "envd_fixture.h"

static struct text answer; /* of the test that runs; cleared by it */

static inline void put_frame(char flags, const char *json)
{
    size_t len = strlen(json);
    const char head[5] = {flags, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len};
    text_put(&answer, head, sizeof head);
    text_puts(&answer, json);
}

#define START "{\"event\":{\"start\":{\"pid\":1234}}}"
#define STDOUT(base64) "{\"event\":{\"data\":{\"stdout\":\"" base64 "\"}}}"
#define STDERR(base64) "{\"event\":{\"data\":{\"stderr\":\"" base64 "\"}}}"
#define END(members) "{\"event\":{\"end\":{" members "}}}"
#define EXITED(code) \
    END("\"exitCode\":" code ",\"exited\":true,\"status\":\"exit status " code "\"")
#define FAILED(code, message) "{\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}}"

static inline void put_messages(const char *const *messages)
{
    answer.len = 0;
    for (; *messages != NULL; messages++) {
        put_frame(0, *messages);
    }
}

/* Frames, and the last one. */
#define FRAMES(last, ...)                                       \
    do {                                                        \
        put_messages((const char *const[]){__VA_ARGS__, NULL}); \
        put_frame(2, last);                                     \
    } while (0)

static inline void reply_answer(struct fixture *f, size_t piece_len)
{
    call_reply(f->call, (struct fake_reply){.status = 200,
                                            .body = answer.data,
                                            .body_len = answer.len,
                                            .piece_len = piece_len});
}

/* The connection breaks behind it. */
static inline void reply_broken(struct fixture *f)
{
    call_reply(f->call, (struct fake_reply){.status = 200,
                                            .body = answer.data,
                                            .body_len = answer.len,
                                            .code = SG_E_UNAVAILABLE,
                                            .message = "reset",
                                            .failed_at = SG_HTTP_CUT});
}

/* Something happens before it comes. */
static inline void reply_after(struct fixture *f, void (*before)(struct sg_call *, void *))
{
    call_reply(f->call, (struct fake_reply){.status = 200,
                                            .body = answer.data,
                                            .body_len = answer.len,
                                            .before = before,
                                            .context = f});
}

static inline int run_for(struct fixture *f, const char *command, size_t len, int64_t timeout_ms)
{
    struct sg_run run = {"bash", command, len, timeout_ms};
    return e2b_run(f->e2b, f->call, ID, &run, call_error(f->call));
}

static inline int run(struct fixture *f, const char *command)
{
    return run_for(f, command, strlen(command), 30000);
}

static inline void end(struct fixture *f)
{
    text_clear(&answer);
    fixture_free(f);
}

/* For a reply's `before`, whose context is the fixture. */
static inline void interrupt_now(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    (void)call;
    struct sg_call *other = call_new();
    CU_ASSERT_EQUAL(e2b_interrupt(f->e2b, other, ID, call_error(other)), 0);
    call_free(other);
}

#define KILL ENVD "/process.Process/SendSignal"
#define KILL_BODY "{\"process\":{\"pid\":1234},\"signal\":\"SIGNAL_SIGKILL\"}"

/* First of all below the process, then of itself. */
static inline void reply_kills(struct fixture *f)
{
    reply(f, 200, "");
    reply(f, 200, "{}");
}

static inline void expect_kill(struct fixture *f, size_t index)
{
    expect_request(f, index, "POST", ENVD "/process.Process/Start");
    CU_ASSERT_PTR_NOT_NULL(memmem(f->call->requests[index].body, f->call->requests[index].body_len,
                                  "tree=' 1234 '", 13));
    expect_header(f, index, "Connect-Timeout-Ms", "1200");
    expect_request(f, index + 1, "POST", KILL);
    CU_ASSERT_STRING_EQUAL(f->call->requests[index + 1].body, KILL_BODY);
    expect_header(f, index + 1, "Content-Type", "application/json");
}

#endif
