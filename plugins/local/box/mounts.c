/* The box's own root: a small read-only tmpfs with the host's /usr (read-only), a few harmless files of its /etc, own
 * account files, six devices, a /proc of the box's processes in which what acts on the host or shows its secrets is
 * covered (the README tells what can be read), and one writable file system, of limited size and number of files, seen
 * as home, /tmp, /var/tmp and /dev/shm.
 *
 * Runs in the box's mount namespace with the host's files still in sight, and ends with them unmounted. Every cover
 * fails closed: that a path does not exist is the only error that is accepted. */
#include "box.h"
#include "include_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

INCLUDE_FILE(epoll_library, EPOLL_LIBRARY);
#define EPOLL_PATH "run/epoll.so"

/* So often may a file of the host be replaced while it is mounted. */
#define REPLACED_MAX 100

/* Where the new root is put together; hidden in the box's own mount namespace only. */
#define STAGE "/tmp"

/* Mounts what is seen at `source`, with all below it, at `target`. */
static bool bind(const char *source, const char *target, uint64_t attributes)
{
    int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) {
        return false;
    }
    struct mount_attr attr = {.attr_set = attributes};
    bool done = (attributes == 0 ||
                 mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) == 0) &&
                move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    int error = errno;
    close(tree);
    errno = error;
    return done;
}

static bool make_file(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return false;
    }
    bool done = len == 0 || write(fd, data, len) == (ssize_t)len;
    int error = errno;
    close(fd);
    errno = error;
    return done;
}

/* A file or folder of the host, if it is there. One that is put in its place meanwhile, as package managers do, is seen as one that
 * is not there: the kernel mounts nothing that was removed since it was opened. */
static bool bind_if_there(const char *source, const char *target, uint64_t attributes)
{
    bool is_folder = false;
    for (int tries = 0; tries < REPLACED_MAX; tries++) {
        struct stat st;
        if (stat(source, &st) != 0) {
            bool is_gone = errno == ENOENT || errno == ENOTDIR;
            return is_gone && (tries == 0 || (is_folder ? rmdir(target) : unlink(target)) == 0);
        }
        if (tries == 0) {
            is_folder = S_ISDIR(st.st_mode);
            bool made = is_folder ? mkdir(target, 0755) == 0 : make_file(target, "", 0);
            if (!made) {
                return false;
            }
        }
        if (bind(source, target, attributes)) {
            return true;
        }
        if (errno != ENOENT) {
            return false;
        }
    }
    return false;
}

static void make_folders(int status_fd)
{
    static const char *const folders[] = {"usr",     "etc",     "etc/ssl", "proc",      "dev",
                                          "dev/pts", "dev/shm", "home",    "home/user", "tmp",
                                          "var",     "var/tmp", "run",     "work"};
    static const char *const links[][2] = {
        {"usr/bin", "bin"},     {"usr/sbin", "sbin"},   {"usr/lib", "lib"},
        {"usr/lib64", "lib64"}, {"usr/lib32", "lib32"},
    };
    for (size_t i = 0; i < COUNT(folders); i++) {
        if (mkdir(folders[i], 0755) != 0) {
            box_fail(status_fd, "make folder /%s", folders[i]);
        }
    }
    for (size_t i = 0; i < COUNT(links); i++) {
        if (symlink(links[i][0], links[i][1]) != 0) {
            box_fail(status_fd, "make link /%s", links[i][1]);
        }
    }
}

static void make_driver(const struct box_limits *limits, int status_fd)
{
    /* The text also beside the compiled one, for its lines in messages. */
    if (!make_file(BOX_DRIVER_TEXT, driver_text, driver_text_len)) {
        box_fail(status_fd, "write /" BOX_DRIVER_TEXT);
    }
    if (limits->compiled != NULL &&
        !make_file(BOX_DRIVER_COMPILED, limits->compiled, limits->compiled_len)) {
        box_fail(status_fd, "write /" BOX_DRIVER_COMPILED);
    }
}

/* Where the filter refuses epoll, node has it from a library (epoll.c). All programs load it, and only those that hold libuv use
 * it: so node runs whoever starts it, and no variable has to be handed on. */
static void make_epoll(int status_fd)
{
    static const char list[] = "/" EPOLL_PATH "\n";
    if (!make_file(EPOLL_PATH, epoll_library, (size_t)(epoll_library_end - epoll_library)) ||
        !make_file("etc/ld.so.preload", list, sizeof list - 1)) {
        box_fail(status_fd, "write /" EPOLL_PATH);
    }
}

