/* Where no box can be made, the provider refuses to start and says what failed and what to do. The systems that refuse
 * are made here: a child process enters a user namespace of its own and changes what it needs to. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_refused(struct host_options options, const char *message)
{
    host_run(open_fiber, &options);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message, message);
    CU_ASSERT_EQUAL(host_broker_pid(), -1); /* and nothing is left */
}

static void options_that_cannot_work_are_refused(void)
{
    expect_refused((struct host_options){.python = "/opt/python/bin/python3"},
                   "local (box): 'python' must be a path under /usr, all that a container sees of "
                   "the machine, not '/opt/python/bin/python3'");
    expect_refused((struct host_options){.python = "/usr/../opt/python3"}, "'python' must be");
    expect_refused((struct host_options){.memory = 128 << 20, .disk = 100 << 20},
                   "local (box): 'memory' must be at least 64MiB more than 'disk', which lies in "
                   "it: 134217728 and 104857600 bytes");
}

static void a_system_without_python_is_told_so(void)
{
    expect_refused((struct host_options){.python = "/usr/bin/python9"},
                   "local (box): cannot run '/usr/bin/python9' in the box: No such file or "
                   "directory. Install Python 3 (Debian: apt-get install python3), or name the "
                   "interpreter with 'python'; it must stand under /usr");
    expect_refused((struct host_options){.python = "/usr/share"},
                   "local (box): cannot run '/usr/share' in the box: Permission denied. The option "
                   "'python' must name a Python 3 interpreter under /usr");
    expect_refused((struct host_options){.python = "/usr/bin/true"},
                   "local (box): the interpreter did not start: the interpreter exited with status "
                   "0");
}

/* ---- systems that refuse ---- */

/* ThreadSanitizer has a thread of its own, and a process with threads cannot enter a user namespace. */
#ifdef __SANITIZE_THREAD__
#define CAN_MAKE_SYSTEMS false
#else
#define CAN_MAKE_SYSTEMS true
#endif

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        _exit(90);
    }
    close(fd);
}

/* Enters a user and mount namespace of its own, under a uid and with all capabilities there. */
static void enter_namespaces(unsigned uid)
{
    char uid_line[64], gid_line[64];
    snprintf(uid_line, sizeof uid_line, "%u %u 1\n", uid, (unsigned)geteuid());
    snprintf(gid_line, sizeof gid_line, "%u %u 1\n", uid, (unsigned)getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        _exit(91);
    }
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", uid_line);
    write_text("/proc/self/gid_map", gid_line);
}

/* Opens the provider in a child that has made such a system; gives its code and message back. */
static void open_in(void (*make_system)(void))
{
    static struct {
        int code;
        struct sg_error error;
    } told;
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t pid = fork();
    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        make_system();
        host_run(open_fiber, NULL);
        told.code = open_code;
        told.error.code = e.code; /* behind the end of its message there may be anything */
        snprintf(told.error.message, sizeof told.error.message, "%s", e.message);
        _exit(write(ends[1], &told, sizeof told) == (ssize_t)sizeof told ? 0 : 92);
    }
    close(ends[1]);
    told.code = -1;
    CU_ASSERT_EQUAL(read(ends[0], &told, sizeof told), (ssize_t)sizeof told);
    close(ends[0]);
    int status = -1;
    waitpid(pid, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    open_code = told.code;
    e = told.error;
}

static void no_user_namespaces_left(void)
{
    enter_namespaces(1000);
    write_text("/proc/sys/user/max_user_namespaces", "0");
}

static void a_system_without_user_namespaces_is_told_which_setting(void)
{
    if (!CAN_MAKE_SYSTEMS) {
        return;
    }
    open_in(no_user_namespaces_left);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message,
                "local (box): cannot create namespaces (clone3): No space left on device. "
                "user.max_user_namespaces is 0: set it to some thousands");
}

