/* Shell commands in a box: streams, exit statuses, time limits, and what they share with Python. Every test makes a real
 * box and looks at all that a run hands on, in order. */
#include "fixture.h"

#include "loop/loop.h"

#include <stdlib.h>

static void bash_for(const char *command, int64_t timeout_ms)
{
    host_exec(box, "bash", command, strlen(command), timeout_ms, &o);
}

#define EXITED(code) "[status]{\"state\":\"exited\",\"code\":" #code "}"

/* Runs a command that must give exactly this (see struct outcome, `all`). */
#define EXPECT_BASH(command, everything)       \
    do {                                       \
        bash_for(command, DEFAULT_TIMEOUT_MS); \
        EXPECT_TEXT(o.error.message, "");      \
        CU_ASSERT_EQUAL(o.code, 0);            \
        EXPECT_TEXT(o.all.data, everything);   \
    } while (0)

/* Breaks a command off at its time; false where the machine is too busy. */
static bool is_broken_off(const char *command, int64_t timeout_ms)
{
    bash_for(command, timeout_ms);
    if (too_busy()) {
        return false;
    }
    CU_ASSERT_EQUAL(o.code, SG_E_TIMEOUT);
    return true;
}

/* The next command finds the same shell; false where the machine is too busy. */
static bool goes_on(const char *command, const char *everything)
{
    bash_for(command, DEFAULT_TIMEOUT_MS);
    if (too_busy()) {
        return false;
    }
    EXPECT_TEXT(o.error.message, "");
    EXPECT_TEXT(o.all.data, everything);
    return true;
}

static void streams_body(void)
{
    bash_for("echo one; echo two >&2; printf three", DEFAULT_TIMEOUT_MS);
    EXPECT_TEXT(o.out.data, "one\nthree"); /* between two pipes there is no order */
    EXPECT_TEXT(o.err.data, "two\n");
    EXPECT_PART(o.all.data, EXITED(0));
    EXPECT_BASH("printf '\\xff\\xc3\\xa4'", "[out]\xEF\xBF\xBD\xC3\xA4" EXITED(0));
    EXPECT_BASH("", EXITED(0));
    EXPECT_BASH("# nothing", EXITED(0));
    EXPECT_BASH("for i in 1 2 3; do\n  echo $((i * i))\ndone | tac", "[out]9\n4\n1\n" EXITED(0));
    EXPECT_BASH("[[ abc == a* ]] && echo $0", "[out]bash\n" EXITED(0)); /* it is bash */
}

static void a_command_gives_its_streams_and_then_its_status(void)
{
    with_box(streams_body);
}

#define NEW_SHELL(why)                                                                   \
    "[status]{\"state\":\"restarted\",\"note\":\"the shell " why "; this is a new one: " \
    "directory, variables and functions are not those of before\"}"

static void status_body(void)
{
    EXPECT_BASH("false", EXITED(1));
    EXPECT_BASH("exit 3", EXITED(3));
    EXPECT_BASH("kill -SEGV $$", NEW_SHELL("had ended") EXITED(139));
    EXPECT_BASH("kill -9 $$", NEW_SHELL("had ended") EXITED(137));
    EXPECT_BASH("kill 0; sleep 10", NEW_SHELL("had ended") EXITED(143));
    EXPECT_BASH("kill -9 0", NEW_SHELL("had ended") EXITED(137));
    EXPECT_BASH("true", NEW_SHELL("had ended") EXITED(0));
    EXPECT_BASH("break", EXITED(0)); /* out of nothing of the command's own */
    EXPECT_BASH("set -e; true", EXITED(0));
    EXPECT_BASH("false; echo never", EXITED(1));
    EXPECT_BASH("exec echo one", NEW_SHELL("had ended") "[out]one\n" EXITED(0));
    bash_for("no_such_command", DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.err.data, "no_such_command: command not found");
    EXPECT_PART(o.all.data, EXITED(127));
    bash_for("if", DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.all.data, EXITED(2));
}

