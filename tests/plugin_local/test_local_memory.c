/* Boxes that take too much memory, in each way in which code can have it: what ends, what is told, and what is left. */
#include "ends.h"

#include <sys/syscall.h>

/* Of its own one process has no more than RLIMIT_DATA lets it: to get past the limit takes two, and the larger one goes. */
#define FILL(mib)                                                                      \
    "import mmap, time\n"                                                              \
    "m = mmap.mmap(-1, " #mib " << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n" \
    "for i in range(0, len(m), 4096): m[i] = 1\n"

/* Shared memory without a file, dropped from the tables of the process that has written to it. */
#define FILL_AND_DROP                                                \
    "import mmap, time\n"                                            \
    "m = mmap.mmap(-1, 400 << 20)\n"                                 \
    "for start in range(0, len(m), 4 << 20):\n"                      \
    "    for i in range(start, start + (4 << 20), 4096): m[i] = 1\n" \
    "    m.madvise(mmap.MADV_DONTNEED, start, 4 << 20)\n"

static void expect_out_of_memory(void)
{
    expect_end(SG_E_GONE,
               "local (box): the interpreter ran out of memory (limit 128MiB); variables "
               "and files are gone");
    box_again();
}

/* Whether the box gets memory that is shared and has no file: it does where a group counts it. */
static bool has_shared_memory(void)
{
    exec("import mmap\ntry: print(len(mmap.mmap(-1, 4096)))\nexcept OSError as e: print(e.errno)");
    bool has_some = strcmp(o.out.data, "4096\n") == 0;
    EXPECT_TEXT(o.out.data, has_some ? "4096\n" : "12\n");
    return has_some;
}

static void shared_memory_body(void)
{
    exec("import mmap\nprint('filling')\nm = mmap.mmap(-1, 400 << 20)\n"
         "for i in range(0, len(m), 4096): m[i] = 1\nprint('filled')\nimport time; time.sleep(10)");
    EXPECT_TEXT(o.out.data, "filling\n");
    expect_out_of_memory();
    /* Pages that no process has in its tables any more are memory all the same. */
    exec(FILL_AND_DROP "time.sleep(10)");
    expect_out_of_memory();
}

