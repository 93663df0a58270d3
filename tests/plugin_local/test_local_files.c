/* Files of a box through the gateway's functions: bytes, bounds, what is refused and how, what code in the box may do
 * meanwhile, and which files a run has changed. Every test makes a real box. */
#include "fixture.h"
#include "loop/loop.h"

#include <limits.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

static void expect_get(const char *path, const void *data, size_t len)
{
    host_get(box, path, &o);
    EXPECT_TEXT(o.error.message, "");
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL_FATAL(o.out.len, len);
    CU_ASSERT_EQUAL(memcmp(o.out.data, data, len), 0);
}

static void expect_put(const char *path, const void *data, size_t len)
{
    host_put(box, path, data, len, &o);
    EXPECT_TEXT(o.error.message, "");
    CU_ASSERT_EQUAL(o.code, 0);
}

static void expect_refusal(int code, const char *message)
{
    char whole[512];
    snprintf(whole, sizeof whole, "local (box): %s", message);
    CU_ASSERT_EQUAL(o.code, code);
    EXPECT_TEXT(o.error.message, whole);
}

#define EXPECT_REFUSED(function, path, code, message) \
    do {                                              \
        function(box, path, &o);                      \
        expect_refusal(code, message);                \
    } while (0)

#define EXPECT_PUT_REFUSED(path, code, message) \
    do {                                        \
        host_put(box, path, "x", 1, &o);        \
        expect_refusal(code, message);          \
    } while (0)

static void bytes_body(void)
{
    expect_put("a.bin", "1\0\xFF\n2", 5);
    expect_get("a.bin", "1\0\xFF\n2", 5);
    expect_get("/home/user/a.bin", "1\0\xFF\n2", 5);
    EXPECT_RUN("import os\nprint(open('a.bin', 'rb').read(), oct(os.stat('a.bin').st_mode))",
               "[out]b'1\\x00\\xff\\n2' 0o100644\n");
    expect_put("a.bin", "", 0);
    expect_get("a.bin", "", 0);
    CU_ASSERT_EQUAL(o.pieces, 1); /* also of nothing there is one */
    expect_put("new/folder/\xC3\xA4 b", "x", 1);
    EXPECT_RUN("os.chdir('/tmp')\nprint(os.listdir('/home/user/new/folder'))",
               "[out]['\xC3\xA4 b']\n");
    expect_put("c", "relative to the working directory", 33); /* wherever Python has gone */
    expect_get("/home/user/c", "relative to the working directory", 33);
    expect_get("./new/../c", "relative to the working directory", 33);
}

static void bytes_arrive_as_they_are_wherever_they_go(void)
{
    with_box(bytes_body);
}

static void size_body(void)
{
    size_t len = 10 * MIB;
    char *large = malloc(len + 1);
    for (size_t i = 0; i < len + 1; i++) {
        large[i] = (char)(i * 7 + (i >> 12));
    }
    expect_put("large", large, len);
    expect_get("large", large, len);
    host_put(box, "large", large, len + 1, &o);
    expect_refusal(SG_E_LIMIT, "'large' is larger than 10MiB");
    expect_get("large", large, len);
    EXPECT_RUN("open('large', 'ab').write(b'x');", "");
    EXPECT_REFUSED(host_get, "large", SG_E_LIMIT, "'large' is larger than 10MiB");
    CU_ASSERT_EQUAL(o.out.len, 0);
    expect_put("large", "x", 1);
    free(large);
}

static void ten_mebibytes_are_the_most(void)
{
    with_box(size_body);
}

