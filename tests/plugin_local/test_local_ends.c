/* How runs and boxes end: by their time, by their limits, by force, by accident. Each test looks at the code, at the
 * message that the model is told, and at what is left: the session, another one, processes, descriptors. */
#include "ends.h"

#include "loop/loop.h"

#include <signal.h>
#include <time.h>

/* ---- the interpreter ends ---- */

static void exits_body(void)
{
    exec("import os\nprint('last words')\nos._exit(3)");
    EXPECT_TEXT(o.out.data, "last words\n");
    expect_end(SG_E_GONE, "local (box): the interpreter exited with status 3; variables and files "
                          "are gone");
    expect_gone();
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    box_again();
    exec("import ctypes\nprint('so far')\nctypes.string_at(0)");
    EXPECT_TEXT(o.out.data, "so far\n");
    expect_end(SG_E_GONE, "local (box): the interpreter crashed with SIGSEGV; variables and files "
                          "are gone");
    box_again();
    exec("import os\nos.abort()");
    expect_end(SG_E_GONE, "local (box): the interpreter crashed with SIGABRT; variables and files "
                          "are gone");
    box_again();
    exec("import os, signal, subprocess\nsubprocess.run(['kill', '-9', str(os.getpid())])");
    expect_end(SG_E_GONE, "local (box): the interpreter crashed with SIGKILL; variables and files "
                          "are gone");
    box_again();
}

static void exit_and_crash_are_told_apart(void)
{
    with_box(exits_body);
}

/* The interpreter's connection takes packets; descriptors in them would be closed by the gateway. */
static void passed_descriptors_body(void)
{
    if (geteuid() !=
        0) { /* the call itself is refused then: see below "in flight" in test_local_life.c */
        EXPECT_RUN("import socket\ns = socket.socket(fileno=3)\ntry: s.sendmsg([b'x'])\n"
                   "except OSError as e: print(e.errno)\n_ = s.detach()",
                   "[out]1\n");
        return;
    }
    exec("import array, socket\n"
         "s = socket.socket(fileno=3)\n"
         "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])\n"
         "import time; time.sleep(10)");
    expect_end(SG_E_GONE, "local (box): the code passed descriptors over the interpreter's own "
                          "connection and was killed; variables and files are gone");
    box_again();
    expect_alive();
}

static void passing_descriptors_to_the_gateway_ends_the_box(void)
{
    with_box(passed_descriptors_body);
}

/* ---- time ---- */

static void timeout_body(void)
{
    exec_for("kept = 5\nprint('begun')\nwhile True: pass", 1000);
    if (too_busy()) {
        return;
    }
    EXPECT_TEXT(o.out.data, "begun\n");
    EXPECT_PART(o.exception.data, "{\"name\":\"KeyboardInterrupt\"");
    expect_end(SG_E_TIMEOUT,
               "local (box): the code ran longer than 1s and was interrupted; variables are kept");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"5\"}");
    EXPECT_RUN("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]);", "");
    static const char *const endless[] = {
        "import time\ntime.sleep(30)", "import asyncio\nawait asyncio.sleep(30)",
        "import subprocess\nsubprocess.run(['sleep', '30'])", "while True: print('x' * 100)"};
    for (size_t i = 0; i < COUNT_OF(endless); i++) {
        exec_for(endless[i], 300);
        if (too_busy()) {
            return;
        }
        bool prints = i + 1 == COUNT_OF(endless);
        CU_ASSERT_TRUE(o.code == SG_E_TIMEOUT || (prints && o.code == SG_E_LIMIT));
    }
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"5\"}");
}

static void code_over_its_time_is_interrupted_and_variables_are_kept(void)
{
    with_calm_box(timeout_body);
}