static void every_way_to_end_has_its_status(void)
{
    with_box(status_body);
}

static void shared_body(void)
{
    EXPECT_RUN("import os\nopen('a.txt', 'w').write('from python');\nos.chdir('/tmp')\n"
               "os.environ['MINE'] = '1'\nx = 41",
               "");
    EXPECT_BASH("pwd; cat a.txt; echo from bash > b.txt; echo \"[$MINE]\"; id -u",
                "[out]/home/user\nfrom python[]\n1000\n" EXITED(0));
    EXPECT_RUN("print(open('/home/user/b.txt').read(), os.getcwd(), x)",
               "[out]from bash\n /tmp 41\n");
    EXPECT_BASH("cd /tmp; mine=2; export MINE=3; f() { echo \"f $1 $mine\"; }; shopt -s extglob",
                EXITED(0));
    EXPECT_BASH("pwd; f 1; sh -c 'echo $MINE'; shopt -q extglob && echo set",
                "[out]/tmp\nf 1 2\n3\nset\n" EXITED(0));
    EXPECT_RUN("os.environ['MINE'], os.getcwd()", "[result]{\"text/plain\":\"('1', '/tmp')\"}");
    EXPECT_BASH("exec 7< /etc/hostname; umask", "[out]0022\n" EXITED(0));
    EXPECT_BASH("read -r name <&7; echo $name; set -x", "[out]sandbox\n" EXITED(0));
    bash_for("echo seen; set +x", DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.err.data, "+ echo seen\n");
    CU_ASSERT_PTR_NULL(strstr(o.err.data, "read"));
    EXPECT_BASH("f 2", "[out]f 2 2\n" EXITED(0));
    /* Code that waits for its children finds its own alone. */
    EXPECT_RUN("try: os.wait()\nexcept ChildProcessError: print('none')", "[out]none\n");
}

static void a_shell_keeps_what_commands_set_and_python_has_its_own(void)
{
    with_box(shared_body);
}

static void input_body(void)
{
    EXPECT_BASH("cat; read x; echo \"[$x]\"", "[out][]\n" EXITED(0));
    EXPECT_RUN("import os\nr, w = os.pipe()\nos.dup2(r, 0)", "[result]{\"text/plain\":\"0\"}");
    EXPECT_BASH("cat; ls -l /proc/self/fd | grep -c socket", "[out]0\n" EXITED(1));
}

static void standard_input_is_empty_and_no_descriptor_is_handed_down(void)
{
    with_box(input_body);
}

/* By /proc: what lives is what Python had started. */
static void whole_body(void)
{
    EXPECT_RUN("import subprocess\nx = 7\nown = subprocess.Popen(['sleep', '1000'])", "");
    if (!is_broken_off(
            "echo begun; (trap '' INT TERM; sleep 900 & wait) & setsid sleep 901 & sleep 902",
            1000)) {
        return;
    }
    EXPECT_TEXT(o.error.message,
                "local (box): the command ran longer than 1s and was killed; files are kept");
    EXPECT_TEXT(o.all.data, "[out]begun\n");
    CU_ASSERT_TRUE(o.took_us < 10000000);
    EXPECT_BASH("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep '^sleep'; done; true",
                "[out]sleep 1000 \n" EXITED(0));
    EXPECT_RUN("print(x, own.poll())", "[out]7 None\n");
}

static void the_time_limit_kills_the_whole_command_and_nothing_else(void)
{
    with_calm_box(whole_body);
}