static void refused_body(void)
{
    EXPECT_RUN("import os, socket\nos.mkdir('d')\nos.mkfifo('fifo')\nos.symlink('loop', 'loop')\n"
               "os.symlink('nowhere', 'dangling')\nopen('secret', 'w').close()\n"
               "os.chmod('secret', 0)\ns = socket.socket(socket.AF_UNIX)\ns.bind('sock')",
               "");
    EXPECT_REFUSED(host_get, "missing", SG_E_NOT_FOUND, "there is no file 'missing'");
    EXPECT_REFUSED(host_get, "dangling", SG_E_NOT_FOUND, "there is no file 'dangling'");
    EXPECT_REFUSED(host_get, "d", SG_E_INVALID, "'d' is a folder");
    EXPECT_REFUSED(host_get, "d/", SG_E_INVALID, "'d/' is a folder");
    EXPECT_REFUSED(host_get, "secret/x", SG_E_INVALID, "'secret/x' is not a folder, or not in one");
    EXPECT_REFUSED(host_get, "fifo", SG_E_INVALID, "'fifo' is neither a file nor a folder");
    EXPECT_REFUSED(host_get, "sock", SG_E_INVALID, "'sock' is neither a file nor a folder");
    EXPECT_REFUSED(host_get, "/dev/zero", SG_E_INVALID,
                   "'/dev/zero' is neither a file nor a folder");
    EXPECT_REFUSED(host_get, "loop", SG_E_INVALID, "'loop' cannot be read");
    EXPECT_REFUSED(host_get, "secret", SG_E_INVALID, "'secret' may not be read");
    EXPECT_REFUSED(host_get, "", SG_E_INVALID, "a path has 1 to 4096 bytes");
    EXPECT_PUT_REFUSED("d", SG_E_INVALID, "'d' is a folder");
    EXPECT_PUT_REFUSED("new/", SG_E_INVALID, "'new/' is a folder");
    EXPECT_PUT_REFUSED("fifo", SG_E_INVALID, "'fifo' is neither a file nor a folder");
    EXPECT_PUT_REFUSED("secret", SG_E_INVALID, "'secret' may not be written");
    EXPECT_PUT_REFUSED("secret/x", SG_E_INVALID, "'secret/x' is not a folder, or not in one");
    host_put(box, "/usr/x", "x", 1, &o);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
    EXPECT_PART(o.error.message, "'/usr/x' may not be written");
    EXPECT_REFUSED(host_list, "missing", SG_E_NOT_FOUND, "there is no folder 'missing'");
    EXPECT_REFUSED(host_list, "secret", SG_E_INVALID, "'secret' is not a folder, or not in one");
    EXPECT_RUN("1", "[result]{\"text/plain\":\"1\"}");
}

static void what_is_no_file_is_refused_with_its_reason(void)
{
    with_box(refused_body);
}

static void list_body(void)
{
    EXPECT_RUN("import os\nos.makedirs('w/sub')\nopen('w/b', 'w').write('12')\n"
               "open(b'w/a\\xff\\n\"', 'w').close()\nos.symlink('nowhere', 'w/z')\n"
               "os.symlink('b', 'w/c');",
               "");
    static const char expected[] =
        "{\"path\":\"/home/user/w/a\xEF\xBF\xBD\\n\\\"\",\"size\":0,\"type\":\"file\"}\n"
        "{\"path\":\"/home/user/w/b\",\"size\":2,\"type\":\"file\"}\n"
        "{\"path\":\"/home/user/w/c\",\"size\":2,\"type\":\"file\"}\n"
        "{\"path\":\"/home/user/w/sub\",\"size\":0,\"type\":\"directory\"}\n"
        "{\"path\":\"/home/user/w/z\",\"size\":0,\"type\":\"other\"}\n";
    static const char *const names[] = {"w", "w/", "/home/user/w", "./w/.", "/home/user/w//"};
    for (size_t i = 0; i < 5; i++) {
        host_list(box, names[i], &o);
        CU_ASSERT_EQUAL(o.code, 0);
        if (strncmp(names[i], "./", 2) != 0) {
            EXPECT_TEXT(o.results.data, expected);
        }
    }
    host_list(box, ".", &o);
    EXPECT_TEXT(o.results.data, "{\"path\":\"/home/user/w\",\"size\":0,\"type\":\"directory\"}\n");
    host_list(box, "", &o);
    EXPECT_TEXT(o.results.data, "{\"path\":\"/home/user/w\",\"size\":0,\"type\":\"directory\"}\n");
    host_list(box, "/", &o);
    EXPECT_PART(o.results.data, "{\"path\":\"/usr\",\"size\":0,\"type\":\"directory\"}\n");
    host_list(box, "w/sub", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.pieces, 0);
}

