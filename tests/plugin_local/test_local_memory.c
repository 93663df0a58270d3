/* Boxes that take too much memory, in each way in which code can have it: what ends, what is told, and what is left. */
#include "ends.h"

#include <sys/syscall.h>

static void memory_body(void)
{
    exec("hog = bytearray(1 << 30)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.exception.data, "{\"name\":\"MemoryError\"");
    expect_alive();
    exec("import mmap\nprint('filling')\nm = mmap.mmap(-1, 400 << 20)\n"
         "for i in range(0, len(m), 4096): m[i] = 1\nprint('filled')\nimport time; time.sleep(10)");
    EXPECT_PART(o.out.data, "filling\n");
    expect_end(SG_E_GONE,
               "local (box): the interpreter ran out of memory (limit 128MiB); variables "
               "and files are gone");
    box_again();
    /* Pages that no process has in its tables any more are memory all the same. */
    exec("import mmap, time\nm = mmap.mmap(-1, 400 << 20)\n"
         "for start in range(0, len(m), 4 << 20):\n"
         "    for i in range(start, start + (4 << 20), 4096): m[i] = 1\n"
         "    m.madvise(mmap.MADV_DONTNEED, start, 4 << 20)\ntime.sleep(10)");
    expect_end(SG_E_GONE,
               "local (box): the interpreter ran out of memory (limit 128MiB); variables "
               "and files are gone");
    box_again();
    /* Nor does a process have to write: tables for what it has read are memory too. */
    exec("import mmap, time\n"
         "m = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, "
         "prot=mmap.PROT_READ)\n"
         "for i in range(0, len(m), 2 << 20): m[i]\ntime.sleep(10)");
    expect_end(SG_E_GONE,
               "local (box): the interpreter ran out of memory (limit 128MiB); variables "
               "and files are gone");
    box_again();
}

static void memory_is_limited_by_an_exception_first_and_then_by_force(void)
{
    with_options(&small, memory_body);
}

static void full_memory_body(void)
{
    exec("hog, size = [], 1 << 24\n"
         "while size > 2048:\n"
         "    try: hog.append(bytearray(size))\n"
         "    except MemoryError: size //= 2\n");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_RUN("print(len(hog) > 5)", "[out]True\n");
    exec("x = bytearray(1 << 24)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.exception.data, "{\"name\":\"MemoryError\"");
    EXPECT_RUN("hog.clear()", "");
    expect_alive();
}

static void a_cell_that_leaves_no_memory_does_not_end_the_session(void)
{
    with_options(&small, full_memory_body);
}

/* A file that may be run and not be read makes a process whose mappings nobody in the box can look at. */
static void hidden_memory_body(void)
{
    exec("import os, shutil, subprocess, sys\n"
         "shutil.copy(os.path.realpath(sys.executable), 'hidden'); os.chmod('hidden', 0o111)\n"
         "r = subprocess.run(['./hidden', '-c', '''import mmap, time\n"
         "m = mmap.mmap(-1, 400 << 20)\n"
         "for start in range(0, len(m), 4 << 20):\n"
         "    for i in range(start, start + (4 << 20), 4096): m[i] = 1\n"
         "    m.madvise(mmap.MADV_DONTNEED, start, 4 << 20)\n"
         "time.sleep(10)'''], env={'PYTHONHOME': '/usr'}, stderr=subprocess.DEVNULL)\n"
         "print(r.returncode)");
    if (o.code != 0) {
        /* A control group chooses by what a process has in its tables, and that is next to nothing here. */
        expect_end(SG_E_GONE,
                   "local (box): the interpreter ran out of memory (limit 128MiB); variables "
                   "and files are gone");
        box_again();
    } else {
        EXPECT_TEXT(o.out.data, "-9\n");
    }
    expect_alive();
}

/* The status of a process whose first thread has left shows no memory, though its others hold it. */
static void leaderless_memory_body(void)
{
    BUF_CLEANUP struct buf code = {0};
    buf_puts(&code,
             "import subprocess, sys\n"
             "r = subprocess.run([sys.executable, '-c', '''import ctypes, mmap, threading, time\n"
             "def fill():\n"
             "    m = mmap.mmap(-1, 400 << 20)\n"
             "    for i in range(0, len(m), 4096): m[i] = 1\n"
             "    time.sleep(10)\n"
             "threading.Thread(target=fill).start()\n");
    buf_printf(&code, "ctypes.CDLL(None).syscall(%d, 0)'''])\nprint(r.returncode)", (int)SYS_exit);
    exec(code.data);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, "-9\n");
    expect_alive();
}

static void memory_of_a_process_without_its_first_thread_counts(void)
{
    with_options(&small, leaderless_memory_body);
}

static void memory_of_a_process_that_hides_counts(void)
{
    with_options(&small, hidden_memory_body);
}

static void child_memory_body(void)
{
    exec("import subprocess, sys\n"
         "p = subprocess.run([sys.executable, '-c', '''\nimport mmap, time\n"
         "m = mmap.mmap(-1, 300 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\n"
         "time.sleep(10)'''])\nprint(p.returncode)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, "-9\n");
    EXPECT_PART(o.all.data,
                "[status]{\"state\":\"memory\",\"note\":\"processes started by the code "
                "were killed for the memory they took (limit 128MiB)\"}");
    expect_alive();
}

static void a_child_that_takes_too_much_dies_alone(void)
{
    with_options(&small, child_memory_body);
}

static const struct test tests[] = {
    TEST(memory_is_limited_by_an_exception_first_and_then_by_force),
    TEST(a_cell_that_leaves_no_memory_does_not_end_the_session),
    TEST(memory_of_a_process_that_hides_counts),
    TEST(memory_of_a_process_without_its_first_thread_counts),
    TEST(a_child_that_takes_too_much_dies_alone),
};

int main(int argc, char **argv)
{
    return run_tests("local_memory", tests, COUNT_OF(tests), argc, argv);
}
