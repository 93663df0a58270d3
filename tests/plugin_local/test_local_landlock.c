/* The rules for files of a box, by themselves: in a box the mounts forbid the same before Landlock is asked, so that it would not be
 * missed. Here a child of the test takes them upon itself, in the system's own root, where nothing else is in the way. */
#include "box/box.h"

#include "cunit_main.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void box_fail(int status_fd, const char *format, ...)
{
    (void)status_fd;
    fprintf(stderr, "%s: %m\n", format);
    _exit(90);
}

static bool is_missing(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 2) {
        fprintf(stderr, "not tested: the kernel has no Landlock ");
    }
    return abi < 2;
}

/* errno of an attempt; 0: it went well. */
static int opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

/* A folder /home/user, in a mount namespace of its own. */
static bool make_home(void)
{
    char uid_line[64], gid_line[64];
    snprintf(uid_line, sizeof uid_line, "0 %u 1\n", (unsigned)geteuid());
    snprintf(gid_line, sizeof gid_line, "0 %u 1\n", (unsigned)getegid());
    if (geteuid() != 0 &&
        (unshare(CLONE_NEWUSER) != 0 || !write_text("/proc/self/setgroups", "deny") ||
         !write_text("/proc/self/uid_map", uid_line) ||
         !write_text("/proc/self/gid_map", gid_line))) {
        return false;
    }
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/home", "tmpfs", 0, NULL) == 0 && mkdir("/home/user", 0755) == 0;
}

static void in_child(void (*body)(const char *))
{
    char folder[] = "/tmp/sandgate-landlock-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    pid_t pid = fork();
    if (pid == 0) {
        if (!make_home() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
            fprintf(stderr, "no place for the test: %m\n");
            _exit(91);
        }
        body(folder);
        _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

#define STEP(condition)                                                 \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: %s: %m\n", __LINE__, #condition); \
            _exit(1);                                                   \
        }                                                               \
    } while (0)

static void within(const char *folder)
{
    char file[100], moved[100], below[100];
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/below", folder);
    snprintf(moved, sizeof moved, "%s/below/moved", folder);
    box_set_landlock(-1);
    STEP(opened(file, O_WRONLY | O_CREAT | O_EXCL) == 0);
    STEP(opened(file, O_WRONLY | O_TRUNC) == 0);
    STEP(truncate(file, 10) == 0);
    STEP(mkdir(below, 0700) == 0);
    STEP(rename(file, moved) == 0); /* between folders */
    STEP(link(moved, file) == 0);
    STEP(symlink("x", "/tmp/sandgate-landlock-link") == 0);
    STEP(unlink("/tmp/sandgate-landlock-link") == 0);
    STEP(mkfifo("/dev/shm/sandgate-landlock-fifo", 0600) == 0);
    STEP(unlink("/dev/shm/sandgate-landlock-fifo") == 0);
    STEP(unlink(file) == 0 && unlink(moved) == 0 && rmdir(below) == 0);
    STEP(opened("/dev/null", O_RDWR | O_TRUNC) == 0);
    STEP(opened("/etc/passwd", O_RDONLY) == 0);
    STEP(opened("/", O_RDONLY | O_DIRECTORY) == 0);
    STEP(access("/usr/bin/env", X_OK) == 0);
}

static void what_a_box_may_write_can_be_written(void)
{
    if (!is_missing()) {
        in_child(within);
    }
}

static void beyond(const char *folder)
{
    char device[100];
    int leaked = open("/var", O_PATH | O_DIRECTORY | O_CLOEXEC); /* a descriptor is no way round */
    snprintf(device, sizeof device, "%s/device", folder);
    box_set_landlock(-1);
    /* (An ordinary user would be refused anyway, and root by nothing else.) */
    STEP(opened("/var/sandgate-landlock", O_WRONLY | O_CREAT) == EACCES);
    STEP(openat(leaked, "sandgate-landlock", O_WRONLY | O_CREAT, 0600) < 0);
    STEP(errno == EACCES);
    STEP((mkdir("/var/sandgate-landlock", 0700) < 0 && errno == EACCES));
    STEP(opened("/etc/passwd", O_WRONLY) == EACCES);
    STEP(mknod(device, S_IFCHR | 0600, 0x103) < 0 && errno == EACCES);
    STEP(opened("/proc/self/comm", O_WRONLY) == EACCES);
}

static void nothing_else_can_be_written(void)
{
    if (!is_missing()) {
        in_child(beyond);
    }
}

static const struct test tests[] = {
    TEST(what_a_box_may_write_can_be_written),
    TEST(nothing_else_can_be_written),
};

int main(int argc, char **argv)
{
    return run_tests("local_landlock", tests, COUNT_OF(tests), argc, argv);
}
