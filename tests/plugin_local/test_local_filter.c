/* What the system call filter decides, call by call: the program that filter.c makes is carried out here, by the kernel's rules,
 * and not loaded. So it can be tested for an architecture that this machine is not: filter_arm64.sh builds this file
 * for arm64 and runs it in an emulator, which could not carry out a loaded filter. For that it uses nothing but the C library.
 *
 * The decisions are written out again, not taken from the tables. */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_ARCH AUDIT_ARCH_I386
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_ARCH AUDIT_ARCH_ARM
#endif

/* What filter.c wants of the other files of the box. */
static bool pinned;
bool box_is_pinned(const struct box_limits *limits)
{
    (void)limits;
    return pinned;
}

void box_fail(int status_fd, const char *format, ...)
{
    (void)status_fd, (void)format;
    abort();
}

/* ---- the machine ---- */

static unsigned failures;

static bool condition(const struct sock_filter *code, uint32_t value)
{
    switch (BPF_OP(code->code)) {
    case BPF_JEQ:
        return value == code->k;
    case BPF_JGE:
        return value >= code->k;
    case BPF_JGT:
        return value > code->k;
    case BPF_JSET:
        return (value & code->k) != 0;
    default:
        printf("an instruction that the filter has no use for: 0x%x\n", code->code);
        exit(1);
    }
}

static uint32_t carry_out(const struct sock_filter *code, unsigned len,
                          const struct seccomp_data *data)
{
    uint32_t value = 0;
    for (unsigned at = 0; at < len; at++) {
        switch (BPF_CLASS(code[at].code)) {
        case BPF_LD:
            if (code[at].k % 4 != 0 || code[at].k + 4 > sizeof *data) {
                printf("a load from offset %u\n", code[at].k);
                exit(1);
            }
            memcpy(&value, (const char *)data + code[at].k, sizeof value);
            break;
        case BPF_JMP:
            at += condition(&code[at], value) ? code[at].jt : code[at].jf;
            break;
        case BPF_RET:
            return code[at].k;
        default:
            printf("an instruction of class %u\n", BPF_CLASS(code[at].code));
            exit(1);
        }
    }
    printf("the program has no end\n");
    exit(1);
}

/* ---- decisions ---- */

#define ALLOW SECCOMP_RET_ALLOW
#define FAIL(error) (SECCOMP_RET_ERRNO | (error))

struct decision {
    const char *name;
    long call;
    uint64_t args[6];
    uint32_t expected;
};

