/* Files of a box through the gateway's functions: bytes, bounds, what is refused and how, and a box whose interpreter's
 * side answers as it should not. Every test makes a real box. */
#include "fixture.h"

#include "loop/loop.h"

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
    EXPECT_RUN("import os\nos.mkdir('m')\nfor i in range(10000): open(f'm/{i}', 'w').close()", "");
    host_list(box, "m", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    CU_ASSERT_EQUAL(o.pieces, 10000);
    EXPECT_RUN("open('m/more', 'w').close()", "");
    EXPECT_REFUSED(host_list, "m", SG_E_LIMIT, "'m' has more than 10000 entries");
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

/* ---- a box that answers as it should not ---- */

/* Puts a function of the code's own in the place of the driver's; `self.control` is the connection. */
#define MEDDLE(function)                                                          \
    "import gc, os\n"                                                             \
    "driver = [o for o in gc.get_objects() if type(o).__name__ == 'Driver'][0]\n" \
    "control = driver.control\n"                                                  \
    "def serve(kind, nonce, name):\n" function "\n"                               \
    "driver.files.serve = serve\n"

static void too_much_body(void)
{
    EXPECT_RUN(MEDDLE("    while True: control.send(b'D', b'x' * 30000)"), "");
    EXPECT_REFUSED(host_get, "a", SG_E_LIMIT, "'a' is larger than 10MiB");
    CU_ASSERT_TRUE(o.out.len <= 10 * MIB);
    EXPECT_RUN("'alive'", "[result]{\"text/plain\":\"'alive'\"}");
}

static void more_than_a_file_has_is_not_taken(void)
{
    with_box(too_much_body);
}

static void endless_body(void)
{
    EXPECT_RUN(MEDDLE("    while True: control.send(b'N', b'\\0' * 9 + b'a' * 200)"), "");
    EXPECT_REFUSED(host_list, "d", SG_E_LIMIT, "'d' has more than 10000 entries");
    CU_ASSERT_EQUAL(o.pieces, 10000);
    EXPECT_RUN(MEDDLE("    while True: control.send(b'O', b'x' * 30000)"), "");
    EXPECT_REFUSED(host_get, "a", SG_E_UNAVAILABLE,
                   "the container answered with more than any file has");
    EXPECT_RUN("'alive'", "[result]{\"text/plain\":\"'alive'\"}");
}

static void an_answer_without_end_is_ended(void)
{
    with_box(endless_body);
}

static void wrong_body(void)
{
    EXPECT_RUN(MEDDLE("    n = control.nonce\n"
                      "    def raw(d): os.write(3, d)\n"
                      "    raw(b'D'); raw(b''); raw(b'Z\\0' + n); raw(b'D\\x07' + n + b'flags')\n"
                      "    raw(b'D\\0' + bytes(8) + b'old nonce'); raw(b'Q\\0' + n + b'\\x63')\n"
                      "    raw(b'N\\0' + n + bytes(9) + b'a/b'); raw(b'N\\0' + n + b'\\x09' * 10)\n"
                      "    raw(b'N\\0' + n + bytes(9) + b'a' * 256); raw(b'N\\0' + n + bytes(9))\n"
                      "    raw(b'C\\0' + n + b'\\1'); raw(b'X\\0' + n + b'\\0name')\n"
                      "    raw(b'N\\0' + n + bytes(9) + b'good'); raw(b'D\\0' + n + b'good')"),
               "");
    host_list(box, "d", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.all.data, "[file]{\"path\":\"/home/user/d/good\",\"size\":0,\"type\":\"file\"}");
    host_get(box, "d", &o);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.all.data, "[data]good");
    host_put(box, "d", "x", 1, &o);
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.all.data, "");
}

static void frames_that_are_none_are_dropped(void)
{
    with_box(wrong_body);
}

static void silent_body(void)
{
    EXPECT_RUN(MEDDLE("    import time\n    time.sleep(1000)"), "");
    int64_t before = clock_ms();
    EXPECT_REFUSED(host_get, "a", SG_E_TIMEOUT, "the container did not answer in time");
    CU_ASSERT_TRUE(clock_ms() - before < 25000);
    EXPECT_RUN("'alive'", "[result]{\"text/plain\":\"'alive'\"}"); /* it reacts to the interrupt */
}

static void a_box_that_never_answers_is_waited_for_no_longer_than_it_may(void)
{
    with_box(silent_body);
}

static void deaf_body(void)
{
    EXPECT_RUN(MEDDLE("    import signal, time\n"
                      "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    time.sleep(1000)"),
               "");
    struct sg_error abandoned = {0};
    host_put_abandon(box, "a", 10 * MIB, 300, &abandoned); /* it takes nothing of the content */
    CU_ASSERT_NOT_EQUAL(abandoned.code, 0);
    exec("1");
    CU_ASSERT_EQUAL(o.code, SG_E_GONE_BEFORE);
    EXPECT_PART(o.error.message, "the code of an earlier run did not stop and was killed");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
}

static void a_box_that_does_not_react_is_ended(void)
{
    with_box(deaf_body);
}

static void exits_body(void)
{
    EXPECT_RUN(MEDDLE("    os._exit(7)"), "");
    EXPECT_REFUSED(host_get, "a", SG_E_GONE,
                   "the interpreter exited with status 7; variables and files are gone");
    EXPECT_REFUSED(host_get, "a", SG_E_GONE_BEFORE, "the container no longer exists");
    EXPECT_PUT_REFUSED("a", SG_E_GONE_BEFORE, "the container no longer exists");
    EXPECT_REFUSED(host_list, "a", SG_E_GONE_BEFORE, "the container no longer exists");
    CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
}

static void a_box_that_ends_meanwhile_is_gone(void)
{
    with_box(exits_body);
}

/* The interpreter's side is in the box: what a path leads to is the box's own. */
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
    TEST(more_than_a_file_has_is_not_taken),
    TEST(an_answer_without_end_is_ended),
    TEST(frames_that_are_none_are_dropped),
    TEST(a_box_that_never_answers_is_waited_for_no_longer_than_it_may),
    TEST(a_box_that_does_not_react_is_ended),
    TEST(a_box_that_ends_meanwhile_is_gone),
    TEST(no_path_leads_out_of_the_box),
};

int main(int argc, char **argv)
{
    return run_tests("local_files", tests, COUNT_OF(tests), argc, argv);
}
