/* A broker in whose system calls one is made to fail, or to do nothing and say that it did: linked of the broker's own
 * objects, whose calls come here first (--wrap in CMakeLists.txt). Only tests have it; nothing of this is in what is
 * installed. It starts no templates, so that every box is made by this program.
 *
 * The fault stands in a file `fault` beside the name by which it is started: CALL WHAT ERRNO, and TIMES where a process shall
 * meet it only so often. WHAT is the path or the limit that is meant; ERRNO 0 stands for a call that does nothing. */
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    char call[32], what[64];
    int error, times;
} fault;

static char ended[4096];

__attribute__((constructor)) static void fault_read(int argc, char **argv)
{
    char path[4096];
    const char *end = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int folder_len = end == NULL ? 0 : (int)(end - argv[0]);
    snprintf(path, sizeof path, "%.*s/fault", folder_len, end == NULL ? "" : argv[0]);
    snprintf(ended, sizeof ended, "%.*s/ended", folder_len, end == NULL ? "" : argv[0]);
    FILE *file = fopen(path, "re");
    fault.times = INT_MAX;
    if (file == NULL ||
        fscanf(file, "%31s %63s %d %d", fault.call, fault.what, &fault.error, &fault.times) < 3) {
        fault.call[0] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* A broker that comes to its end by itself, and is not killed, leaves a file `ended` there. */
__attribute__((destructor)) static void end_tell(void)
{
    FILE *file = ended[0] == '\0' ? NULL : fopen(ended, "we");
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* Whether this call is the one; then *ret is what it returns, with errno. */
static bool is_hit(const char *call, const char *what, int *ret)
{
    if (strcmp(call, fault.call) != 0 || strcmp(what, fault.what) != 0 || fault.times == 0) {
        return false;
    }
    fault.times--;
    errno = fault.error;
    *ret = fault.error == 0 ? 0 : -1;
    return true;
}

#define WRAPPED(name) __wrap_##name
#define REAL(name) __real_##name

int REAL(mount)(const char *, const char *, const char *, unsigned long, const void *);
int WRAPPED(mount)(const char *, const char *, const char *, unsigned long, const void *);
int REAL(move_mount)(int, const char *, int, const char *, unsigned);
int WRAPPED(move_mount)(int, const char *, int, const char *, unsigned);
int REAL(mount_setattr)(int, const char *, unsigned, struct mount_attr *, size_t);
int WRAPPED(mount_setattr)(int, const char *, unsigned, struct mount_attr *, size_t);
int REAL(umount2)(const char *, int);
int WRAPPED(umount2)(const char *, int);
int REAL(setrlimit)(__rlimit_resource_t, const struct rlimit *);
int WRAPPED(setrlimit)(__rlimit_resource_t, const struct rlimit *);
int REAL(prctl)(int, ...);
int WRAPPED(prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
long REAL(syscall)(long, ...);
long WRAPPED(syscall)(long, long, long, long, long, long);
int WRAPPED(program_template)(void);

int WRAPPED(mount)(const char *source, const char *target, const char *type, unsigned long flags,
                   const void *data)
{
    int result;
    return is_hit("mount", target, &result) ? result
                                            : REAL(mount)(source, target, type, flags, data);
}

int WRAPPED(move_mount)(int from, const char *from_path, int to, const char *path, unsigned flags)
{
    int result;
    return is_hit("move_mount", path, &result) ? result
                                               : REAL(move_mount)(from, from_path, to, path, flags);
}

int WRAPPED(mount_setattr)(int folder, const char *path, unsigned flags, struct mount_attr *attr,
                           size_t size)
{
    int result;
    return is_hit("mount_setattr", path, &result)
               ? result
               : REAL(mount_setattr)(folder, path, flags, attr, size);
}

int WRAPPED(umount2)(const char *path, int flags)
{
    int result;
    return is_hit("umount2", path, &result) ? result : REAL(umount2)(path, flags);
}

int WRAPPED(setrlimit)(__rlimit_resource_t resource, const struct rlimit *limit)
{
    int result;
    const char *name = resource == RLIMIT_NPROC ? "NPROC" : resource == RLIMIT_DATA ? "DATA" : "?";
    return is_hit("setrlimit", name, &result) ? result : REAL(setrlimit)(resource, limit);
}

int WRAPPED(prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    int result;
    const char *name = option == PR_SET_THP_DISABLE ? "THP" : "?";
    return is_hit("prctl", name, &result) ? result : REAL(prctl)(option, a, b, c, d);
}

/* A filter like any other, seen from outside, which lets everything pass. */
static long load_open_filter(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog load = {1, code};
    return REAL(syscall)(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &load);
}

/* How often pid 1 has waited so far, of which each wait ends with a look at the box; -1: it cannot be seen. */
static long waits_of_init(void)
{
    char line[256];
    long count = -1;
    FILE *file = fopen("/proc/1/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/* The interpreter's process, still a copy of the broker and with a mapping as large as any that a broker may have, stands
 * still until pid 1 has looked at it some times, or for a second: it does not look where a group counts the memory. */
static void stand_still(void)
{
    const struct timespec moment = {.tv_nsec = 1000 * 1000};
    void *large = mmap(NULL, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long before = waits_of_init();
    if (large == MAP_FAILED || before < 0) {
        abort();
    }
    for (int i = 0; i < 1000 && waits_of_init() < before + 6; i++) {
        (void)nanosleep(&moment, NULL); /* whatever ends it, the count is read again */
    }
}

/* No call of the broker has more arguments than fit into registers, where those of a function like syscall() or prctl(), which
 * take any number, are found as any other's. */
long WRAPPED(syscall)(long number, long a, long b, long c, long d, long e)
{
    int result;
    if (number == SYS_seccomp && is_hit("seccomp", "open", &result)) {
        return load_open_filter();
    }
    if (number == SYS_seccomp && getpid() != 1 && is_hit("seccomp", "late", &result)) {
        stand_still();
    }
    while (number == SYS_seccomp && getpid() != 1 && is_hit("seccomp", "never", &result)) {
        (void)pause(); /* it ends with its box */
    }
    const char *name = number == SYS_seccomp      ? "seccomp"
                       : number == SYS_pivot_root ? "pivot_root"
                                                  : "?";
    return is_hit(name, "-", &result) ? result : REAL(syscall)(number, a, b, c, d, e);
}

int WRAPPED(program_template)(void)
{
    errno = ENOSYS;
    return -1;
}