static void background_body(void)
{
    int64_t before = clock_ms();
    EXPECT_BASH("sleep 1000 & echo $! > pid; echo left", "[out]left\n" EXITED(0));
    CU_ASSERT_TRUE(clock_ms() - before < 10000); /* it is not waited for */
    EXPECT_BASH("kill -0 $(cat pid) && echo lives; kill $(cat pid)", "[out]lives\n" EXITED(0));
    /* What it prints later belongs to the run that goes on then. */
    EXPECT_BASH("(while [ ! -e go ]; do sleep 0.05; done; echo late; touch done) & echo now",
                "[out]now\n" EXITED(0));
    EXPECT_BASH("touch go; while [ ! -e done ]; do sleep 0.05; done; echo then",
                "[out]late\nthen\n" EXITED(0));
}

static void what_is_left_in_the_background_lives_on_as_pythons_does(void)
{
    with_box(background_body);
}

/* What a command that is broken off had set before, and what earlier ones left running, stays. */
static void kept_body(void)
{
    EXPECT_BASH("a=1; sleep 1000 & old=$!", EXITED(0));
    if (!is_broken_off("a=2; sleep 100 & new=$!; sleep 101; a=3; echo never", 500)) {
        return;
    }
    EXPECT_TEXT(o.all.data, "");
    if (!goes_on("echo $a; kill -0 $old && echo lives; kill -0 $new 2>/dev/null || echo ended",
                 "[out]2\nlives\nended\n" EXITED(0)) ||
        !is_broken_off("while :; do for i in 1 2; do :; done; done; echo never", 500) ||
        !is_broken_off("x=$(sleep 100; echo never); echo never", 500)) {
        return;
    }
    EXPECT_TEXT(o.all.data, "");
    if (!goes_on("echo $a", "[out]2\n" EXITED(0))) {
        return;
    }
    /* Nothing leads out of a function. */
    if (!is_broken_off("f() { sleep 100; echo never; }; f; echo never", 500)) {
        return;
    }
    EXPECT_TEXT(o.all.data, "");
    EXPECT_BASH("echo \"[$a]\"", NEW_SHELL("was killed with a run before") "[out][]\n" EXITED(0));
    if (!is_broken_off("trap '' 43; a=4; while :; do :; done", 500)) { /* the signal that would */
        return;
    }
    EXPECT_BASH("echo \"[$a]\"", NEW_SHELL("was killed with a run before") "[out][]\n" EXITED(0));
}

static void a_shell_outlives_what_is_broken_off_or_says_that_it_did_not(void)
{
    with_calm_box(kept_body);
}

static void interrupt_body(void)
{
    struct outcome later = {0};
    struct background *running =
        host_exec_background_in(box, "bash", "echo go; sleep 100; echo never", 60000, &later);
    while (later.first_us == 0) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(5), 0);
    }
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0);
    host_finish(running);
    CU_ASSERT_EQUAL(later.code, 0);
    EXPECT_TEXT(later.all.data, "[out]go\n" EXITED(130));
    CU_ASSERT_TRUE(later.took_us < 20000000);
    outcome_clear(&later);
    EXPECT_RUN("1 + 1", "[result]{\"text/plain\":\"2\"}");
}

static void an_interrupt_ends_a_command_and_its_status_says_so(void)
{
    with_box(interrupt_body);
}

/* What Python code does at a signal neither ends a command nor is forgotten. */
static void handler_body(void)
{
    EXPECT_RUN(
        "import signal\nheard = []\ndef late(*_):\n    heard.append(1)\n    raise "
        "TimeoutError('late')\n"
        "_ = signal.signal(signal.SIGALRM, late)\n_ = signal.setitimer(signal.ITIMER_REAL, 0.05)",
        "");
    EXPECT_BASH("kept=5; sleep 0.5; echo $kept", "[out]5\n" EXITED(0));
    EXPECT_BASH("echo $kept", "[out]5\n" EXITED(0));
    EXPECT_RUN("heard", "[result]{\"text/plain\":\"[1]\"}");
    exec("import time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)");
    EXPECT_PART(o.exception.data, "{\"name\":\"TimeoutError\",\"value\":\"late\"");
}

