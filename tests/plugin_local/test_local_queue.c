/* Asking for boxes where others ask too: how long one waits, for whom none is made any more, and what is said of a broker that
 * does not answer. The broker is stopped from outside, so that what is asked for lies in its queue. */
#include "fixture.h"

#include "loop/loop.h"
#include "patience.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SENT_MS 20 /* for an ask to be on its way */

/* ---- patience ---- */

static void patience_ends_with_a_silence_of_the_broker(void)
{
    bool silent = false;
    struct patience patience = patience_begin(7, 1000, false);
    CU_ASSERT_EQUAL(patience_look(&patience, 7, 1000, &silent), PATIENCE_SILENCE_MS);
    CU_ASSERT_EQUAL(patience_look(&patience, 7, 1000 + PATIENCE_SILENCE_MS - 1, &silent), 1);
    CU_ASSERT_EQUAL(patience_look(&patience, 7, 1000 + PATIENCE_SILENCE_MS, &silent), 0);
    CU_ASSERT_TRUE(silent);
}

static void who_is_alone_has_all_the_time(void)
{
    bool silent = true;
    struct patience patience = patience_begin(0, 1, true);
    CU_ASSERT_EQUAL(patience_look(&patience, 0, 1, &silent), PATIENCE_MOST_MS);
    CU_ASSERT_EQUAL(patience_look(&patience, 0, 1 + PATIENCE_MOST_MS, &silent), 0);
    CU_ASSERT_FALSE(silent);
}

static void answers_to_others_prolong_patience_up_to_its_end(void)
{
    bool silent = true;
    int64_t now = 5, begun = now;
    struct patience patience = patience_begin(0, now, false);
    for (uint64_t answers = 1; now < begun + PATIENCE_MOST_MS; answers++) {
        int64_t ms = patience_look(&patience, answers, now, &silent);
        CU_ASSERT_TRUE_FATAL(ms > 0);
        CU_ASSERT_TRUE(ms <= PATIENCE_SILENCE_MS && now + ms <= begun + PATIENCE_MOST_MS);
        now += ms;
    }
    CU_ASSERT_EQUAL(now, begun + PATIENCE_MOST_MS);
    CU_ASSERT_EQUAL(patience_look(&patience, 1000, now, &silent), 0);
    CU_ASSERT_FALSE(silent);
}

/* ---- a broker with much to do ---- */

static void left_body(void)
{
    pid_t broker = (pid_t)host_broker_pid();
    CU_ASSERT_EQUAL(kill(broker, SIGSTOP), 0);
    for (int i = 0; i < 5; i++) {
        host_create_abandon(SENT_MS);
    }
    CU_ASSERT_EQUAL(kill(broker, SIGCONT), 0);
    /* The only place would be taken by the first of them. */
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_TEXT(e.message, "");
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
}

static void who_has_left_gets_no_box(void)
{
    without_box(&(struct host_options){.boxes = 1}, left_body);
}

static void silent_body(void)
{
    pid_t broker = (pid_t)host_broker_pid();
    CU_ASSERT_EQUAL(kill(broker, SIGSTOP), 0);
    CU_ASSERT_EQUAL(host_create(600000, box, &e), SG_E_TIMEOUT);
    EXPECT_TEXT(e.message, "local (box): the broker gave no answer to anybody within 10s: the "
                           "machine is too busy, or the broker is stopped");
    CU_ASSERT_EQUAL(kill(broker, SIGCONT), 0);
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
}

static void a_broker_that_answers_nobody_is_told(void)
{
    without_box(NULL, silent_body);
}

/* In the place of the broker a program that says hello and then nothing. */
static const char mute[] =
    "#!/usr/bin/python3 -I\nimport os, socket, struct\n"
    "os.write(3, struct.pack('=IIII160s', 0x53424f58, 0, 0, 0, b''))\n"
    "broker, kept, ask = socket.socket(fileno=3), [], True\n"
    "while ask:\n"
    "    ask, fds, *_ = socket.recv_fds(broker, 4096, 4); kept.append(fds)\n";

/* And one that does not even say hello. */
static const char dumb[] = "#!/usr/bin/python3 -I\nimport socket\n"
                           "while socket.socket(fileno=3).recv(4096): pass\n";

static void expect_open_fails(const char *broker, const char *message)
{
    char folder[] = "/tmp/sandgate-local-queue-XXXXXX", path[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/local-broker", folder);
    FILE *file = fopen(path, "we");
    CU_ASSERT_TRUE_FATAL(file != NULL && fputs(broker, file) >= 0 &&
                         fchmod(fileno(file), 0755) == 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
    struct host_options options = {.libexec = folder};
    host_run(open_fiber, &options);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_TEXT(e.message, message);
    CU_ASSERT_TRUE(remove(path) == 0 && remove(folder) == 0);
}

static void a_broker_that_never_makes_a_box_is_told_when_it_opens(void)
{
    expect_open_fails(mute,
                      "local (box): no box could be made within 30s: the machine is too busy");
}

static void a_broker_that_never_says_hello_is_told_when_it_opens(void)
{
    expect_open_fails(dumb,
                      "local (box): the broker did not start within 20s: the machine is too busy");
}

static const struct test tests[] = {
    TEST(patience_ends_with_a_silence_of_the_broker),
    TEST(who_is_alone_has_all_the_time),
    TEST(answers_to_others_prolong_patience_up_to_its_end),
    TEST(who_has_left_gets_no_box),
    TEST(a_broker_that_answers_nobody_is_told),
    TEST(a_broker_that_never_makes_a_box_is_told_when_it_opens),
    TEST(a_broker_that_never_says_hello_is_told_when_it_opens),
};

int main(int argc, char **argv)
{
    return run_tests("local_queue", tests, COUNT_OF(tests), argc, argv);
}
