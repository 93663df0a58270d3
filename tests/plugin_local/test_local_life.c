/* How long boxes live, side by side and after one another, and that nothing of them or of their broker is left. */
#include "fixture.h"

#include "loop/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Code waits for the end in the one; the other would have ended before it. */
static void life_body(void)
{
    char brief[128], touched[128];
    CU_ASSERT_EQUAL(host_create(600000, brief, &e), 0);
    CU_ASSERT_EQUAL(host_create(600000, touched, &e), 0);
    CU_ASSERT_EQUAL(host_touch(touched, 1000, &e), 0);
    CU_ASSERT_EQUAL(host_touch(touched, 600000, &e), 0);
    CU_ASSERT_EQUAL(host_touch(brief, 1000, &e), 0);
    host_exec(brief, NULL, "import time\ntime.sleep(60)", 26, 60000, &o);
    CU_ASSERT_TRUE(o.code == SG_E_GONE || o.code == SG_E_GONE_BEFORE);
    EXPECT_PART(o.error.message,
                "local (box): the container was not used for its life and ended by itself");
    CU_ASSERT_EQUAL(host_touch(brief, 600000, &e), SG_E_GONE);
    EXPECT_TEXT(e.message, "local (box): the container no longer exists");
    host_exec(touched, NULL, "1", 1, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(host_destroy(touched, &e), 0);
}

static void an_untouched_box_ends_by_itself(void)
{
    without_box(NULL, life_body);
}

static void broker_killed_body(void)
{
    int64_t broker = host_broker_pid();
    CU_ASSERT_TRUE_FATAL(broker > 1);
    CU_ASSERT_EQUAL(kill((pid_t)broker, SIGKILL), 0);
    exec_for("import time\ntime.sleep(15)", 20000);
    CU_ASSERT_TRUE(o.code == SG_E_GONE || o.code == SG_E_GONE_BEFORE);
    EXPECT_PART(o.error.message, "local (box): the container was ended from outside");
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    CU_ASSERT_TRUE(host_broker_pid() != broker);
}

static void a_dead_broker_takes_its_boxes_along_and_is_replaced(void)
{
    with_box(broker_killed_body);
}

static void many_body(void)
{
    size_t fds = fds_open();
    for (int i = 0; i < 50; i++) {
        char handle[128];
        CU_ASSERT_EQUAL(host_create(600000, handle, &e), 0);
        if (i % 5 == 0) {
            host_exec(handle, NULL, "print(1)", 8, DEFAULT_TIMEOUT_MS, &o);
            EXPECT_TEXT(o.all.data, "[out]1\n");
        }
        CU_ASSERT_EQUAL(host_destroy(handle, &e), 0);
    }
    CU_ASSERT_EQUAL(fds_open(), fds);
    while (host_boxes(NULL, 0) > 0) { /* it reaps in its own time */
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
}

static void fifty_boxes_leave_no_process_and_no_descriptor(void)
{
    without_box(NULL, many_body);
}

/* Descriptors in flight are counted by the user of the host, whom boxes share where the gateway is no root: there none can
 * be sent, since senders that wait pass the limit all together. */
static void in_flight_body(void)
{
    char other[128];
    exec("import array, os, socket\n"
         "null, kept, sent = os.open('/dev/null', os.O_RDONLY), [], 0\n"
         "try:\n"
         "    while True:\n"
         "        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
         "        kept.append(pair)\n"
         "        for _ in range(8):\n"
         "            pair[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,\n"
         "                                      array.array('i', [null] * 253))])\n"
         "            sent += 253\n"
         "except OSError as e: print(e.errno, sent > 200)");
    EXPECT_TEXT(o.out.data, geteuid() == 0 ? "109 True\n" : "1 False\n"); /* ETOOMANYREFS, EPERM */
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0);
    EXPECT_TEXT(e.message, "");
    host_exec(other, NULL, "print(1)", 8, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.all.data, "[out]1\n");
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
}

static void descriptors_in_flight_in_one_box_hinder_no_other(void)
{
    with_box(in_flight_body);
}

struct at_once {
    char handle[128];
    struct outcome outcome;
    struct background *run;
};

static void at_once_body(void)
{
    static struct at_once boxes[8];
    for (int i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL_FATAL(host_create(600000, boxes[i].handle, &e), 0);
        boxes[i].run = host_exec_background(
            boxes[i].handle,
            "import os, time\nopen('/tmp/mine', 'x').close()\ntime.sleep(0.2)\n"
            "print(sorted(os.listdir('/tmp')), len([p for p in os.listdir('/proc') if "
            "p.isdigit()]))",
            20000, &boxes[i].outcome);
    }
    for (int i = 0; i < 8; i++) {
        host_finish(boxes[i].run);
        EXPECT_TEXT(boxes[i].outcome.all.data, "[out]['mine'] 2\n");
        CU_ASSERT_EQUAL(host_destroy(boxes[i].handle, &e), 0);
        outcome_clear(&boxes[i].outcome);
    }
}

static void boxes_run_side_by_side_and_see_nothing_of_each_other(void)
{
    without_box(NULL, at_once_body);
}

static void left_open_body(void)
{
    char handle[128];
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(host_create(600000, handle, &e), 0);
    }
}

static void closing_ends_boxes_and_broker(void)
{
    size_t fds = fds_open();
    without_box(NULL, left_open_body);
    CU_ASSERT_EQUAL(host_broker_pid(), -1);
    CU_ASSERT_EQUAL(fds_open(), fds);
}

static void gateway_fiber(void *arg)
{
    char handle[128];
    (void)arg;
    if (host_open(NULL, &e) != 0 || host_create(600000, handle, &e) != 0 ||
        host_create(600000, handle, &e) != 0) {
        _exit(1);
    }
    raise(SIGKILL);
}

/* All orphans become children of this process, so that their ends can be waited for. */
static void a_killed_gateway_leaves_no_process(void)
{
    int status = 0, orphans = 0;
    pid_t pid;
    CU_ASSERT_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t gateway = fork();
    CU_ASSERT_TRUE_FATAL(gateway >= 0);
    if (gateway == 0) {
        host_run(gateway_fiber, NULL);
    }
    CU_ASSERT_EQUAL(waitpid(gateway, &status, 0), gateway);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while ((pid = waitpid(-1, &status, 0)) > 0) {
        orphans++;
    }
    CU_ASSERT_EQUAL(orphans, 1); /* the broker alone: it has waited for its boxes */
    CU_ASSERT_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static const struct test tests[] = {
    TEST(an_untouched_box_ends_by_itself),
    TEST(a_dead_broker_takes_its_boxes_along_and_is_replaced),
    TEST(fifty_boxes_leave_no_process_and_no_descriptor),
    TEST(descriptors_in_flight_in_one_box_hinder_no_other),
    TEST(boxes_run_side_by_side_and_see_nothing_of_each_other),
    TEST(closing_ends_boxes_and_broker),
    TEST(a_killed_gateway_leaves_no_process),
};

int main(int argc, char **argv)
{
    return run_tests("local_life", tests, COUNT_OF(tests), argc, argv);
}