static void make_own_files(int status_fd)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        {"etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                       "user:x:1000:1000:user:/home/user:/bin/bash\n"
                       "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
        {"etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
        {"etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
        {"etc/hostname", "sandbox\n"},
        {"etc/resolv.conf", ""},
        {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        if (!make_file(files[i].path, files[i].text, strlen(files[i].text))) {
            box_fail(status_fd, "write /%s", files[i].path);
        }
    }
}

/* Python's own settings, for whatever version there is: /etc/python3, /etc/python3.11 … */
static void bind_python_settings(int status_fd)
{
    DIR *etc = opendir("/etc");
    if (etc == NULL) {
        box_fail(status_fd, "read /etc");
    }
    for (const struct dirent *entry; (entry = readdir(etc)) != NULL;) {
        char source[300], target[300];
        if (strncmp(entry->d_name, "python3", 7) == 0) {
            snprintf(source, sizeof source, "/etc/%s", entry->d_name);
            snprintf(target, sizeof target, "etc/%s", entry->d_name);
            if (!bind_if_there(source, target, READ_ONLY | MOUNT_ATTR_NOEXEC)) {
                box_fail(status_fd, "bind %s", source);
            }
        }
    }
    closedir(etc);
}

static void bind_host_files(int status_fd)
{
    static const char *const names[] = {"alternatives", "ld.so.cache", "matplotlibrc", "localtime",
                                        "mime.types",   "fonts",       "ssl/certs"};
    if (!bind("/usr", "usr", READ_ONLY)) {
        box_fail(status_fd, "bind /usr read-only");
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        char source[64], target[64];
        snprintf(source, sizeof source, "/etc/%s", names[i]);
        snprintf(target, sizeof target, "etc/%s", names[i]);
        if (!bind_if_there(source, target, READ_ONLY | MOUNT_ATTR_NOEXEC)) {
            box_fail(status_fd, "bind %s", source);
        }
    }
    bind_python_settings(status_fd);
}

/* Memory can be shared through the host's /dev/zero as well as without a file. Where it must not be, another device that reads the
 * same and cannot be mapped is in its place; but writing to that one fails. */
static const char *device_behind(const char *name, const struct box_limits *limits)
{
    return box_memory_is_polled(limits) && strcmp(name, "zero") == 0 ? "full" : name;
}

static void make_devices(const struct box_limits *limits, int status_fd)
{
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
                                           {"/proc/self/fd/0", "dev/stdin"},
                                           {"/proc/self/fd/1", "dev/stdout"},
                                           {"/proc/self/fd/2", "dev/stderr"},
                                           {"pts/ptmx", "dev/ptmx"}};
    for (size_t i = 0; i < COUNT(devices); i++) {
        char source[32], target[32];
        snprintf(source, sizeof source, "/dev/%s", device_behind(devices[i], limits));
        snprintf(target, sizeof target, "dev/%s", devices[i]);
        if (!make_file(target, "", 0) ||
            !bind(source, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) {
            box_fail(status_fd, "bind %s", source);
        }
    }
    for (size_t i = 0; i < COUNT(links); i++) {
        if (symlink(links[i][0], links[i][1]) != 0) {
            box_fail(status_fd, "make link /%s", links[i][1]);
        }
    }
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=620,max=16") != 0) {
        box_fail(status_fd, "mount devpts");
    }
}

static void mount_work(const struct box_limits *limits, int status_fd)
{
    char options[128];
    snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=755,huge=never",
             (unsigned long long)limits->disk_bytes, (unsigned long long)limits->inodes);
    if (mount("work", "work", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0) {
        return;
    }
    *strstr(options, ",huge=never") = '\0'; /* a kernel without huge pages does not know the word */
    if (mount("work", "work", "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) {
        box_fail(status_fd, "mount the box's disk (tmpfs)");
    }
}

/* One file system seen at four places, so that one quota holds for all. */
static void make_disk(const struct box_limits *limits, int status_fd)
{
    static const struct {
        const char *source, *target;
        mode_t mode;
        uint64_t attributes;
    } places[] = {{"work/home", "home/user", 0700, 0},
                  {"work/tmp", "tmp", 01777, 0},
                  {"work/vartmp", "var/tmp", 01777, 0},
                  {"work/shm", "dev/shm", 01777, MOUNT_ATTR_NOEXEC}};
    mount_work(limits, status_fd);
    for (size_t i = 0; i < COUNT(places); i++) {
        if (mkdir(places[i].source, 0700) != 0 || chmod(places[i].source, places[i].mode) != 0 ||
            !bind(places[i].source, places[i].target, places[i].attributes)) {
            box_fail(status_fd, "mount /%s", places[i].target);
        }
    }
    if (umount2("work", MNT_DETACH) != 0 || rmdir("work") != 0) {
        box_fail(status_fd, "hide the disk's own root");
    }
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 || errno != ENOENT;
}

static void cover_proc(int status_fd)
{
    static const char *const read_only[] = {"proc/sys", "proc/sysrq-trigger", "proc/irq",
                                            "proc/bus", "proc/fs"};
    static const char *const files[] = {
        "proc/kcore",     "proc/keys",    "proc/key-users",  "proc/timer_list",  "proc/sched_debug",
        "proc/kallsyms",  "proc/modules", "proc/kpageflags", "proc/kpagecount",  "proc/kpagecgroup",
        "proc/config.gz", "proc/cmdline", "proc/interrupts", "proc/vmallocinfo", "proc/slabinfo",
        "proc/kmsg",      "proc/locks"};
    static const char *const folders[] = {"proc/acpi", "proc/scsi", "proc/driver"};
    for (size_t i = 0; i < COUNT(read_only); i++) {
        if (is_there(read_only[i]) &&
            !bind(read_only[i], read_only[i], READ_ONLY | MOUNT_ATTR_NOEXEC)) {
            box_fail(status_fd, "make /%s read-only", read_only[i]);
        }
    }
    for (size_t i = 0; i < COUNT(files); i++) {
        if (is_there(files[i]) &&
            !bind("/dev/null", files[i],
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) {
            box_fail(status_fd, "cover /%s", files[i]);
        }
    }
    for (size_t i = 0; i < COUNT(folders); i++) {
        if (is_there(folders[i]) &&
            mount("none", folders[i], "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  "size=4k,nr_inodes=2") != 0) {
            box_fail(status_fd, "cover /%s", folders[i]);
        }
    }
}

/* Buffers of TCP count for the whole host: in the box's own network they are small, and few connections may wait. */
static void limit_network(int status_fd)
{
    static const char *const settings[][2] = {{"proc/sys/net/ipv4/tcp_rmem", "4096 32768 65536"},
                                              {"proc/sys/net/ipv4/tcp_wmem", "4096 16384 65536"},
                                              {"proc/sys/net/core/somaxconn", "16"}};
    for (size_t i = 0; i < COUNT(settings); i++) {
        int fd = open(settings[i][0], O_WRONLY | O_CLOEXEC);
        size_t len = strlen(settings[i][1]);
        bool is_set = fd >= 0 ? write(fd, settings[i][1], len) == (ssize_t)len : errno == ENOENT;
        if (!is_set) {
            box_fail(status_fd, "set /%s", settings[i][0]);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
}

/* Inherited by all in the box, who cannot lower it: /proc is read-only for them. When the machine runs out of memory a box
 * goes before the gateway. */
static void offer_to_oom_killer(void)
{
    int fd = open("proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "500", 3); /* not worth a failure: a host without it kills by size */
        close(fd);
    }
}

/* No further namespaces in the box. The files are opened before /proc/sys becomes read-only, and written after the last
 * mount: on new kernels no mount namespace left means that open_tree() fails as well. */
static const char *const ceilings[] = {"user", "net", "mnt", "pid", "cgroup", "ipc", "uts", "time"};

static void open_ceilings(int fds[COUNT(ceilings)])
{
    for (size_t i = 0; i < COUNT(ceilings); i++) {
        char path[64];
        snprintf(path, sizeof path, "proc/sys/user/max_%s_namespaces", ceilings[i]);
        fds[i] = open(path, O_WRONLY | O_CLOEXEC);
    }
}

static void write_ceilings(const int fds[COUNT(ceilings)], int status_fd)
{
    for (size_t i = 0; i < COUNT(ceilings); i++) {
        bool written = fds[i] >= 0 && write(fds[i], "0", 1) == 1;
        if (!written && i == 0) { /* the others are worth nothing without a user namespace */
            box_fail(status_fd, "forbid further user namespaces");
        }
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

static void change_root(int status_fd)
{
    if (syscall(SYS_pivot_root, ".", ".") != 0) {
        box_fail(status_fd, "change to the box's root (pivot_root)");
    }
    if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
        box_fail(status_fd, "leave the host's root");
    }
    struct mount_attr attr = {.attr_set = READ_ONLY};
    if (mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr) != 0) {
        box_fail(status_fd, "make the box's root read-only");
    }
}

/* The box's own files and folders, put together at STAGE. */
static void make_stage(const struct box_limits *limits, int status_fd)
{
    if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        box_fail(status_fd, "make mounts private");
    }
    if (mount("box", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=512k,nr_inodes=200,mode=755") !=
            0 ||
        chdir(STAGE) != 0) {
        box_fail(status_fd, "mount the box's root (tmpfs on " STAGE ")");
    }
    make_folders(status_fd);
    make_own_files(status_fd);
    make_driver(limits, status_fd);
    bind_host_files(status_fd);
    make_devices(limits, status_fd);
    make_disk(limits, status_fd);
}

void box_make_root(const struct box_limits *limits, int status_fd)
{
    int ceiling_fds[COUNT(ceilings)];
    make_stage(limits, status_fd);
    if (limits->uid_is_shared) {
        make_epoll(status_fd);
    }
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        box_fail(status_fd, "mount /proc");
    }
    offer_to_oom_killer();
    limit_network(status_fd);
    open_ceilings(ceiling_fds);
    cover_proc(status_fd);
    write_ceilings(ceiling_fds, status_fd);
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mount_setattr(AT_FDCWD, "proc", 0, &read_only, sizeof read_only) != 0) {
        box_fail(status_fd, "make /proc read-only");
    }
    change_root(status_fd);
}

void template_make_root(const struct box_limits *limits, int status_fd)
{
    make_stage(limits, status_fd);
    /* The host's, as it is: a box may mount its own only where one is in full sight. */
    if (!bind("/proc", "proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)) {
        box_fail(status_fd, "bind /proc");
    }
    offer_to_oom_killer();
    change_root(status_fd);
}
