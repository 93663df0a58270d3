/* Memory of a box where no control group limits it: what all its processes hold, looked at by pid 1 again and again.
 *
 * In use is, summed over the processes: anonymous and shared-memory pages, and page tables (which a process can fill
 * by only reading far apart); and the disk, which is memory too. Counting pages by process counts those that a fork
 * shares more than once, so an excess is confirmed by proportional shares before anything is killed. Shared anonymous
 * mappings keep their pages when a process drops them from its own tables (MADV_DONTNEED), or unmaps all but one of them,
 * which cannot be seen: the filter gives a box none. Those that it has from its template count with their full size, each
 * mapping once, once there is much of them.
 *
 * RLIMIT_DATA bounds every single process besides, so that the common excess is a MemoryError and kills nothing. */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX \
    20000 /* of maps read in one look; processes beyond count with all they could have */
#define MAPPINGS_MAX 1024 /* shared anonymous mappings told apart; more count twice */

struct process {
    pid_t pid;
    pid_t thread;    /* under whose number its memory can be read */
    uint64_t own;    /* anonymous pages and page tables */
    uint64_t shared; /* shared memory */
    uint64_t slack;  /* mapped, but neither private data nor code: may be shared anonymous memory */
};

struct mapping {
    uint64_t inode, bytes;
};

struct look {
    struct process processes[WATCH_PIDS_MAX];
    size_t count;
    struct mapping mappings[MAPPINGS_MAX];
    size_t mapping_count;
    size_t lines_left;
};

static uint64_t held_by(const struct process *process)
{
    return process->own + process->shared;
}

static uint64_t disk_bytes(void)
{
    struct statfs fs;
    if (statfs("/home/user", &fs) != 0) {
        return 0;
    }
    return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* The start of a file under /proc/PID, ended by a NUL. */
static bool proc_read(int proc_fd, pid_t pid, const char *name, char *ret_text, size_t size)
{
    char path[48];
    snprintf(path, sizeof path, "%d/%s", (int)pid, name);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t len = read(fd, ret_text, size - 1);
    close(fd);
    ret_text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* A line "Name:   123 kB" as bytes; 0 if there is none. `name` starts with its line feed. */
static uint64_t field_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) * 1024;
}

static int64_t cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock = (clockid_t)((~(unsigned)pid << 3) | 2u); /* its processor time, all threads */
    return clock_gettime(clock, &used) != 0 ? -1 : (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

bool memory_may_have_grown(const struct memory_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (cpu_ns(watch->pids[i]) != watch->cpu_ns[i]) {
            return true;
        }
    }
    return watch->count == 0;
}

static int maps_open(const struct memory_watch *watch, pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "%d/maps", (int)pid);
    return openat(watch->proc_fd, path, O_RDONLY | O_CLOEXEC);
}

static bool hides_itself(int error)
{
    return error == EACCES || error == EPERM;
}

bool memory_is_shown(const struct memory_watch *watch, pid_t pid)
{
    int fd = maps_open(watch, pid);
    if (fd < 0) {
        return !hides_itself(errno);
    }
    close(fd);
    return true;
}

static void processes_list(struct memory_watch *watch)
{
    struct {
        char bytes[8192];
    } __attribute__((aligned(8))) names;
    long len;
    watch->count = 0;
    lseek(watch->proc_fd, 0, SEEK_SET);
    while ((len = syscall(SYS_getdents64, watch->proc_fd, names.bytes, sizeof names.bytes)) > 0) {
        for (long at = 0; at < len;) {
            const struct dirent64 *entry = (const void *)(names.bytes + at);
            at += entry->d_reclen;
            long pid = strtol(entry->d_name, NULL, 10);
            if (pid > 1 && pid != watch->worker && watch->count < WATCH_PIDS_MAX) {
                watch->cpu_ns[watch->count] = cpu_ns((pid_t)pid);
                watch->pids[watch->count++] = (int32_t)pid;
            }
        }
    }
}

static bool status_read(int proc_fd, pid_t pid, char *ret_text, size_t size)
{
    return proc_read(proc_fd, pid, "status", ret_text, size) &&
           strstr(ret_text, "\nVmSize:") != NULL;
}

/* The status of a process by a thread that lives: one whose first thread has ended shows no memory under its own number.
 * 0: it has ended, or is about to. */
static pid_t thread_status_read(int proc_fd, pid_t pid, char *ret_text, size_t size)
{
    char path[32];
    if (status_read(proc_fd, pid, ret_text, size)) {
        return pid;
    }
    snprintf(path, sizeof path, "%d/task", (int)pid);
    int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
    if (tasks == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    pid_t found = 0;
    const struct dirent *entry;
    while (found == 0 && (entry = readdir(tasks)) != NULL) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != pid && status_read(proc_fd, thread, ret_text, size)) {
            found = thread;
        }
    }
    closedir(tasks);
    return found;
}

static uint64_t processes_measure(const struct memory_watch *watch, struct look *look)
{
    char text[4096];
    uint64_t sum = 0;
    look->count = 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct process *process = &look->processes[look->count];
        *process = (struct process){.pid = watch->pids[i]};
        process->thread = thread_status_read(watch->proc_fd, process->pid, text, sizeof text);
        if (process->thread == 0) {
            continue; /* it has ended */
        }
        process->own = field_bytes(text, "\nRssAnon:") + field_bytes(text, "\nVmPTE:") +
                       field_bytes(text, "\nVmSwap:");
        process->shared = field_bytes(text, "\nRssShmem:");
        uint64_t known = field_bytes(text, "\nVmData:") + field_bytes(text, "\nVmStk:") +
                         field_bytes(text, "\nVmExe:") + field_bytes(text, "\nVmLib:");
        uint64_t size = field_bytes(text, "\nVmSize:");
        process->slack = size > known ? size - known : 0;
        sum += held_by(process);
        look->count++;
    }
    return sum;
}