static void a_folder_is_listed_in_order_with_any_names(void)
{
    with_box(list_body);
}

static void many_body(void)
{
    EXPECT_RUN(
        "import os\nos.mkdir('/tmp/m')\nfor i in range(10000): open(f'/tmp/m/{i}', 'w').close()",
        "");
    host_list(box, "/tmp/m", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.pieces, 10000);
    EXPECT_RUN("open('/tmp/m/more', 'w').close()", "");
    EXPECT_REFUSED(host_list, "/tmp/m", SG_E_LIMIT, "'/tmp/m' has more than 10000 entries");
}

static void a_folder_of_too_many_is_refused(void)
{
    with_box(many_body);
}

static void whole_body(void)
{
    size_t len = 6 * MIB;
    char *large = calloc(1, len);
    EXPECT_RUN("import os\nopen('kept', 'w').write('old')\nos.chmod('kept', 0o755)\n"
               "os.symlink('kept', 'link')\nfree = os.statvfs('.')\n"
               "open('fill', 'wb').write(bytes(free.f_bavail * free.f_bsize - (4 << 20)));",
               "");
    host_put(box, "kept", large, len, &o);
    expect_refusal(SG_E_LIMIT, "the disk of the container is full");
    expect_get("kept", "old", 3); /* whole or not at all */
    EXPECT_RUN("print(sorted(os.listdir('.')))", "[out]['fill', 'kept', 'link']\n");
    expect_put("link", "new", 3);
    EXPECT_RUN("print(open('kept').read(), oct(os.stat('kept').st_mode), os.path.islink('link'))",
               "[out]new 0o100755 True\n");
    free(large);
}

static void a_file_is_replaced_whole_or_not_at_all(void)
{
    static const struct host_options options = {.disk = (uint64_t)16 << 20};
    with_options(&options, whole_body);
}

static void background_body(void)
{
    EXPECT_RUN("import threading, time, subprocess\ngo = True\n"
               "def talk():\n    while go: print('x' * 1000)\n"
               "threading.Thread(target=talk, daemon=True).start()\n"
               "noise = subprocess.Popen(['sh', '-c', 'while :; do echo noise; done']);"
               "time.sleep(0.1)",
               o.all.data);
    size_t len = 3 * MIB;
    char *data = calloc(1, len);
    for (int i = 0; i < 3; i++) {
        expect_put("f", data, len);
        expect_get("f", data, len);
        host_list(box, ".", &o);
        CU_ASSERT_EQUAL(o.code, 0);
    }
    free(data);
    exec("go = False; noise.kill(); noise.wait(); 5");
    EXPECT_PART(o.results.data, "{\"text/plain\":\"5\"}");
}

static void what_runs_in_the_background_does_not_get_between(void)
{
    with_box(background_body);
}

/* ---- while code runs, and against what it does ---- */

static void running_body(void)
{
    struct outcome later = {0};
    struct background *running = host_exec_background(
        box,
        "import os, time\nopen('begun', 'w').write('first')\nprint('go', flush=True)\n"
        "while not os.path.exists('answer'): time.sleep(0.005)\nprint(open('answer').read())",
        60000, &later);
    while (later.first_us == 0) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(5), 0);
    }
    expect_get("begun", "first", 5);
    host_list(box, ".", &o);
    EXPECT_TEXT(o.results.data, "{\"path\":\"/home/user/begun\",\"size\":5,\"type\":\"file\"}\n");
    CU_ASSERT_FALSE(host_has_ended(running));
    expect_put("answer", "second", 6);
    host_finish(running);
    CU_ASSERT_EQUAL(later.code, 0);
    EXPECT_TEXT(later.all.data, "[out]go\nsecond\n");
    outcome_clear(&later);
}