static void expect_of(const struct box_limits *limits, bool is_init, uint32_t arch,
                      const struct decision *decisions, size_t count)
{
    static struct sock_filter code[FILTER_MAX];
    unsigned len = box_make_filter(limits, is_init, code);
    for (size_t i = 0; i < count; i++) {
        struct seccomp_data data = {.nr = (int)decisions[i].call, .arch = arch};
        for (int a = 0; a < 6; a++) {
            data.args[a] = decisions[i].args[a];
        }
        uint32_t found = carry_out(code, len, &data);
        if (found != decisions[i].expected) {
            printf("%s: 0x%08x, expected 0x%08x\n", decisions[i].name, found,
                   decisions[i].expected);
            failures++;
        }
    }
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CALL(call, expected)              \
    {                                     \
#call, SYS_##call, {0 }, expected \
    }
#define HIGH 0x100000000u /* only the upper half of an argument */

static void expect(const struct box_limits *limits, uint32_t arch, const struct decision *decisions,
                   size_t count)
{
    expect_of(limits, false, arch, decisions, count);
}

static const struct decision always[] = {
    CALL(read, ALLOW),
    CALL(openat, ALLOW),
    CALL(execve, ALLOW),
    CALL(exit_group, ALLOW),
    CALL(futex, ALLOW),
    CALL(getrandom, ALLOW),
    CALL(ptrace, FAIL(EPERM)),
    CALL(process_vm_readv, FAIL(EPERM)),
    CALL(process_vm_writev, FAIL(EPERM)),
    CALL(kcmp, FAIL(EPERM)),
    CALL(bpf, FAIL(EPERM)),
    CALL(perf_event_open, FAIL(EPERM)),
    CALL(userfaultfd, FAIL(EPERM)),
    CALL(io_uring_setup, FAIL(EPERM)),
    CALL(io_uring_enter, FAIL(EPERM)),
    CALL(keyctl, FAIL(EPERM)),
    CALL(add_key, FAIL(EPERM)),
    CALL(request_key, FAIL(EPERM)),
    CALL(mount, FAIL(EPERM)),
    CALL(umount2, FAIL(EPERM)),
    CALL(pivot_root, FAIL(EPERM)),
    CALL(chroot, FAIL(EPERM)),
    CALL(open_tree, FAIL(EPERM)),
    CALL(move_mount, FAIL(EPERM)),
    CALL(fsopen, FAIL(EPERM)),
    CALL(mount_setattr, FAIL(EPERM)),
    CALL(setns, FAIL(EPERM)),
    CALL(unshare, FAIL(EPERM)),
    CALL(reboot, FAIL(EPERM)),
    CALL(sethostname, FAIL(EPERM)),
    CALL(init_module, FAIL(EPERM)),
    CALL(finit_module, FAIL(EPERM)),
    CALL(kexec_load, FAIL(EPERM)),
    CALL(clock_settime, FAIL(EPERM)),
    CALL(settimeofday, FAIL(EPERM)),
    CALL(adjtimex, FAIL(EPERM)),
    CALL(syslog, FAIL(EPERM)),
    CALL(open_by_handle_at, FAIL(EPERM)),
    CALL(name_to_handle_at, FAIL(EPERM)),
    CALL(fanotify_init, FAIL(EPERM)),
    CALL(pidfd_getfd, FAIL(EPERM)),
    CALL(memfd_secret, FAIL(EPERM)),
    CALL(memfd_create, FAIL(EPERM)), /* memory that no process maps */
    CALL(shmget, FAIL(EPERM)),
    CALL(semget, FAIL(EPERM)),
    CALL(msgget, FAIL(EPERM)),
    CALL(io_setup, FAIL(ENOSYS)),
    CALL(inotify_init1, FAIL(ENOSYS)),
    CALL(vmsplice, FAIL(ENOSYS)),
    CALL(mq_open, FAIL(ENOSYS)),
    CALL(seccomp, FAIL(ENOSYS)),
    CALL(landlock_restrict_self, FAIL(ENOSYS)),
    CALL(setxattr, FAIL(EOPNOTSUPP)),
    CALL(sync, FAIL(0)),
    CALL(syncfs, FAIL(0)),
    CALL(fsync, FAIL(0)), /* files of the host too */
    CALL(fdatasync, FAIL(0)),
    CALL(sync_file_range, FAIL(0)),
    CALL(fadvise64, FAIL(0)),
    CALL(clone3, FAIL(ENOSYS)),
    {"a call that is not yet invented", 9999, {0}, FAIL(ENOSYS)},
    {"the highest number", 0x3fffffff, {0}, FAIL(ENOSYS)},
    {"a negative number", -1, {0}, FAIL(ENOSYS)},
    {"clone() of a process", SYS_clone, {SIGCHLD}, ALLOW},
    {"clone() of a thread", SYS_clone, {0x3d0f00}, ALLOW},
    {"clone() into a user namespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, FAIL(EPERM)},
    {"clone() into a mount namespace", SYS_clone, {CLONE_NEWNS | SIGCHLD}, FAIL(EPERM)},
    {"clone() into a pid namespace", SYS_clone, {CLONE_NEWPID}, FAIL(EPERM)},
    {"clone() into a network namespace", SYS_clone, {CLONE_NEWNET}, FAIL(EPERM)},
    {"clone() into an ipc namespace", SYS_clone, {CLONE_NEWIPC}, FAIL(EPERM)},
    {"clone() into a uts namespace", SYS_clone, {CLONE_NEWUTS}, FAIL(EPERM)},
    {"clone() into a cgroup namespace", SYS_clone, {CLONE_NEWCGROUP}, FAIL(EPERM)},
    {"a unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {"an internet socket", SYS_socket, {AF_INET, SOCK_STREAM}, ALLOW},
    {"an internet socket of version 6", SYS_socket, {AF_INET6, SOCK_DGRAM}, ALLOW},
    {"one that is not handed down", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC}, ALLOW},
    {"a socket of TCP", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6}, ALLOW},
    {"a socket of UDP", SYS_socket, {AF_INET6, SOCK_DGRAM, 17}, ALLOW},
    {"a socket of SCTP", SYS_socket, {AF_INET, SOCK_STREAM, 132}, FAIL(EPROTONOSUPPORT)},
    {"a socket of MPTCP", SYS_socket, {AF_INET6, SOCK_STREAM, 262}, FAIL(EPROTONOSUPPORT)},
    {"a socket of DCCP", SYS_socket, {AF_INET, 6}, FAIL(EPROTONOSUPPORT)},
    {"a sequence of packets", SYS_socket, {AF_INET, SOCK_SEQPACKET}, FAIL(EPROTONOSUPPORT)},
    {"the same of unix", SYS_socket, {AF_UNIX, SOCK_SEQPACKET}, ALLOW},
    {"a pair of MPTCP", SYS_socketpair, {AF_INET, SOCK_STREAM, 262}, FAIL(EPROTONOSUPPORT)},
    {"netlink for routes", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, ALLOW},
    {"netlink for audit", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}, FAIL(EAFNOSUPPORT)},
    {"netlink for filters", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}, FAIL(EAFNOSUPPORT)},
    {"a socket of virtual machines", SYS_socket, {40, SOCK_STREAM}, FAIL(EAFNOSUPPORT)},
    {"a socket of packets", SYS_socket, {AF_PACKET, SOCK_RAW}, FAIL(EAFNOSUPPORT)},
    {"a socket of the kernel's ciphers", SYS_socket, {38, SOCK_SEQPACKET}, FAIL(EAFNOSUPPORT)},
    {"a pair of unix sockets", SYS_socketpair, {AF_UNIX}, ALLOW},
    {"a pair for virtual machines", SYS_socketpair, {40}, FAIL(EAFNOSUPPORT)},
    {"ioctl() for what is in a pipe", SYS_ioctl, {0, FIONREAD}, ALLOW},
    {"ioctl() that types", SYS_ioctl, {0, TIOCSTI}, FAIL(EPERM)},
    {"ioctl() that types, with a high half", SYS_ioctl, {0, TIOCSTI | HIGH}, FAIL(EPERM)},
    {"ioctl() of a line's discipline", SYS_ioctl, {0, TIOCSETD}, FAIL(EPERM)},
    {"prctl() of a name", SYS_prctl, {PR_SET_NAME}, ALLOW},
    {"prctl() of memory", SYS_prctl, {PR_SET_MM}, FAIL(EPERM)},
    {"prctl() of a tracer", SYS_prctl, {PR_SET_PTRACER}, FAIL(EPERM)},
    {"prctl() of a filter", SYS_prctl, {PR_SET_SECCOMP}, FAIL(EPERM)},
    {"prctl() of a reaper", SYS_prctl, {PR_SET_CHILD_SUBREAPER}, FAIL(EPERM)},
    {"prctl() of a core", SYS_prctl, {PR_SCHED_CORE}, FAIL(EPERM)},
    {"prctl() that hides", SYS_prctl, {PR_SET_DUMPABLE, 0}, FAIL(EPERM)},
    {"prctl() that shows", SYS_prctl, {PR_SET_DUMPABLE, 1}, ALLOW},
    {"personality() that asks", SYS_personality, {0xffffffff}, ALLOW},
    {"personality() as it is", SYS_personality, {0}, ALLOW},
    {"personality() without chance", SYS_personality, {0x0040000}, FAIL(EPERM)},
    {"a limit that is read", SYS_prlimit64, {0, RLIMIT_CORE, 0}, ALLOW},
    {"a limit that is set", SYS_prlimit64, {0, RLIMIT_NOFILE, 4096}, ALLOW},
    {"the limit of core files", SYS_prlimit64, {0, RLIMIT_CORE, 4096}, FAIL(EPERM)},
    {"the same, from a high address", SYS_prlimit64, {0, RLIMIT_CORE, HIGH}, FAIL(EPERM)},
    {"memory", SYS_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS}, ALLOW},
    {"huge pages", SYS_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_HUGETLB}, FAIL(ENOMEM)},
    {"huge pages that are shared", SYS_mmap, {0, 4096, 3, MAP_SHARED | MAP_HUGETLB}, FAIL(ENOMEM)},
    {"a file", SYS_mmap, {0, 4096, 1, MAP_PRIVATE}, ALLOW},
    {"a file that is shared", SYS_mmap, {0, 4096, 3, MAP_SHARED}, ALLOW},
    {"a close that waits", SYS_setsockopt, {3, SOL_SOCKET, SO_LINGER}, FAIL(EPERM)},
    {"a program of a socket", SYS_setsockopt, {3, SOL_SOCKET, SO_ATTACH_FILTER}, FAIL(EPERM)},
    {"a larger buffer", SYS_setsockopt, {3, SOL_SOCKET, SO_RCVBUF}, FAIL(0)},
    {"an address used again", SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}, ALLOW},
    {"an option of TCP", SYS_setsockopt, {3, 6, 1}, ALLOW},
    {"fcntl() of flags", SYS_fcntl, {0, F_SETFL}, ALLOW},
    {"fcntl() of a pipe's size", SYS_fcntl, {0, F_SETPIPE_SZ}, FAIL(EPERM)},
    {"fcntl() of a lease", SYS_fcntl, {0, F_SETLEASE}, FAIL(EPERM)},