/* Proportional shares in place of whole pages. A process that hides itself (not dumpable) keeps what it had. */
static uint64_t processes_confirm(const struct memory_watch *watch, struct look *look)
{
    char text[4096];
    uint64_t sum = 0;
    for (size_t i = 0; i < look->count; i++) {
        struct process *process = &look->processes[i];
        if (proc_read(watch->proc_fd, process->thread, "smaps_rollup", text, sizeof text) &&
            strstr(text, "\nPss_Anon:") != NULL) {
            process->own = field_bytes(text, "\nPss_Anon:");
            process->shared = field_bytes(text, "\nPss_Shmem:");
            if (proc_read(watch->proc_fd, process->thread, "status", text, sizeof text)) {
                process->own += field_bytes(text, "\nVmPTE:") + field_bytes(text, "\nVmSwap:");
            }
        }
        sum += held_by(process);
    }
    return sum;
}

/* The bytes that a mapping adds: all of it the first time it is seen, 0 after. */
static uint64_t mapping_add(struct look *look, uint64_t inode, uint64_t bytes)
{
    struct mapping *mapping = NULL;
    for (size_t i = 0; i < look->mapping_count && mapping == NULL; i++) {
        mapping = look->mappings[i].inode == inode ? &look->mappings[i] : NULL;
    }
    if (mapping == NULL && look->mapping_count == MAPPINGS_MAX) {
        return bytes;
    }
    if (mapping == NULL) {
        mapping = &look->mappings[look->mapping_count++];
        *mapping = (struct mapping){.inode = inode};
    }
    uint64_t more = bytes > mapping->bytes ? bytes - mapping->bytes : 0;
    mapping->bytes += more;
    return more;
}

/* One line of /proc/PID/maps: "from-to perms offset device inode   path". */
static uint64_t maps_line(struct look *look, const char *line)
{
    unsigned long long from = 0, to = 0, inode = 0;
    char shared = 0;
    if (strstr(line, "/dev/zero") == NULL ||
        sscanf(line, "%llx-%llx %*c%*c%*c%c %*s %*s %llu", &from, &to, &shared, &inode) != 4 ||
        shared != 's') {
        return 0;
    }
    return mapping_add(look, inode, to - from);
}

/* What one process maps of shared anonymous memory and no other process before it. Of a process that hides its mappings
 * (one that runs a file which it may not read), and of those that have too many, all that they could be. */
static uint64_t shared_anonymous(const struct memory_watch *watch, struct look *look,
                                 const struct process *process)
{
    char line[512];
    if (look->lines_left == 0) {
        return process->shared + process->slack;
    }
    int fd = maps_open(watch, process->thread);
    if (fd < 0) {
        return hides_itself(errno) ? process->shared + process->slack : 0;
    }
    FILE *maps = fdopen(fd, "r");
    if (maps == NULL) {
        close(fd);
        return process->shared + process->slack;
    }
    uint64_t bytes = 0;
    while (look->lines_left > 0 && fgets(line, sizeof line, maps) != NULL) {
        bytes += maps_line(look, line);
        look->lines_left--;
    }
    fclose(maps);
    return look->lines_left > 0 ? bytes : process->shared + process->slack;
}

/* Adds what shared anonymous mappings are larger than the pages of them that are counted already. */
static uint64_t add_shared_anonymous(const struct memory_watch *watch, struct look *look)
{
    uint64_t sum = 0;
    look->mapping_count = 0;
    look->lines_left = LINES_MAX;
    for (size_t i = 0; i < look->count; i++) {
        struct process *process = &look->processes[i];
        uint64_t mapped = shared_anonymous(watch, look, process);
        process->shared = mapped > process->shared ? mapped : process->shared;
        sum += held_by(process);
    }
    return sum;
}

static int by_bytes_descending(const void *a, const void *b)
{
    uint64_t left = held_by(a), right = held_by(b);
    return left < right ? 1 : left > right ? -1 : 0;
}

static uint64_t slack_sum(const struct look *look)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < look->count; i++) {
        sum += look->processes[i].slack;
    }
    return sum;
}

uint64_t memory_enforce(struct memory_watch *watch, uint64_t limit, pid_t driver,
                        bool *ret_driver_killed)
{
    static struct look look; /* pid 1 has one thread, and a small stack */
    processes_list(watch);
    uint64_t disk = disk_bytes();
    uint64_t used = disk + processes_measure(watch, &look);
    if (used > limit) {
        used = disk + processes_confirm(watch, &look);
    }
    if (used <= limit && used + slack_sum(&look) > limit) {
        used = disk + add_shared_anonymous(watch, &look);
    }
    if (used <= limit) {
        return 0;
    }
    qsort(look.processes, look.count, sizeof look.processes[0], by_bytes_descending);
    uint64_t left = used;
    for (size_t i = 0; i < look.count && left > limit; i++) {
        const struct process *victim = &look.processes[i];
        *ret_driver_killed |= victim->pid == driver;
        kill(victim->pid, SIGKILL);
        left -= held_by(victim) < left ? held_by(victim) : left;
    }
    return used;
}