static void files_are_served_while_code_runs(void)
{
    with_box(running_body);
}

static void full_body(void)
{
    EXPECT_RUN("import subprocess, time\nown = []\ntry:\n"
               "    while True: own.append(subprocess.Popen(['sleep', '1000']))\n"
               "except BlockingIOError: print('full')",
               "[out]full\n");
    expect_put("a", "bytes", 5);
    expect_get("a", "bytes", 5);
    EXPECT_RUN("for p in own: p.kill()\nprint(open('a').read())", "[out]bytes\n");
}

static void a_box_that_can_start_no_process_still_serves_its_files(void)
{
    static const struct host_options options = {.processes = 8};
    with_options(&options, full_body);
}

/* The box may kill and stop what has its uid; more it cannot do to a worker. */
static void hunted_body(void)
{
    static struct outcome hunt;
    struct background *run = host_exec_background(
        box,
        "import os, signal\nfound = set()\n"
        "while True:\n"
        "    for p in os.listdir('/proc'):\n"
        "        if p.isdigit() and int(p) not in (1, os.getpid()):\n"
        "            try: open(f'/proc/{p}/environ').read(); found.add('environ')\n"
        "            except OSError: pass\n"
        "            try: os.listdir(f'/proc/{p}/fd'); found.add('fd')\n"
        "            except OSError: pass\n"
        "            try: os.kill(int(p), signal.SIGKILL)\n"
        "            except OSError: pass\n",
        120000, &hunt);
    int served = 0;
    size_t len = 10 * MIB;
    char *large = calloc(1, len);
    for (int i = 0; i < 4; i++) {
        host_put(box, "a", large, len, &o);
        served += o.code == 0;
        if (o.code != 0) {
            expect_refusal(SG_E_UNAVAILABLE,
                           "the container's processes do not let its files be served");
        }
    }
    CU_ASSERT_TRUE(served < 4);
    free(large);
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0);
    host_finish(run);
    outcome_clear(&hunt);
    EXPECT_RUN("print(found)", "[out]set()\n");
    expect_put("a", "x", 1);
    expect_get("a", "x", 1);
}

static void a_worker_can_be_killed_but_not_looked_into(void)
{
    with_box(hunted_body);
}

static void flip_body(void)
{
    EXPECT_RUN("import os, threading\nopen('own', 'w').write('own')\nos.mkfifo('fifo')\n"
               "flip = True\n"
               "def run():\n"
               "    while flip:\n"
               "        for to in 'own', 'fifo', '/etc/passwd', '/proc/self/environ', '/dev/zero',"
               " 'f':\n"
               "            os.symlink(to, 'n'); os.rename('n', 'f')\n"
               "threading.Thread(target=run, daemon=True).start();",
               "");
    for (int i = 0; i < 100; i++) {
        host_get(box, "f", &o);
        bool is_harmless = o.code == 0 ? strcmp(o.out.data, "own") == 0 ||
                                             strstr(o.out.data, "user:x:1000:1000") != NULL
                                       : o.code == SG_E_INVALID || o.code == SG_E_NOT_FOUND;
        CU_ASSERT_TRUE(is_harmless);
        host_put(box, "f", "own", 3, &o);
        CU_ASSERT_TRUE(o.code == 0 || o.code == SG_E_INVALID || o.code == SG_E_NOT_FOUND);
    }
    EXPECT_RUN("flip = False\n'alive'", "[result]{\"text/plain\":\"'alive'\"}");
}