static void memory_body(void)
{
    exec("hog = bytearray(1 << 30)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.exception.data, "{\"name\":\"MemoryError\"");
    expect_alive();
    exec("import subprocess, sys\nprint('filling')\n" FILL(
        90) "subprocess.run([sys.executable, '-c', '''" FILL(75) "time.sleep(10)'''])\nprint('"
                                                                 "filled')");
    EXPECT_TEXT(o.out.data, "filling\n");
    expect_out_of_memory();
    if (has_shared_memory()) {
        shared_memory_body();
    }
    /* Nor does a process have to write: tables for what it has read are memory too. */
    exec("import mmap, time\n"
         "m = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, "
         "prot=mmap.PROT_READ)\n"
         "for i in range(0, len(m), 2 << 20): m[i]\ntime.sleep(10)");
    expect_out_of_memory();
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
#define RUN_HIDDEN(code)                                                                   \
    "import os, shutil, subprocess, sys\n"                                                 \
    "shutil.copy(os.path.realpath(sys.executable), 'hidden'); os.chmod('hidden', 0o111)\n" \
    "r = subprocess.run(['./hidden', '-c', '''" code "time.sleep(10)'''],\n"               \
    "                   env={'PYTHONHOME': '/usr'}, stderr=subprocess.DEVNULL)\n"          \
    "os.unlink('hidden')\nprint(r.returncode)"

static void hidden_shared_memory_body(void)
{
    exec(RUN_HIDDEN(FILL_AND_DROP));
    if (o.code != 0) {
        /* A control group chooses by what a process has in its tables, and that is next to nothing here. */
        expect_out_of_memory();
    } else {
        EXPECT_TEXT(o.out.data, "-9\n");
    }
}

static void hidden_memory_body(void)
{
    exec(FILL(50) RUN_HIDDEN(FILL(110)));
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, "-9\n");
    EXPECT_RUN("m.close()", "");
    if (has_shared_memory()) {
        hidden_shared_memory_body();
    }
    expect_alive();
}

/* The status of a process whose first thread has left shows no memory, though its others hold it. */
static void leaderless_memory_body(void)
{
    BUF_CLEANUP struct buf code = {0};
    buf_puts(&code,
             FILL(50) "import subprocess, sys\n"
                      "r = subprocess.run([sys.executable, '-c', '''import ctypes, sys, threading\n"
                      "def fill():\n"
                      "    exec(sys.argv[1])\n"
                      "    time.sleep(10)\n"
                      "import time\n"
                      "threading.Thread(target=fill).start()\n");
    buf_printf(&code, "ctypes.CDLL(None).syscall(%d, 0)''', '''%s'''])\nprint(r.returncode)",
               (int)SYS_exit, FILL(110));
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
    exec(FILL(50) "import subprocess, sys\n"
                  "p = subprocess.run([sys.executable, '-c', '''" FILL(110) "time.sleep(10)'''])\n"
                                                                            "print(p.returncode)");
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

/* Pages without a place in the tables of a process: of each 64 MiB of a mapping all is unmapped but one page. Says how many MiB
 * it has come to hold, four times the limit at most, and which error stopped it; or the signal. */
static const char hoard_code[] =
    "import subprocess, sys\n"
    "def hoard(name, flags):\n"
    "    r = subprocess.run([sys.executable, '-c', '''import ctypes, os, sys\n"
    "name, flags, size, word = sys.argv[1], int(sys.argv[2]), 64 << 20, ctypes.c_size_t\n"
    "c = ctypes.CDLL(None, use_errno=True)\n"
    "c.mmap.restype = word\n"
    "c.mmap.argtypes = word, word, ctypes.c_int, ctypes.c_int, ctypes.c_int, word\n"
    "c.madvise.argtypes = word, word, ctypes.c_int\n"
    "c.munmap.argtypes = word, word\n"
    "fd = os.open(name, os.O_RDWR) if name else -1\n"
    "held, error = 0, 0\n"
    "while held < 512 and not error:\n"
    "    at = c.mmap(0, size, 3, flags, fd, 0)\n"
    "    if at == word(-1).value:\n"
    "        error = ctypes.get_errno()\n"
    "        continue\n"
    "    c.madvise(at, size, 23)\n" /* MADV_POPULATE_WRITE */
    "    c.munmap(at + 4096, size - 4096)\n"
    "    held += 64\n"
    "print(held, error)''', name, str(flags)], capture_output=True, text=True)\n"
    "    print(r.stdout.strip() or r.stderr or r.returncode)\n";

static void hoard_body(void)
{
    bool is_counted = has_shared_memory();
    exec(hoard_code);
    CU_ASSERT_EQUAL(o.code, 0);
    /* MAP_SHARED | MAP_ANONYMOUS; then MAP_SHARED_VALIDATE, which the kernel does not give without a file. */
    exec("hoard('', 0x21); hoard('', 0x23)");
    EXPECT_TEXT(o.out.data, is_counted ? "-9\n0 22\n" : "0 12\n0 12\n");
    /* The same by devices. */
    exec("hoard('/dev/zero', 0x1); hoard('/dev/full', 0x1)");
    EXPECT_TEXT(o.out.data, is_counted ? "-9\n0 19\n" : "0 19\n0 19\n");
    exec("import os\n"
         "try: print(os.write(os.open('/dev/zero', os.O_WRONLY), b'gone'))\n"
         "except OSError as e: print(e.errno)");
    EXPECT_TEXT(o.out.data, is_counted ? "4\n" : "28\n");
    expect_alive();
}

static void pages_that_are_unmapped_and_kept_are_counted_or_not_given(void)
{
    with_options(&small, hoard_body);
}

/* A huge page of which one small page is mapped stays whole until the host is short of memory. */
static void huge_pages_body(void)
{
    bool is_counted = has_shared_memory();
    exec("import ctypes, mmap\n"
         "c, none = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)\n"
         "print(c.prctl(42, none, none, none, none))\n" /* PR_GET_THP_DISABLE */
         "print(c.prctl(41, none, none, none, none), ctypes.get_errno())\n"
         "m = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
         "m.madvise(mmap.MADV_HUGEPAGE)\n"
         "for i in range(0, len(m), 4096): m[i] = 1\n"
         "huge = [l.split()[1] for l in open('/proc/self/smaps_rollup') if 'AnonHuge' in l]\n");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, is_counted ? "0\n0 0\n" : "1\n-1 1\n");
    if (!is_counted) {
        EXPECT_RUN("print(huge)", "[out]['0']\n");
    }
    expect_alive();
}

static void pages_are_huge_only_where_a_group_counts_them(void)
{
    with_options(&small, huge_pages_body);
}

/* Nothing that is shared in an ordinary way needs more than a file: it lies on the box's disk. */
static void sharing_body(void)
{
    exec("import ctypes, mmap, multiprocessing, os\n"
         "from multiprocessing import shared_memory\n"
         "context = multiprocessing.get_context('fork')\n"
         "number, numbers = context.Value('i', 1), context.Array('d', [0.5, 1.5])\n"
         "block = shared_memory.SharedMemory(create=True, size=1 << 20)\n"
         "file = open('/dev/shm/file', 'w+b'); file.truncate(1 << 20)\n"
         "mapped = mmap.mmap(file.fileno(), 1 << 20)\n"
         "own = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
         "def change():\n"
         "    with number.get_lock(): number.value += 6\n"
         "    numbers[1] = 2.5; block.buf[9] = 3; mapped[9] = 4; own[9] = 5\n"
         "child = context.Process(target=change); child.start(); child.join()\n"
         "print(child.exitcode, number.value, numbers[:], block.buf[9], mapped[9], own[9])\n"
         "block.close(); block.unlink(); os.unlink(file.name)\n"
         "print(open('/dev/zero', 'rb').read(4))");
    EXPECT_TEXT(o.out.data, "0 7 [0.5, 2.5] 3 4 0\nb'\\x00\\x00\\x00\\x00'\n");
    CU_ASSERT_EQUAL(o.code, 0);
}

static void what_is_shared_by_a_file_is_given_everywhere(void)
{
    with_options(&small, sharing_body);
}

static const struct test tests[] = {
    TEST(memory_is_limited_by_an_exception_first_and_then_by_force),
    TEST(a_cell_that_leaves_no_memory_does_not_end_the_session),
    TEST(memory_of_a_process_that_hides_counts),
    TEST(memory_of_a_process_without_its_first_thread_counts),
    TEST(a_child_that_takes_too_much_dies_alone),
    TEST(pages_that_are_unmapped_and_kept_are_counted_or_not_given),

    TEST(what_is_shared_by_a_file_is_given_everywhere),
    TEST(pages_are_huge_only_where_a_group_counts_them),
};

int main(int argc, char **argv)
{
    return run_tests("local_memory", tests, COUNT_OF(tests), argc, argv);
}