static void a_handler_of_pythons_does_not_disturb_a_command(void)
{
    with_box(handler_body);
}

/* Commands that end by themselves about when they are interrupted: the shell and the next command are not touched. */
static void edge_body(void)
{
    static const char *const commands[] = {"sleep 0.02", "for ((i = 0; i < 3000; i++)); do :; done",
                                           ":", "f() { sleep 0.02; }; (f)"};
    int stopped = 0, ended = 0, killed = 0;
    EXPECT_BASH("kept=5", EXITED(0));
    for (int round = 0; round < 60; round++) {
        bash_for(commands[round % 4], 1 + round / 2);
        if (too_busy()) { /* all of the box was killed */
            return;
        }
        stopped += o.code == SG_E_TIMEOUT;
        ended += o.code == 0;
        bash_for("echo $kept", DEFAULT_TIMEOUT_MS);
        if (strstr(o.all.data, "was killed with a run before") != NULL) { /* too busy a machine */
            killed++;
            EXPECT_BASH("kept=5", EXITED(0));
        } else {
            EXPECT_TEXT(o.all.data, "[out]5\n" EXITED(0));
        }
    }
    CU_ASSERT_EQUAL(stopped + ended, 60);
    CU_ASSERT_TRUE(stopped > killed && ended > 0);
}

static void an_interrupt_belongs_to_its_command_or_to_none(void)
{
    with_calm_box(edge_body);
}

static void flood_body(void)
{
    bash_for("yes", 60000);
    CU_ASSERT_EQUAL(o.code, SG_E_LIMIT);
    EXPECT_TEXT(o.error.message,
                "local (box): the command printed more than 64MiB and was killed; files are kept");
    EXPECT_BASH("echo alive", "[out]alive\n" EXITED(0));
}

static void a_flood_is_ended(void)
{
    with_box(flood_body);
}

static void odd_body(void)
{
    size_t len = 1000000;
    char *long_command = malloc(len + 1);
    memset(long_command, 'a', len);
    long_command[len] = '\0';
    memcpy(long_command, "echo ", 5);
    bash_for(long_command, DEFAULT_TIMEOUT_MS);
    CU_ASSERT_EQUAL(o.out.len, len - 5 + 1); /* no limit of the kernel's stands in the way */
    free(long_command);
    host_exec(box, "bash", "echo a\0b", 8, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.all.data,
                "[err]the command cannot be run: the command holds a NUL\n" EXITED(126));
    EXPECT_BASH("cat <<'X'\na\\\n'b\nX\necho \"c\nd\" # e", "[out]a\\\n'b\nc\nd\n" EXITED(0));
    bash_for("echo 'done 2 77'; printf 'done 3 0\\n' >&29; ls /proc/self/fd | tr '\\n' ' '",
             DEFAULT_TIMEOUT_MS);
    EXPECT_TEXT(o.out.data, "done 2 77\n0 1 2 3 ");
    EXPECT_TEXT(o.err.data, "bash: line 1: 29: Bad file descriptor\n");
    EXPECT_PART(o.all.data, EXITED(0));
}

static void a_command_that_no_shell_can_take_says_why(void)
{
    with_box(odd_body);
}

/* The shell's own descriptor must be put back behind a command, which may have lowered their limit. */
static void few_numbers_body(void)
{
    EXPECT_BASH("kept=1; exec {file}< /etc/hostname; ulimit -n 30; echo hi", "[out]hi\n" EXITED(0));
    EXPECT_BASH("echo $kept; ulimit -n; cat <&$file", "[out]1\n30\nsandbox\n" EXITED(0));
    /* Where it cannot be, the shell is lost, and the command has its status all the same. */
    bash_for("ulimit -n 12; (exit 5)", DEFAULT_TIMEOUT_MS);
    EXPECT_PART(o.all.data, EXITED(5));
    EXPECT_BASH("echo \"[$kept]\"", NEW_SHELL("had ended") "[out][]\n" EXITED(0));
}