static void a_link_that_changes_all_the_time_leads_nowhere_else(void)
{
    with_box(flip_body);
}

static void own_body(void)
{
    EXPECT_RUN("import os\nos.symlink('/proc/self/exe', 'exe')\nos.symlink('/dev/fd/3', 'fd')", "");
    EXPECT_REFUSED(host_get, "/proc/self/maps", SG_E_INVALID, "'/proc/self/maps' may not be read");
    EXPECT_REFUSED(host_get, "/proc/self/environ", SG_E_INVALID,
                   "'/proc/self/environ' may not be read");
    EXPECT_REFUSED(host_get, "exe", SG_E_INVALID, "'exe' cannot be read");
    EXPECT_REFUSED(host_list, "/proc/self/fd", SG_E_INVALID, "'/proc/self/fd' may not be read");
    host_get(box, "fd", &o);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
}

static void what_proc_says_of_the_worker_itself_is_not_read(void)
{
    with_box(own_body);
}

static void abandoned_body(void)
{
    struct sg_error abandoned = {0};
    EXPECT_RUN("import os\nopen('a', 'w').write('old');", "");
    host_put_abandon(box, "a", 10 * MIB, 0, &abandoned);
    host_get(box, "a", &o); /* given up with its last word on the way, it may have been done */
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_TRUE(o.out.len == 10 * MIB || (abandoned.code != 0 && o.out.len == 3));
    EXPECT_RUN(
        "import time\nwhile len(os.listdir('.')) > 1: time.sleep(0.005)\n" /* the worker's end */
        "print(os.listdir('.'))",
        "[out]['a']\n");
}

static void a_put_that_is_given_up_leaves_nothing_behind(void)
{
    with_box(abandoned_body);
}

/* The next request ends a worker that still writes for an earlier one. */
static void overtaken_body(void)
{
    struct sg_error abandoned = {0};
    for (int i = 0; i < 20; i++) {
        host_put_abandon(box, "b", 10 * MIB, i % 4, &abandoned);
        host_list(box, ".", &o);
        CU_ASSERT_PTR_NULL(strstr(o.results.data, ".put-"));
    }
}

static void a_put_that_is_overtaken_leaves_nothing_behind(void)
{
    with_box(overtaken_body);
}

static void exits_body(void)
{
    exec("import os; os._exit(7)");
    CU_ASSERT_EQUAL(o.code, SG_E_GONE);
    EXPECT_REFUSED(host_get, "a", SG_E_GONE_BEFORE, "the container no longer exists");
    EXPECT_PUT_REFUSED("a", SG_E_GONE_BEFORE, "the container no longer exists");
    EXPECT_REFUSED(host_list, "a", SG_E_GONE_BEFORE, "the container no longer exists");
    CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
    static struct outcome
        ending; /* code that runs: an idle box may be frozen before it comes to its end */
    struct background *run =
        host_exec_background(box, "import os, time\ntime.sleep(0.2)\nos._exit(7)", 20000, &ending);
    do {
        host_get(box, "a", &o);
    } while (o.code == SG_E_NOT_FOUND);
    CU_ASSERT_TRUE(o.code == SG_E_GONE || o.code == SG_E_GONE_BEFORE);
    /* Who sees the end first has its reason: the run, which reads it meanwhile or has read it, or this. */
    if (strstr(o.error.message, "the container no longer exists") == NULL &&
        strstr(o.error.message, "the container has ended") == NULL) {
        EXPECT_PART(o.error.message, "the interpreter exited with status 7");
    }
    host_finish(run);
    CU_ASSERT_EQUAL(ending.code, SG_E_GONE);
    outcome_clear(&ending);
    CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
}

static void a_box_that_ends_meanwhile_is_gone(void)
{
    with_box(exits_body);
}

/* ---- what a run has changed ---- */