#if defined(__x86_64__)
    CALL(open, ALLOW),
    CALL(fork, ALLOW),
    CALL(modify_ldt, FAIL(EPERM)),
    CALL(iopl, FAIL(EPERM)),
    CALL(ioperm, FAIL(EPERM)),
    {"the limit of core files, the old way", SYS_setrlimit, {RLIMIT_CORE}, FAIL(EPERM)},
    {"another limit, the old way", SYS_setrlimit, {RLIMIT_NOFILE}, ALLOW},
    {"read() of x32", 0x40000000, {0}, FAIL(ENOSYS)},
    {"ptrace() of x32", 0x40000000 + 521, {0}, FAIL(ENOSYS)},
#endif
};

static const struct decision of_root[] = {CALL(epoll_create1, ALLOW), CALL(epoll_ctl, ALLOW),
                                          CALL(sched_setaffinity, ALLOW), CALL(sendmsg, ALLOW)};
static const struct decision of_a_shared_uid[] = {
    CALL(epoll_create1, FAIL(ENOSYS)), CALL(sendmsg, FAIL(EPERM)), CALL(sendmmsg, FAIL(EPERM))};
static const struct decision of_pid_1[] = {
    CALL(sendmsg, ALLOW),
    CALL(ptrace, FAIL(EPERM)),
    {"memory that pid 1 shares", SYS_mmap, {0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS}, ALLOW}};