static void a_low_limit_of_descriptors_does_not_lose_the_shell(void)
{
    with_box(few_numbers_body);
}

#define SHADOWED                                                                                   \
    "for f in printf read eval jobs set trap kill break exit command [; do builtin eval \"$f() { " \
    ":; }\"; "                                                                                     \
    "done"

static void shadowed_body(void)
{
    EXPECT_BASH("kept=1", EXITED(0));
    EXPECT_BASH("printf() { echo mine; }", EXITED(0));
    EXPECT_BASH("printf theirs", "[out]mine\n" EXITED(0));
    EXPECT_BASH("unset -f printf; " SHADOWED, EXITED(0));
    EXPECT_BASH("printf no; echo $kept; (builtin exit 3)", "[out]1\n" EXITED(3));
    if (!is_broken_off("while :; do :; done", 500) ||
        !goes_on("echo $kept", "[out]1\n" EXITED(0)) ||
        !is_broken_off("builtin() { :; }", 500)) { /* the one that may not */
        return;
    }
    EXPECT_BASH("echo \"[$kept]\"",
                NEW_SHELL("was killed with a run before") "[out][]\n" EXITED(0));
}

static void functions_may_have_the_names_of_what_the_shells_loop_uses(void)
{
    with_calm_box(shadowed_body);
}

/* Errors that a command prints are all that is printed there. */
#define EXPECT_TRACE(command, printed, traced) \
    do {                                       \
        bash_for(command, DEFAULT_TIMEOUT_MS); \
        CU_ASSERT_EQUAL(o.code, 0);            \
        EXPECT_TEXT(o.out.data, printed);      \
        EXPECT_TEXT(o.err.data, traced);       \
    } while (0)

static void traced_body(void)
{
    EXPECT_TRACE("set -x", "", "");
    EXPECT_TRACE("echo one", "one\n", "+++ echo one\n");
    EXPECT_TRACE("(exit 3)", "", "+++ exit 3\n");
    EXPECT_PART(o.all.data, EXITED(3));
    EXPECT_TRACE("", "", "");
    EXPECT_TRACE("# nothing", "", "");
    if (!is_broken_off("while :; do for i in 1; do :; done; done 2>/dev/null", 500)) {
        return;
    }
    EXPECT_TEXT(o.all.data, "");
    bash_for("echo two", DEFAULT_TIMEOUT_MS);
    if (too_busy()) {
        return;
    }
    EXPECT_PART(o.err.data, "+ echo two\n");
    CU_ASSERT_PTR_NULL(strstr(o.err.data, "_sg"));
    EXPECT_TRACE("{ set +x; } 2>/dev/null; exec 2>/home/user/errors", "", "");
    EXPECT_TRACE("echo kept >&2; cat errors", "kept\n", "");
}

static void a_trace_shows_the_command_alone(void)
{
    with_calm_box(traced_body);
}

static void debugged_body(void)
{
    EXPECT_TRACE("trap 'echo \"[$BASH_COMMAND]\"; n=$((n + 1))' DEBUG", "", "");
    EXPECT_TRACE("echo one; echo two", "[echo one]\none\n[echo two]\ntwo\n", "");
    EXPECT_TRACE("set -x", "[set -x]\n", "");
    bash_for("echo three", DEFAULT_TIMEOUT_MS);
    EXPECT_TEXT(o.out.data, "[echo three]\nthree\n");
    EXPECT_PART(o.err.data, "+ echo three\n");
    CU_ASSERT_PTR_NULL(strstr(o.err.data, "_sg"));
    EXPECT_TRACE("{ set +x; trap - DEBUG; } 2>/dev/null; n=", "[set +x]\n[trap - DEBUG]\n", "");
    EXPECT_TRACE("echo four", "four\n", "");
}

static void a_trap_before_each_command_shows_the_command_alone(void)
{
    with_box(debugged_body);
}