static void changes_body(void)
{
    expect_put("data.csv", "1,2\n", 4);
    EXPECT_RUN("import os\nprint(open('data.csv').read())", "[out]1,2\n\n");
    EXPECT_TEXT(o.files.data, ""); /* the gateway's own file is no news */
    EXPECT_RUN("os.makedirs('out/deep')\nopen('out/deep/b', 'w').write('12')\n"
               "open('a\\n', 'w').close()\nos.symlink('a', 'link')\nopen('.hidden', 'w').close();",
               "");
    EXPECT_TEXT(o.files.data,
                "{\"path\":\"/home/user/a\\n\",\"size\":0,\"type\":\"file\"}\n"
                "{\"path\":\"/home/user/out/deep/b\",\"size\":2,\"type\":\"file\"}\n");
    EXPECT_RUN("1", "[result]{\"text/plain\":\"1\"}");
    EXPECT_TEXT(o.files.data, "");
    EXPECT_RUN("open('data.csv', 'a').write('3');", "");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/data.csv\",\"size\":5,\"type\":\"file\"}\n");
    EXPECT_RUN("os.rename('data.csv', 'c'); os.remove('a\\n')", "");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/c\",\"size\":5,\"type\":\"file\"}\n");
    exec("open('late', 'w').write('x'); 1 / 0");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/late\",\"size\":1,\"type\":\"file\"}\n");
    host_exec(box, "bash", "echo hi > from_bash", 19, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/from_bash\",\"size\":3,\"type\":\"file\"}\n");
    EXPECT_RUN("for i in range(130): open(f'm{i:03}', 'w').close()",
               "[err]\n[30 more files are new or changed]\n");
    EXPECT_PART(o.files.data, "{\"path\":\"/home/user/m");
    EXPECT_RUN("for i in range(8): os.mkdir('d'); os.chdir('d'); open(f'f{i}', 'w').close()", "");
    EXPECT_PART(o.files.data, "/home/user/d/d/d/d/d/d/d/f6\"");
    CU_ASSERT_PTR_NULL(strstr(o.files.data, "f7")); /* too deep */
    EXPECT_RUN("for i in range(500): os.mkdir('d'); os.chdir('d')", "");
    EXPECT_TEXT(o.files.data, "");
}

static void files_that_a_run_made_or_changed_are_told(void)
{
    with_box(changes_body);
}

/* The numbers of processes that each of two runs in a row makes: what is made between them takes one too. */
static long processes_between_runs(void)
{
    static const char code[] = "import os\np = os.fork()\nif p == 0: os._exit(0)\n"
                               "os.waitpid(p, 0)\nprint(p)";
    long least = LONG_MAX;
    for (int i = 0; i < 8; i++) {
        exec(code);
        long before = strtol(o.out.data, NULL, 10);
        exec(code);
        long between = strtol(o.out.data, NULL, 10) - before - 1;
        least = between < least ? between : least;
    }
    return least;
}

static void few_body(void)
{
    EXPECT_RUN("for i in range(16): open(f'{i:0200}', 'w').close()", "");
    CU_ASSERT_EQUAL(processes_between_runs(), 0); /* on a busy machine not each time */
    EXPECT_RUN("import os\nd = '/'.join('d' * 240 for _ in range(6)); os.makedirs(d)\n"
               "for i in range(16): open(f'{d}/{i:0240}', 'w').close()",
               "");
    size_t told = 0;
    for (const char *at = o.files.data; (at = strchr(at, '\n')) != NULL; at++) {
        told++;
    }
    CU_ASSERT_EQUAL(told, 16);
    EXPECT_RUN("for i in range(16): open(f'{i}', 'w').write(f'{i}');"
               "open('more', 'w').close();",
               "");
    EXPECT_PART(o.files.data, "{\"path\":\"/home/user/0\",\"size\":1,\"type\":\"file\"}\n"
                              "{\"path\":\"/home/user/1\",\"size\":1,\"type\":\"file\"}\n"
                              "{\"path\":\"/home/user/10\",\"size\":2,\"type\":\"file\"}\n");
    EXPECT_PART(o.files.data, "/home/user/9\",\"size\":1,\"type\":\"file\"}\n"
                              "{\"path\":\"/home/user/more\",\"size\":0,\"type\":\"file\"}\n");
}

