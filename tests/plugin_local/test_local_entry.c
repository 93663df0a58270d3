/* What is easy to get wrong on the way into a box, one test each: every one of these was wrong in some sandbox. They look from
 * inside, as hostile code would; what the machine's own state must be for that stands with the test. */
#include "fixture.h"

static void covers_body(void)
{
    /* A cover that is missing shows content; one that is not there because the file is not, does not. */
    EXPECT_RUN(
        "import os\n"
        "for name in ('kcore', 'keys', 'key-users', 'timer_list', 'sched_debug', 'kallsyms', "
        "'modules',\n"
        "             'kpageflags', 'kpagecount', 'kpagecgroup', 'config.gz', 'cmdline', "
        "'interrupts',\n"
        "             'vmallocinfo', 'slabinfo', 'kmsg', 'locks'):\n"
        "    path = '/proc/' + name\n"
        "    if os.path.exists(path) and open(path, 'rb').read(1): print(name, 'is seen')\n"
        "for name in 'acpi', 'scsi', 'driver':\n"
        "    path = '/proc/' + name\n"
        "    if os.path.exists(path) and os.listdir(path): print(name, 'is seen')\n"
        "for name in 'sys/kernel/core_pattern', 'sys/vm/drop_caches', 'sys/kernel/hostname':\n"
        "    try:\n        open('/proc/' + name, 'w').close(); print(name, 'can be written')\n"
        "    except OSError as e: print(e.errno)",
        "[out]30\n30\n30\n");
}

static void everything_of_proc_that_must_be_covered_is(void)
{
    with_box(covers_body);
}

/* 1, not 0: with 0 a program for core dumps would still be started, as root and on the host. */
static void core_body(void)
{
    EXPECT_RUN(
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))\n"
        "for limits in (0, 0), (0, 1), (1, 1):\n"
        "    try: resource.setrlimit(resource.RLIMIT_CORE, limits); print('set')\n"
        "    except (OSError, ValueError) as e: print(type(e).__name__)",
        "[out](1, 1)\nValueError\nValueError\nValueError\n"); /* what Python makes of EPERM */
}

static void the_limit_of_core_files_stays_one(void)
{
    with_box(core_body);
}

/* In the machine's own user namespace the limit would count all processes of the uid, which as an ordinary user boxes share. */
static const char many_processes[] =
    "import os, time\nstarted = []\ntry:\n    while len(started) < 100:\n        pid = os.fork()\n"
    "        if pid == 0: time.sleep(60)\n        started.append(pid)\n"
    "except BlockingIOError: pass\nprint(len(started))";

static void own_count_body(void)
{
    char other[128];
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0);
    exec(many_processes);
    EXPECT_TEXT(o.out.data, "15\n"); /* and the interpreter */
    host_exec(other, NULL, many_processes, strlen(many_processes), DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.out.data, "15\n");
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
}

static void each_box_counts_its_own_processes(void)
{
    with_options(&(struct host_options){.processes = 16}, own_count_body);
}

/* A network namespace does not separate sockets of virtual machines (40), nor are those of the kernel's ciphers (38) and of
 * packets (17) anybody's business. */
static void families_body(void)
{
    EXPECT_RUN("import socket\nfor family in 40, 38, 17, 16:\n"
               "    try: socket.socket(family, socket.SOCK_RAW, 9).close(); print(family, 'made')\n"
               "    except OSError as e: print(e.errno)",
               "[out]97\n97\n97\n97\n");
}

static void families_of_sockets_that_nothing_else_separates_are_refused(void)
{
    with_box(families_body);
}

/* Written last, since some kernels refuse mounts once they are 0. */
static void counts_body(void)
{
    EXPECT_RUN("import os\ncounts = {open(f'/proc/sys/user/{n}').read().strip()\n"
               "          for n in os.listdir('/proc/sys/user') if n.endswith('_namespaces')}\n"
               "print(counts)",
               "[out]{'0'}\n");
}

static void no_further_namespace_can_be_counted_in(void)
{
    with_box(counts_body);
}

/* The pipes must be the box's own uid's. */
static void streams_body(void)
{
    exec("import os\nos.system('echo one >/dev/stderr; echo two >/dev/stdout')\nNone");
    EXPECT_TEXT(o.err.data, "one\n");
    EXPECT_TEXT(o.out.data, "two\n");
}

static void standard_streams_can_be_opened_again_by_name(void)
{
    with_box(streams_body);
}

/* Pid 1 is ours: its memory holds the way out of the box. */
static void first_body(void)
{
    EXPECT_RUN("import os\nfor name in 'environ', 'mem', 'maps', 'auxv':\n"
               "    try: open('/proc/1/' + name, 'rb').read(1); print(name, 'read')\n"
               "    except OSError as e: print(e.errno)\n"
               "for name in 'cwd', 'root', 'exe', 'fd/100', 'ns/user':\n"
               "    try: os.readlink('/proc/1/' + name); print(name, 'read')\n"
               "    except OSError as e: print(e.errno)\n"
               "print(open('/proc/1/cmdline', 'rb').read().strip(b'\\0'))",
               "[out]13\n13\n13\n13\n13\n13\n13\n13\n13\nb'box-init'\n");
}

static void pid_1_cannot_be_looked_into(void)
{
    with_box(first_body);
}

static void status_body(void)
{
    EXPECT_RUN(
        "fields = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print([int(fields[n], 16) for n in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')],\n"
        "      fields['NoNewPrivs'].strip(), fields['Seccomp'].strip())",
        "[out][0, 0, 0, 0, 0] 1 2\n");
}

static void nothing_can_be_gained_back(void)
{
    with_box(status_body);
}

static const struct test tests[] = {
    TEST(everything_of_proc_that_must_be_covered_is),
    TEST(the_limit_of_core_files_stays_one),
    TEST(each_box_counts_its_own_processes),
    TEST(families_of_sockets_that_nothing_else_separates_are_refused),
    TEST(no_further_namespace_can_be_counted_in),
    TEST(standard_streams_can_be_opened_again_by_name),
    TEST(pid_1_cannot_be_looked_into),
    TEST(nothing_can_be_gained_back),
};

int main(int argc, char **argv)
{
    return run_tests("local_entry", tests, COUNT_OF(tests), argc, argv);
}