static void deaf_body(void)
{
    static const char killed[] =
        "local (box): the code ran longer than 1s, did not react to the interrupt and was killed; "
        "variables and files are gone";
    exec_for("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf')\n"
             "while True: pass",
             1000);
    EXPECT_TEXT(o.out.data, "deaf\n");
    expect_end(SG_E_GONE, killed);
    expect_gone();
    box_again();
    exec_for("import time\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n"
             "    except BaseException: pass",
             1000);
    expect_end(SG_E_GONE, killed);
    box_again();
    exec_for("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", 1000);
    expect_end(SG_E_GONE, killed);
    box_again();
}

static void code_that_does_not_react_is_killed(void)
{
    with_box(deaf_body);
}

static void flood_body(void)
{
    exec_for("import os\nblock = b'x' * 65536\nwhile True: os.write(1, block)", 300000);
    CU_ASSERT_EQUAL(o.out.len, MIB_BYTES);
    EXPECT_PART(o.err.data, "[output cut: the first 1048576 of ");
    expect_end(SG_E_LIMIT,
               "local (box): the code printed more than 64MiB and was interrupted; variables are "
               "kept");
    expect_alive();
    exec_for("import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
             "while True: os.write(2, b'x' * 65536)",
             300000);
    CU_ASSERT_EQUAL(o.err.len > MIB_BYTES, true);
    expect_end(SG_E_GONE, "local (box): the code printed more than 64MiB, did not react to the "
                          "interrupt and was killed; variables and files are gone");
    box_again();
    /* Packets without text are no less of a flood, though nothing of it is shown. */
    exec_for("import os, socket, time\n"
             "ends = [int(f) for f in os.listdir('/proc/self/fd')\n"
             "        if os.path.exists('/proc/self/fd/' + f) and\n"
             "        os.readlink('/proc/self/fd/' + f).startswith('socket:')]\n"
             "end = socket.socket(fileno=os.dup(ends[0]))\n"
             "try:\n"
             "    while True:\n"
             "        try: end.send(bytes(1000))\n"
             "        except BlockingIOError: time.sleep(0.0001)\n"
             "except KeyboardInterrupt: pass",
             300000);
    EXPECT_TEXT(o.all.data, "[status]{\"state\":\"output\"}");
    expect_end(SG_E_LIMIT,
               "local (box): the code printed more than 64MiB and was interrupted; variables are "
               "kept");
    expect_alive();
}

static void a_flood_of_output_is_dropped_and_stopped(void)
{
    with_box(flood_body);
}

/* ---- from outside ---- */

static void await_output(const struct outcome *running)
{
    while (running->out.len == 0) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
}

static void interrupt_body(void)
{
    struct outcome running = {0};
    struct background *run =
        host_exec_background(box, "kept = 1\nprint('on')\nwhile True: pass", 60000, &running);
    await_output(&running);
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0);
    host_finish(run);
    CU_ASSERT_EQUAL(running.code, 0);
    EXPECT_PART(running.exception.data, "{\"name\":\"KeyboardInterrupt\"");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"1\"}");
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0); /* of nothing */
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"1\"}");
    outcome_clear(&running);
    run = host_exec_background(box,
                               "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                               "print('on')\nwhile True: pass",
                               60000, &running);
    await_output(&running);
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0);
    host_finish(run);
    CU_ASSERT_EQUAL(running.code, SG_E_GONE);
    EXPECT_TEXT(running.error.message,
                "local (box): the code did not react to the interrupt and was "
                "killed; variables and files are gone");
    outcome_clear(&running);
    CU_ASSERT_EQUAL(host_interrupt(box, &e), SG_E_GONE);
    EXPECT_TEXT(e.message, "local (box): the container no longer exists");
    box_again();
}

static void interrupting_ends_the_run_and_keeps_the_box_if_it_can(void)
{
    with_box(interrupt_body);
}