static void few_files_are_looked_at_without_another_process(void)
{
    with_box(few_body);
}

/* The same once a worker has to look, and once it need not any more. */
static void large_home_body(void)
{
    EXPECT_RUN("for i in range(600): open(f'f{i}', 'w').close()",
               "[err]\n[500 more files are new or changed]\n");
    CU_ASSERT_TRUE(processes_between_runs() >= 1);
    EXPECT_TEXT(o.files.data, "");
    EXPECT_RUN("open('f599', 'w').write('x');", "");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/f599\",\"size\":1,\"type\":\"file\"}\n");
    EXPECT_RUN("for i in range(599): os.remove(f'f{i}')", "");
    EXPECT_TEXT(o.files.data, "");
    CU_ASSERT_EQUAL(processes_between_runs(), 0);
    EXPECT_RUN("open('f599', 'w').write('y' * 2); open('f0', 'w').close()", "");
    EXPECT_TEXT(o.files.data, "{\"path\":\"/home/user/f0\",\"size\":0,\"type\":\"file\"}\n"
                              "{\"path\":\"/home/user/f599\",\"size\":2,\"type\":\"file\"}\n");
}

static void changes_in_a_large_home_are_told_by_a_worker(void)
{
    with_box(large_home_body);
}

/* ---- where paths lead ---- */

/* The worker is in the box: what a path leads to is the box's own. */
static void escape_body(void)
{
    EXPECT_RUN(
        "import os\nos.symlink('/etc/passwd', 'p')\nos.symlink('/proc/1/root/etc/shadow', 's')",
        "");
    host_get(box, "p", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.out.data, "user:x:1000:1000:user:/home/user:/bin/bash\n");
    CU_ASSERT_PTR_NULL(strstr(o.out.data, "daemon"));
    host_get(box, "s", &o);
    CU_ASSERT_NOT_EQUAL(o.code, 0);
    host_get(box, "../../../../../../etc/shadow", &o);
    CU_ASSERT_NOT_EQUAL(o.code, 0);
    host_put(box, "p", "x", 1, &o);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
}

static void no_path_leads_out_of_the_box(void)
{
    with_box(escape_body);
}

static const struct test tests[] = {
    TEST(bytes_arrive_as_they_are_wherever_they_go),
    TEST(ten_mebibytes_are_the_most),
    TEST(what_is_no_file_is_refused_with_its_reason),
    TEST(a_folder_is_listed_in_order_with_any_names),
    TEST(a_folder_of_too_many_is_refused),
    TEST(a_file_is_replaced_whole_or_not_at_all),
    TEST(what_runs_in_the_background_does_not_get_between),
    TEST(files_are_served_while_code_runs),
    TEST(a_box_that_can_start_no_process_still_serves_its_files),
    TEST(a_worker_can_be_killed_but_not_looked_into),
    TEST(a_link_that_changes_all_the_time_leads_nowhere_else),
    TEST(what_proc_says_of_the_worker_itself_is_not_read),
    TEST(a_put_that_is_given_up_leaves_nothing_behind),
    TEST(a_put_that_is_overtaken_leaves_nothing_behind),
    TEST(a_box_that_ends_meanwhile_is_gone),
    TEST(files_that_a_run_made_or_changed_are_told),
    TEST(few_files_are_looked_at_without_another_process),
    TEST(changes_in_a_large_home_are_told_by_a_worker),
    TEST(no_path_leads_out_of_the_box),
};

int main(int argc, char **argv)
{
    return run_tests("local_files", tests, COUNT_OF(tests), argc, argv);
}