static const struct decision where_a_group_counts[] = {
    {"shared memory", SYS_mmap, {0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS}, ALLOW},
    {"prctl() of huge pages", SYS_prctl, {PR_SET_THP_DISABLE, 0}, ALLOW}};
static const struct decision where_polled[] = {
    {"shared memory", SYS_mmap, {0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS}, FAIL(ENOMEM)},
    {"the same, with more flags", SYS_mmap, {0, 4096, 3, 0x4021 | HIGH}, FAIL(ENOMEM)},
    {"the same, with known flags", SYS_mmap, {0, 4096, 3, 0x23}, FAIL(ENOMEM)},
    {"prctl() of huge pages", SYS_prctl, {PR_SET_THP_DISABLE, 0}, FAIL(EPERM)},
    {"the same, with exceptions", SYS_prctl, {PR_SET_THP_DISABLE, 1, 2}, FAIL(EPERM)}};
static const struct decision where_pinned[] = {CALL(sched_setaffinity, FAIL(EPERM)),
                                               CALL(sched_getaffinity, ALLOW)};
static const struct decision of_another_architecture[] = {
    {"read() of another architecture", SYS_read, {0}, SECCOMP_RET_KILL_PROCESS},
    {"exit() of another architecture", 1, {0}, SECCOMP_RET_KILL_PROCESS},
};

int main(void)
{
    const struct box_limits own = {0}, shared = {.uid_is_shared = true},
                            counted = {.group_controls = GROUP_MEMORY},
                            half = {.group_controls = GROUP_PIDS | GROUP_CPU};
    expect(&counted, OWN_ARCH, always, COUNT_OF(always));
    expect(&counted, OWN_ARCH, where_a_group_counts, COUNT_OF(where_a_group_counts));
    expect(&half, OWN_ARCH, where_polled, COUNT_OF(where_polled));
    expect(&shared, OWN_ARCH, where_polled, COUNT_OF(where_polled));
    expect(&own, OWN_ARCH, always, COUNT_OF(always));
    expect(&shared, OWN_ARCH, always, COUNT_OF(always));
    expect_of(&shared, true, OWN_ARCH, of_pid_1, COUNT_OF(of_pid_1));
    expect(&own, OWN_ARCH, of_root, COUNT_OF(of_root));
    expect(&shared, OWN_ARCH, of_a_shared_uid, COUNT_OF(of_a_shared_uid));
    expect(&own, FOREIGN_ARCH, of_another_architecture, COUNT_OF(of_another_architecture));
    pinned = true;
    expect(&own, OWN_ARCH, where_pinned, COUNT_OF(where_pinned));
    if (failures == 0) {
        printf("%zu decisions are as they must be\n", COUNT_OF(always));
    }
    return failures != 0;
}
