/* To be preloaded where Valgrind runs a program (scripts/valgrind.sh): what Valgrind 3.19, which Debian 12 has, lacks for
 * children of plugins. It knows no pidfds. In a child the closing of all descriptors never ends, since its own ones
 * refuse to be closed and the C library tries again. A child does not share its parent's memory until exec(), so that
 * posix_spawn() cannot tell that this failed. Programs that run without Valgrind, such as the children, find nothing
 * changed. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#define SHOWN __attribute__((visibility("default")))
/* Valgrind's own code calls it, with no thread-local storage: neither errno nor a canary is there. */
#define NATIVE __attribute__((noinline, no_stack_protector))
/* The C library's function of that name. */
#define NEXT(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

struct native_call {
    long number, arguments[4], result;
};

/* Valgrind puts its thread's number first. */
NATIVE static long call_kernel(long thread, struct native_call *call)
{
    register long fourth __asm__("r10") = call->arguments[3];
    (void)thread;
    __asm__ volatile("syscall"
                     : "=a"(call->result)
                     : "a"(call->number), "D"(call->arguments[0]), "S"(call->arguments[1]),
                       "d"(call->arguments[2]), "r"(fourth)
                     : "rcx", "r11", "memory");
    return 0;
}

static long call_natively(struct native_call call)
{
    (void)VALGRIND_NON_SIMD_CALL1(call_kernel, &call);
    if (call.result < 0) {
        errno = (int)-call.result;
        return -1;
    }
    return call.result;
}

SHOWN long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (RUNNING_ON_VALGRIND && (number == SYS_pidfd_send_signal || number == SYS_pidfd_open)) {
        return call_natively((struct native_call){number, {a[0], a[1], a[2], a[3]}, 0});
    }
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

SHOWN int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, (long)pid, (long)flags);
}

SHOWN int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
    enum { TESTS_FD_MAX = 1024 }; /* no test leaves a higher one open beyond an exec() */
    int error = 0;
    if (!RUNNING_ON_VALGRIND) {
        return NEXT(posix_spawn_file_actions_addclosefrom_np)(actions, from);
    }
    for (int fd = from; error == 0 && fd < TESTS_FD_MAX; fd++) {
        error = posix_spawn_file_actions_addclose(actions, fd);
    }
    return error;
}

SHOWN int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    if (RUNNING_ON_VALGRIND && access(path, X_OK) != 0) {
        return errno;
    }
    return NEXT(posix_spawn)(pid, path, actions, attributes, argv, envp);
}