/* Whose time is over before the interpreter has even taken it: that does not cost the session. */
static void early_body(void)
{
    static const char *const runs[][2] = {{"python", "while True: pass"},
                                          {"bash", "while :; do :; done"}};
    EXPECT_RUN("kept = 5", "");
    host_exec(box, "bash", "kept=6", 6, DEFAULT_TIMEOUT_MS, &o);
    for (int round = 0; round < 40; round++) {
        const char *const *run = runs[round % 2];
        host_exec(box, run[0], run[1], strlen(run[1]), 1, &o);
        if (too_busy()) {
            return;
        }
        CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    }
    EXPECT_RUN("print(kept)", "[out]5\n");
    host_exec(box, "bash", "echo $kept", 10, DEFAULT_TIMEOUT_MS, &o);
    if (!too_busy()) {
        EXPECT_TEXT(o.out.data, "6\n");
    }
}

static void an_interrupt_that_comes_before_its_run_has_begun_is_not_lost(void)
{
    with_calm_box(early_body);
}

/* Code that ends by itself about when it is interrupted. */
static void edge_body(void)
{
    static const char *const cells[] = {
        "import time; time.sleep(0.02)",
        "import time; until = time.monotonic() + 0.02\nwhile time.monotonic() < until: pass",
        "import asyncio; await asyncio.sleep(0.02)"};
    int stopped = 0, ended = 0;
    EXPECT_RUN("kept = 5", "");
    for (int round = 0; round < 60; round++) {
        exec_for(cells[round % 3], 10 + round / 3);
        if (too_busy()) {
            return;
        }
        stopped += o.code == SG_E_TIMEOUT;
        ended += o.code == 0;
        EXPECT_RUN("print(kept)", "[out]5\n");
    }
    CU_ASSERT_EQUAL(stopped + ended, 60);
    CU_ASSERT_TRUE(stopped > 0);
}

/* The alarm that code sets for itself, and does not come to take back, is nobody's once the cell has ended. */
static void late_alarm_body(void)
{
    exec("import signal, time\nkept = 5\ndef late(*_): raise TimeoutError('too long')\n"
         "signal.signal(signal.SIGALRM, late)\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\n1 / 0");
    CU_ASSERT_TRUE(strstr(o.exception.data, "ZeroDivisionError") != NULL ||
                   strstr(o.exception.data, "TimeoutError") != NULL); /* as soon as that */
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"5\"}");
    exec("signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)");
    EXPECT_PART(o.exception.data, "{\"name\":\"TimeoutError\",\"value\":\"too long\"");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"5\"}");
}

static void an_alarm_of_the_codes_own_does_not_end_the_interpreter_between_cells(void)
{
    with_calm_box(late_alarm_body);
}

static void an_interrupt_belongs_to_its_run_or_to_none(void)
{
    with_calm_box(edge_body);
}

static void destroy_body(void)
{
    struct outcome running = {0};
    struct background *run =
        host_exec_background(box, "print('on')\nwhile True: pass", 60000, &running);
    await_output(&running);
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    host_finish(run);
    CU_ASSERT_EQUAL(running.code, SG_E_GONE);
    EXPECT_TEXT(running.error.message,
                "local (box): the container was deleted while code ran in it");
    outcome_clear(&running);
    expect_gone();
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    CU_ASSERT_EQUAL(host_destroy("box-1-0", &e), 0);
    CU_ASSERT_EQUAL(host_touch(box, 1000, &e), SG_E_GONE);
    EXPECT_TEXT(e.message, "local (box): the container no longer exists");
    box_again();
}

static void destroying_ends_a_run_at_once(void)
{
    with_box(destroy_body);
}

static void abandon_body(void)
{
    exec("kept = 3");
    host_exec_abandon(box, "print('on')\nwhile True: pass", "on");
    EXPECT_RUN("kept", "[result]{\"text/plain\":\"3\"}");
    host_exec_abandon(box,
                      "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('on')\n"
                      "while True: pass",
                      "on");
    exec("kept");
    expect_end(SG_E_GONE_BEFORE,
               "local (box): the code of an earlier run did not stop and was killed");
    expect_gone();
    box_again();
}

