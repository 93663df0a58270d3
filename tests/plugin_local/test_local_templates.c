/* What templates load, what they say about it, and that they are made anew when packages change. A folder of packages is
 * made in a mount namespace of a child process, so that the machine's own stay as they are. */
#include "fixture.h"

#include "base/log.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is logged ---- */

static char logged[8192];

/* Opens the provider, runs the body, and keeps what was logged meanwhile. */
static void with_log(const struct host_options *options, void (*body)(void))
{
    FILE *file = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    log_set_fd(fileno(file));
    without_box(options, body);
    log_set_fd(2);
    rewind(file);
    logged[fread(logged, 1, sizeof logged - 1, file)] = '\0';
    fclose(file);
}

static void nothing(void)
{
}

static void expect_refused(const char *const *preload, const char *message)
{
    struct host_options options = {.preload = preload};
    host_run(open_fiber, &options);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_TEXT(e.message, message);
}

static void options_that_name_no_module_are_refused(void)
{
    static const char *const wrong[] = {"numpy", "os;import sys", NULL};
    static const char *const odd[] = {"matplotlib.", NULL};
    const char *many[34];
    for (int i = 0; i < 33; i++) {
        many[i] = "json";
    }
    many[33] = NULL;
    expect_refused(wrong, "local (box): 'preload' must name Python modules, as "
                          "'matplotlib.pyplot', not 'os;import sys'");
    expect_refused(odd, "local (box): 'preload' must name Python modules, as 'matplotlib.pyplot', "
                        "not 'matplotlib.'");
    expect_refused(many, "local (box): 'preload' may name at most 32 modules");
}

static void loaded_body(void)
{
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN(
        "import sys\n"
        "print([name in sys.modules for name in ('decimal', 'xml.dom', 'tabnanny')], 'decimal' in "
        "globals())",
        "[out][True, True, False] False\n");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
}

static void modules_are_loaded_and_one_that_is_missing_is_told_once(void)
{
    static const char *const modules[] = {"decimal", "no_such_module", "xml.dom", NULL};
    with_log(&(struct host_options){.preload = modules}, loaded_body);
    const char *said = strstr(logged, "'preload': 'no_such_module' is not installed");
    CU_ASSERT_PTR_NOT_NULL_FATAL(said);
    CU_ASSERT_PTR_NULL(strstr(said + 1, "'preload'"));
    CU_ASSERT_PTR_NULL(strstr(logged, "boxes start slower"));
}

/* ---- packages of our own ---- */

#ifdef __SANITIZE_THREAD__
#define CAN_MAKE_PACKAGES false /* its own thread keeps a process out of a user namespace */
#else
#define CAN_MAKE_PACKAGES true
#endif

static char folder[256];

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        _exit(90);
    }
    close(fd);
}

static void write_module(const char *name, const char *text)
{
    char path[512], temporary[512];
    snprintf(path, sizeof path, "%s/%s.py", folder, name);
    snprintf(temporary, sizeof temporary, "%s/%s.new", folder, name);
    write_text(temporary, text);
    CU_ASSERT_EQUAL(rename(temporary, path), 0); /* as package managers do */
}

/* An empty folder of packages in a mount namespace of this process. */
static bool enter_packages(void)
{
    glob_t found;
    char line[64];
    if (glob("/usr/local/lib/python3*/dist-packages", 0, NULL, &found) != 0) {
        return false;
    }
    snprintf(folder, sizeof folder, "%s", found.gl_pathv[0]);
    globfree(&found);
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        _exit(91);
    }
    if (uid != 0) {
        write_text("/proc/self/setgroups", "deny");
        snprintf(line, sizeof line, "1000 %u 1\n", uid);
        write_text("/proc/self/uid_map", line);
        snprintf(line, sizeof line, "1000 %u 1\n", gid);
        write_text("/proc/self/gid_map", line);
    }
    return mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("packages", folder, "tmpfs", 0, "mode=755") == 0;
}