/* What Python code may do to its own process must not keep a command from ending. */
static void meddled_body(void)
{
    EXPECT_RUN("import signal, os\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
               "signal.signal(signal.SIGINT, signal.SIG_IGN)\nos.umask(0o077);",
               "");
    EXPECT_BASH("exit 5", EXITED(5));
    if (!is_broken_off("sleep 100", 500)) {
        return;
    }
    EXPECT_RUN("print(signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)", "[out]True\n");
    EXPECT_RUN("import posix\nposix.waitpid = posix.posix_spawn = posix.chdir = None", "");
    if (!goes_on("echo still", "[out]still\n" EXITED(0))) {
        return;
    }
    EXPECT_RUN("os.mkdir('/tmp/d'); os.chdir('/tmp/d'); os.rmdir('/tmp/d')", "");
    EXPECT_BASH("exit", EXITED(0));
    EXPECT_BASH("pwd; umask", NEW_SHELL("had ended") "[out]/home/user\n0022\n" EXITED(0));
}

static void what_python_code_does_to_its_process_does_not_matter(void)
{
    with_calm_box(meddled_body);
}

/* Where there is no bash; the list of shells is the driver's, in whose process code runs. */
static void plain_body(void)
{
    EXPECT_RUN("import gc\ngc.unfreeze() # what is of the template\nc = [o for o in "
               "gc.get_objects() if type(o).__name__ == 'Commands'][0]\n"
               "names = type(c).start.__globals__\nnames['SHELLS'] = ('/usr/bin/sh',)",
               "");
    EXPECT_BASH("a=1; cd /tmp; f() { echo \"f $a\"; }; echo $0", "[out]bash\n" EXITED(0));
    EXPECT_BASH("f; pwd; false", "[out]f 1\n/tmp\n" EXITED(1));
    EXPECT_BASH("cat; echo x >&9", "[err]bash: 1: eval: 9: Bad file descriptor\n" EXITED(2));
    EXPECT_BASH("printf() { :; }; read() { :; }; kept=3", EXITED(0));
    EXPECT_BASH("echo $kept; set -x", "[out]3\n" EXITED(0));
    EXPECT_TRACE("echo $kept; { set +x; } 2>/dev/null", "3\n", "+ echo 3\n");
    EXPECT_BASH("exit 4", EXITED(4));
    EXPECT_BASH("a=1", NEW_SHELL("had ended") EXITED(0));
    if (!is_broken_off("sleep 100; echo never", 500)) {
        return;
    }
    EXPECT_TEXT(o.out.data, "");
    EXPECT_BASH("echo $a", NEW_SHELL("was killed with a run before") "[out]\n" EXITED(0));
    EXPECT_RUN("names['SHELLS'] = ()", "");
    EXPECT_BASH("exit", EXITED(0));
    bash_for("echo", DEFAULT_TIMEOUT_MS);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
    EXPECT_PART(o.error.message, "the container has no shell: there is neither bash nor sh");
}

static void without_bash_any_shell_does(void)
{
    with_calm_box(plain_body);
}

static void limits_body(void)
{
    /* Each is within the limit of a process; together they are over that of the box. */
    bash_for("for i in 1 2; do\n  (head -c 100M /dev/zero; sleep 2) | tail -c 100M | wc -c &\n"
             "done; wait",
             20000);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.all.data, "{\"state\":\"memory\",\"note\":\"processes started by the code were "
                            "killed for the memory they took (limit 160MiB)\"}");
    EXPECT_PART(o.all.data, "\"state\":\"exited\"");
    bash_for("head -c 20M /dev/zero > a; head -c 20M /dev/zero > b", 20000);
    EXPECT_PART(o.err.data, "No space left on device");
    EXPECT_PART(o.all.data, EXITED(1));
    /* A fork bomb, last: whether the box lives on is not told beforehand, that it ends with its box is. */
    bash_for(":(){ :|:& };: 2>/dev/null; sleep 1", 5000);
    CU_ASSERT_TRUE(o.code == 0 || o.code == SG_E_TIMEOUT || o.code == SG_E_GONE);
}