static void what_a_left_run_started_is_stopped_before_the_next(void)
{
    with_box(abandon_body);
}

static void background_body(void)
{
    EXPECT_RUN("import threading, time, subprocess\n"
               "def chatter():\n    while True:\n        print('noise'); time.sleep(0.001)\n"
               "threading.Thread(target=chatter, daemon=True).start()\n"
               "p = subprocess.Popen(['sh', '-c', 'while :; do echo noise; sleep 0.01; done'])\n"
               "None",
               o.all.data);
    exec("import sys\nsys.stdout.write('mine\\n')\nNone");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.out.data, "mine\n");
    EXPECT_RUN("p.poll()", o.all.data);
}

static void what_a_cell_left_running_does_not_stop_later_ones(void)
{
    with_box(background_body);
}

/* ---- limits ---- */

static void disk_body(void)
{
    exec("try:\n    open('big', 'wb').write(bytes(40 << 20))\nexcept OSError as e: print(e.errno)");
    EXPECT_PART("28\n27\n", o.out.data); /* no space, or over the size of a file */
    /* Python itself drops what it cannot write of a file that nobody closes. */
    EXPECT_RUN(
        "import os\nwith open('/tmp/rest', 'wb', 0) as rest:\n    try:\n"
        "        while rest.write(bytes(1 << 20)): pass\n    except OSError as e: print(e.errno)\n"
        "open('unclosed', 'w').write('text')\nprint(os.stat('unclosed').st_size)\n"
        "try:\n    with open('closed', 'w') as f: f.write('text')\n"
        "except OSError as e: print(e.errno)\nos.remove('/tmp/rest')",
        "[out]28\n0\n28\n");
    exec("import os, shutil\nos.remove('big')\nn = 0\ntry:\n"
         "    while True: open(f'/tmp/{n}', 'w').close(); n += 1\n"
         "except OSError as e: print(e.errno, n < 500)");
    EXPECT_TEXT(o.out.data, "28 True\n");
    expect_alive();
}

static void disk_and_number_of_files_are_limited(void)
{
    struct host_options options = small;
    options.inodes = 400;
    with_options(&options, disk_body);
}

static void fork_bomb_body(void)
{
    exec_for("import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0: "
             "time.sleep(30)\n        n += 1\nexcept BlockingIOError as e: print(e.errno, n <= 16)",
             10000);
    EXPECT_TEXT(o.out.data, "11 True\n");
    char other[128];
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0);
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
    exec_for("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", 1000);
    CU_ASSERT_TRUE(o.code == SG_E_TIMEOUT || o.code == SG_E_GONE);
    if (o.code == SG_E_GONE) {
        box_again();
    }
}

static void a_fork_bomb_stays_in_its_box(void)
{
    struct host_options options = small;
    options.processes = 16;
    with_options(&options, fork_bomb_body);
}

static void full_body(void)
{
    char first[128], second[128];
    CU_ASSERT_EQUAL(host_create(600000, first, &e), 0);
    CU_ASSERT_EQUAL(host_create(600000, second, &e), SG_E_LIMIT);
    EXPECT_TEXT(e.message, "local (box): all 1 boxes are in use; raise 'boxes'");
    CU_ASSERT_EQUAL(host_destroy(first, &e), 0);
    CU_ASSERT_EQUAL(host_create(600000, second, &e), 0);
    CU_ASSERT_EQUAL(host_destroy(second, &e), 0);
}

static void one_box_too_many_is_refused_until_another_ends(void)
{
    without_box(&(struct host_options){.boxes = 1}, full_body);
}

/* ---- a busy machine ---- */

/* Pid 1 goes on only after that time. */
static void await_late_word(struct background *run, pid_t first, int64_t late_us)
{
    int64_t until_us = clock_us() + late_us;
    while (!host_has_ended(run) && clock_us() < until_us) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    CU_ASSERT_EQUAL(kill(first, SIGCONT), 0);
    host_finish(run);
}