static unsigned failures_in_child(void (*test)(void))
{
    pid_t pid = fork();
    int status = -1;
    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        unsigned before = CU_get_number_of_failures();
        if (enter_packages()) {
            test();
        }
        for (CU_pFailureRecord at = CU_get_failure_list(); at != NULL; at = at->pNext) {
            fprintf(stderr, "in the child: %s:%u: %s\n", at->strFileName, at->uiLineNumber,
                    at->strCondition);
        }
        _exit(CU_get_number_of_failures() == before ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return status == 0 ? 0 : 1;
}

static void in_child(void (*test)(void))
{
    if (CAN_MAKE_PACKAGES) {
        CU_ASSERT_EQUAL(failures_in_child(test), 0);
    }
}

static const char *const ours[] = {"our_package", NULL};

static void broken_packages(void)
{
    write_module("our_package", "raise RuntimeError('out of order')");
    with_log(&(struct host_options){.preload = ours}, nothing);
    EXPECT_PART(logged, "'preload': 'our_package' cannot be loaded: RuntimeError: out of order");
    write_module("our_package",
                 "import threading\n"
                 "threading.Thread(target=threading.Event().wait, daemon=True).start()");
    with_log(&(struct host_options){.preload = ours}, nothing);
    EXPECT_PART(logged, "boxes start slower, since there is no template of the interpreter: "
                        "'preload': the module 'our_package' starts threads, which cannot be "
                        "copied; leave it out");
    EXPECT_PART(logged, "the test container passed");
    write_module("our_package", "import os\nos._exit(3)");
    with_log(&(struct host_options){.preload = ours}, nothing);
    EXPECT_PART(logged, "there is no template of the interpreter: it ended");
    EXPECT_PART(logged, "the test container passed");
}

static void a_package_that_cannot_be_loaded_is_told_and_boxes_work(void)
{
    in_child(broken_packages);
}

/* The packages of a template see neither network nor host, and are not root. */
static void curious_body(void)
{
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("import our_package\nprint(*our_package.seen)",
               "[out]['lo'] FileNotFoundError True 0000000000000000\n");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
}

static void curious_package(void)
{
    write_module(
        "our_package",
        "import os, socket\n"
        "status = open('/proc/self/status').read()\n"
        "try: shadow = open('/etc/shadow')\n"
        "except OSError as error: shadow = type(error).__name__\n"
        "mask = ~0xc0 if os.getuid() != 1000 else ~0\n"
        "seen = [[name for _, name in socket.if_nameindex()], shadow, os.getuid() > 0,\n"
        "        format(int(status.split('CapEff:\\t')[1].split()[0], 16) & mask, '016x')]");
    with_log(&(struct host_options){.preload = ours}, curious_body);
    CU_ASSERT_PTR_NULL(strstr(logged, "boxes start slower"));
}

static void packages_are_loaded_away_from_the_host(void)
{
    in_child(curious_package);
}

static const char version[] = "import our_package\nprint(our_package.version)";

static void rebuilt_body(void)
{
    char first[128];
    pid_t before;
    CU_ASSERT_EQUAL(host_create(600000, first, &e), 0);
    CU_ASSERT_EQUAL(host_templates(&before, 1), 1);
    write_module("our_package", "version = 2");
    do { /* the change is seen when the pool is looked after */
        CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
        exec(version);
        CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    } while (strcmp(o.all.data, "[out]2\n") != 0 && strcmp(o.all.data, "[out]1\n") == 0);
    EXPECT_TEXT(o.all.data, "[out]2\n");
    CU_ASSERT_TRUE(host_await_template_but(before) > 0); /* it ends once it has nobody to serve */
    host_exec(first, NULL, version, sizeof version - 1, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.all.data, "[out]1\n"); /* a session keeps what it began with */
    CU_ASSERT_EQUAL(host_destroy(first, &e), 0);
}

static void changed_package(void)
{
    write_module("our_package", "version = 1");
    without_box(&(struct host_options){.preload = ours, .pool = 1}, rebuilt_body);
}

static void a_template_is_made_anew_when_packages_change(void)
{
    in_child(changed_package);
}

/* 'memory' is the box's own: what a template has loaded, and nobody has written to since, comes on top. */
static void large_body(void)
{
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("import our_package\n"
               "mine = bytearray(70 << 20)\n"
               "print(len(our_package.held) >> 20, len(mine) >> 20)",
               "[out]150 70\n");
    exec("del mine\nmore = bytearray(120 << 20)");
    EXPECT_PART(o.exception.data, "MemoryError");
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
}

static void large_package(void)
{
    write_module("our_package", "held = bytearray(b'x') * (150 << 20)");
    with_log(&(struct host_options){.preload = ours, .memory = 100 << 20, .disk = 8 << 20},
             large_body);
}

static void what_a_template_has_loaded_does_not_count_as_a_boxes_memory(void)
{
    in_child(large_package);
}

static const struct test tests[] = {
    TEST(options_that_name_no_module_are_refused),
    TEST(modules_are_loaded_and_one_that_is_missing_is_told_once),
    TEST(a_package_that_cannot_be_loaded_is_told_and_boxes_work),
    TEST(packages_are_loaded_away_from_the_host),
    TEST(a_template_is_made_anew_when_packages_change),
    TEST(what_a_template_has_loaded_does_not_count_as_a_boxes_memory),
};

int main(int argc, char **argv)
{
    return run_tests("local_templates", tests, COUNT_OF(tests), argc, argv);
}