/* One /proc in full sight, wherever it is mounted, would do: all are covered. */
static void covered_proc(void)
{
    char places[16][256], device[256], type[64], path[300];
    int count = 0;
    enter_namespaces(1000);
    FILE *mounts = fopen("/proc/self/mounts", "re");
    while (mounts != NULL && count < 16 &&
           fscanf(mounts, "%255s %255s %63s%*[^\n]", device, places[count], type) == 3) {
        count += strcmp(type, "proc") == 0;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%.255s/keys", places[i]);
        if (mount("/dev/null", path, "none", MS_BIND, NULL) != 0) {
            _exit(93);
        }
    }
    fclose(mounts);
}

static void a_covered_proc_is_told_with_its_remedies(void)
{
    if (!CAN_MAKE_SYSTEMS) {
        return;
    }
    open_in(covered_proc);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message,
                "local (box): cannot mount /proc: Operation not permitted. Parts of /proc "
                "are covered, as in a container. Start the container with --security-opt "
                "unmask=ALL (podman)");
}

static void uids_that_are_not_there(void)
{
    enter_namespaces(0); /* root, and no other uid is there */
}

static void root_without_uids_for_boxes_is_told_so(void)
{
    if (!CAN_MAKE_SYSTEMS) {
        return;
    }
    open_in(uids_that_are_not_there);
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message,
                "local (box): cannot use the host uid of a box: Invalid argument. The uids "
                "from 'uid_base' on must exist in the gateway's own user namespace: "
                "choose 'uid_base' by /proc/self/uid_map.");
}

static void an_ordinary_system_is_accepted(void)
{
    struct host_options options = {0};
    host_run(open_fiber, &options);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL(open_code, 0);
}

/* ---- who runs as what ---- */

/* A number of /proc/PID/status; -1 if there is none. */
static long long status_of(long long pid, const char *name, int base)
{
    char path[64], line[256];
    long long number = -1;
    snprintf(path, sizeof path, "/proc/%lld/status", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            number = strtoll(line + strlen(name), NULL, base);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

/* The host uids of the pid 1s of two boxes. */
static void box_uids(long long uids[2])
{
    pid_t pids[2];
    CU_ASSERT_TRUE_FATAL(host_await_boxes(2, pids));
    for (size_t i = 0; i < 2; i++) {
        uids[i] = status_of(pids[i], "Uid:", 10);
    }
}

static void identity_body(void)
{
    char second[128];
    long long uids[2];
    CU_ASSERT_EQUAL(host_create(600000, second, &e), 0);
    box_uids(uids);
    if (geteuid() == 0) {
        CU_ASSERT_TRUE(uids[0] >= 70000 && uids[0] < 70010);
        CU_ASSERT_TRUE(uids[1] >= 70000 && uids[1] < 70010);
        CU_ASSERT_NOT_EQUAL(uids[0], uids[1]);
        /* CHOWN, SETGID, SETUID, SYS_ADMIN, as far as this root has them */
        CU_ASSERT_EQUAL(status_of(host_broker_pid(), "CapEff:", 16),
                        status_of(getpid(), "CapEff:", 16) & 0x2000c1);
    } else {
        CU_ASSERT_EQUAL(uids[0], (long long)geteuid());
        CU_ASSERT_EQUAL(uids[1], (long long)geteuid());
        CU_ASSERT_EQUAL(status_of(host_broker_pid(), "CapEff:", 16), 0);
    }
    CU_ASSERT_EQUAL(host_destroy(second, &e), 0);
}

static void boxes_of_root_have_uids_of_their_own_and_the_broker_few_privileges(void)
{
    with_options(&(struct host_options){.uid_base = 70000, .boxes = 10}, identity_body);
}

static const struct test tests[] = {
    TEST(an_ordinary_system_is_accepted),
    TEST(options_that_cannot_work_are_refused),
    TEST(a_system_without_python_is_told_so),
    TEST(a_system_without_user_namespaces_is_told_which_setting),
    TEST(a_covered_proc_is_told_with_its_remedies),
    TEST(root_without_uids_for_boxes_is_told_so),
    TEST(boxes_of_root_have_uids_of_their_own_and_the_broker_few_privileges),
};

int main(int argc, char **argv)
{
    return run_tests("local_start", tests, COUNT_OF(tests), argc, argv);
}