static void unheard_body(void)
{
    pid_t first = 0;
    exec("1");
    CU_ASSERT_TRUE_FATAL(host_await_boxes(1, &first));
    CU_ASSERT_EQUAL(kill(first, SIGSTOP), 0);
    struct background *run = host_exec_background(box, "import os; os.abort()", 20000, &o);
    await_late_word(run, first, 1500000); /* more than what code has to react to an interrupt */
    CU_ASSERT_EQUAL(o.code, SG_E_GONE);
    EXPECT_PART(o.error.message, "crashed with SIGABRT");
}

/* Kills a process's only child, which stays a zombie as long as its parent is stopped. */
static void kill_only_child(pid_t parent)
{
    char path[64], state = '?';
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    CU_ASSERT_TRUE_FATAL(file != NULL && fscanf(file, "%d", &child) == 1 && child > 1);
    fclose(file);
    CU_ASSERT_EQUAL(kill((pid_t)child, SIGKILL), 0);
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    while (state != 'Z') {
        file = fopen(path, "re");
        CU_ASSERT_TRUE_FATAL(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
    }
}

static void unheard_before_body(void)
{
    pid_t first = 0;
    exec("1");
    CU_ASSERT_TRUE_FATAL(host_await_boxes(1, &first));
    CU_ASSERT_EQUAL(kill(first, SIGSTOP), 0);
    kill_only_child(first);
    await_late_word(host_exec_background(box, "1", 20000, &o), first,
                    300000); /* less than the word is waited for */
    expect_end(SG_E_GONE_BEFORE, "local (box): the interpreter crashed with SIGKILL");
    expect_gone();
    box_again();
}

static void how_a_box_ended_is_known_even_if_its_word_comes_late(void)
{
    with_box(unheard_body);
    with_box(unheard_before_body);
}

static void closed_body(void)
{
    exec("import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nos.closerange(3, 256)\n"
         "while True: pass");
    expect_end(SG_E_GONE, "local (box): the interpreter closed its connection and was killed; "
                          "variables and files are gone");
    box_again();
    host_exec_abandon(box,
                      "import os, signal\ndef deaf(*a):\n    os.closerange(3, 256)\n"
                      "    while True: pass\nsignal.signal(signal.SIGINT, deaf)\nprint('on')\n"
                      "while True: pass",
                      "on");
    exec("1");
    expect_end(SG_E_GONE_BEFORE,
               "local (box): the interpreter closed its connection and was killed");
    expect_gone();
    box_again();
}

static void an_interpreter_without_its_connection_is_killed(void)
{
    with_box(closed_body);
}

static const struct test tests[] = {
    TEST(exit_and_crash_are_told_apart),
    TEST(passing_descriptors_to_the_gateway_ends_the_box),
    TEST(code_over_its_time_is_interrupted_and_variables_are_kept),
    TEST(code_that_does_not_react_is_killed),
    TEST(a_flood_of_output_is_dropped_and_stopped),
    TEST(interrupting_ends_the_run_and_keeps_the_box_if_it_can),
    TEST(an_interrupt_belongs_to_its_run_or_to_none),
    TEST(an_alarm_of_the_codes_own_does_not_end_the_interpreter_between_cells),
    TEST(an_interrupt_that_comes_before_its_run_has_begun_is_not_lost),
    TEST(destroying_ends_a_run_at_once),
    TEST(what_a_left_run_started_is_stopped_before_the_next),
    TEST(what_a_cell_left_running_does_not_stop_later_ones),
    TEST(disk_and_number_of_files_are_limited),
    TEST(a_fork_bomb_stays_in_its_box),
    TEST(one_box_too_many_is_refused_until_another_ends),
    TEST(how_a_box_ended_is_known_even_if_its_word_comes_late),
    TEST(an_interpreter_without_its_connection_is_killed),
};

int main(int argc, char **argv)
{
    return run_tests("local_ends", tests, COUNT_OF(tests), argc, argv);
}