static void commands_are_within_the_limits_of_their_box(void)
{
    static const struct host_options options = {
        .memory = (uint64_t)160 << 20, .disk = (uint64_t)32 << 20, .processes = 16};
    with_options(&options, limits_body);
}

#define FILL                                                            \
    "import subprocess\nown = []\ntry:\n"                               \
    "    while True: own.append(subprocess.Popen(['sleep', '1000']))\n" \
    "except BlockingIOError: print('full')"
#define FREE "for p in own: p.kill(); p.wait();"

static bool is_over_with_its_time(const char *command)
{
    if (!is_broken_off(command, 1500)) {
        return false;
    }
    EXPECT_PART(o.error.message, "the command ran longer than 2s and was killed; files are kept");
    EXPECT_TEXT(o.out.data, "");
    return true;
}

/* Bash waits for as long as 15 s for a process to be had; its command is over with its own time. */
static void full_body(void)
{
    EXPECT_BASH("x=1", EXITED(0));
    EXPECT_RUN(FILL, "[out]full\n");
    EXPECT_BASH("echo $x", "[out]1\n" EXITED(0)); /* that takes none */
    if (!is_over_with_its_time("/bin/true; echo never")) {
        return;
    }
    EXPECT_RUN(FREE, "");
    EXPECT_BASH("echo back $x; exit",
                NEW_SHELL("was killed with a run before") "[out]back\n" EXITED(0));
    EXPECT_RUN(FILL, "[out]full\n");
    EXPECT_BASH("echo never",
                "[err]the command cannot be run: Resource temporarily unavailable\n" EXITED(126));
    EXPECT_RUN("own[0].kill(); own.pop(0).wait();", "");
    if (!is_over_with_its_time("echo never")) { /* the starter is there, and the shell cannot be */
        return;
    }
    EXPECT_RUN(FREE, "");
    EXPECT_BASH("echo back", NEW_SHELL("had ended") "[out]back\n" EXITED(0));
}

static void a_command_that_finds_no_process_is_over_with_its_time(void)
{
    with_calm_options(&(struct host_options){.processes = 8}, full_body);
}

static const struct test tests[] = {
    TEST(a_command_gives_its_streams_and_then_its_status),
    TEST(every_way_to_end_has_its_status),
    TEST(a_shell_keeps_what_commands_set_and_python_has_its_own),
    TEST(standard_input_is_empty_and_no_descriptor_is_handed_down),
    TEST(the_time_limit_kills_the_whole_command_and_nothing_else),
    TEST(what_is_left_in_the_background_lives_on_as_pythons_does),
    TEST(a_shell_outlives_what_is_broken_off_or_says_that_it_did_not),
    TEST(an_interrupt_ends_a_command_and_its_status_says_so),
    TEST(a_handler_of_pythons_does_not_disturb_a_command),
    TEST(an_interrupt_belongs_to_its_command_or_to_none),
    TEST(a_flood_is_ended),
    TEST(a_command_that_no_shell_can_take_says_why),
    TEST(a_low_limit_of_descriptors_does_not_lose_the_shell),
    TEST(functions_may_have_the_names_of_what_the_shells_loop_uses),
    TEST(a_trace_shows_the_command_alone),
    TEST(a_trap_before_each_command_shows_the_command_alone),
    TEST(what_python_code_does_to_its_process_does_not_matter),
    TEST(without_bash_any_shell_does),
    TEST(commands_are_within_the_limits_of_their_box),
    TEST(a_command_that_finds_no_process_is_over_with_its_time),
};

int main(int argc, char **argv)
{
    return run_tests("local_shell", tests, COUNT_OF(tests), argc, argv);
}
