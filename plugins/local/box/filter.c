/* The system call filter: an allow-list made from tables, turned into a BPF program and loaded for good.
 *
 *   allowed       what Python, its libraries, shells, git and node use
 *   by argument   clone without namespaces, sockets of four families, …
 *   forbidden     EPERM: known, and refused
 *   the rest      ENOSYS: a call that is not there makes the C library fall back to an older one
 *   foreign       another architecture's calls: the process is killed
 *
 * AF_VSOCK is the reason why socket families are checked here: a network namespace does not separate it. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#error "write the table of system calls for this architecture first"
#endif

#define X32_BIT 0x40000000u
#define INIT_PID 1
#define OTHER_SOCKET_TYPES 0xc /* bits of all types but SOCK_STREAM, SOCK_DGRAM and SOCK_RAW */
#define NEW_NAMESPACES                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */)

#include "filter_calls.h"

struct program {
    struct sock_filter code[FILTER_MAX];
    unsigned len;
};

static void put(struct program *program, uint16_t code, uint32_t value, unsigned if_true,
                unsigned if_false)
{
    if (program->len == FILTER_MAX) {
        abort(); /* a table grew: FILTER_MAX must too */
    }
    program->code[program->len++] =
        (struct sock_filter){code, (uint8_t)if_true, (uint8_t)if_false, value};
}

static void put_load(struct program *program, size_t offset)
{
    put(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_load_argument(struct program *program, unsigned index)
{
    /* The low half; all that is compared fits in it, and the machine is little-endian. */
    put_load(program, offsetof(struct seccomp_data, args) + 8 * (size_t)index);
}

static void put_return(struct program *program, uint32_t what)
{
    put(program, BPF_RET | BPF_K, what, 0, 0);
}

static void put_error(struct program *program, int error)
{
    put_return(program, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA));
}

/* Skips `skip` instructions unless the loaded value is `value`. */
static void put_unless(struct program *program, uint32_t value, unsigned skip)
{
    put(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* `action` for every call of the list, neighbouring numbers as one range. */
static void put_list(struct program *program, const int *list, size_t count, uint32_t action)
{
    int sorted[400];
    if (count > sizeof sorted / sizeof sorted[0]) {
        abort();
    }
    memcpy(sorted, list, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], by_number);
    for (size_t i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && sorted[j] <= sorted[j - 1] + 1; j++) {
        }
        put(program, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)sorted[i], 0, 2);
        put(program, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)sorted[j - 1], 1, 0);
        put_return(program, action);
    }
}

/* A call of which one argument decides: EPERM for the listed values, else allowed. */
static void put_except(struct program *program, int call, unsigned argument,
                       const uint32_t *refused, unsigned count)
{
    put_unless(program, (uint32_t)call, 3 + count);
    put_load_argument(program, argument);
    for (unsigned i = 0; i < count; i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, refused[i], count - i, 0);
    }
    put_return(program, SECCOMP_RET_ALLOW);
    put_error(program, EPERM);
}

static void put_clone(struct program *program)
{
    put_unless(program, SYS_clone, 4);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
    put_error(program, EPERM);
    put_return(program, SECCOMP_RET_ALLOW);
}

/* Families: unix, internet (nothing but the box's own loopback), and the netlink that getifaddrs() asks. Of the internet's only
 * TCP, UDP and what is refused without a capability: for any other kind or protocol the host would load a module, if it has
 * one, or look for it. */
static void put_socket(struct program *program, int call)
{
    put_unless(program, (uint32_t)call, 16);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 13, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 5, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 4, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 2);
    put_load_argument(program, 2);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 8, 0);
    put_error(program, EAFNOSUPPORT);
    put_load_argument(program, 1);
    put(program, BPF_JMP | BPF_JSET | BPF_K, OTHER_SOCKET_TYPES, 4, 0);
    put_load_argument(program, 2);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 2, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 1, 0);
    put_error(program, EPROTONOSUPPORT);
    put_return(program, SECCOMP_RET_ALLOW);
}

static void put_personality(struct program *program)
{
    put_unless(program, SYS_personality, 5);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffu, 0, 1); /* only asks */
    put_return(program, SECCOMP_RET_ALLOW);
    put_error(program, EPERM);
}

/* prlimit64() may read any limit, and set any but RLIMIT_CORE, which must stay what it is; not of pid 1, whom the box's user
 * owns: without descriptors it could not look at the memory. */
static void put_prlimit(struct program *program)
{
    put_unless(program, SYS_prlimit64, 10);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, INIT_PID, 6, 0);
    put_load_argument(program, 1);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_CORE, 0, 5);
    put_load_argument(program, 2);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
    put_load(program, offsetof(struct seccomp_data, args) + 8 * 2 + 4);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    put_error(program, EPERM);
    put_return(program, SECCOMP_RET_ALLOW);
}

/* Neither pid 1 by its number, nor all processes of the user, of whom it is one. */
static void put_setpriority(struct program *program)
{
    put_unless(program, SYS_setpriority, 6);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, PRIO_USER, 2, 0);
    put_load_argument(program, 1);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, INIT_PID, 0, 1);
    put_error(program, EPERM);
    put_return(program, SECCOMP_RET_ALLOW);
}

/* Of the options of all sockets: sizes of buffers stay as they are, and to set one seems to work; what makes a close
 * wait (whoever closes), pins pages or loads programs is refused. */
static void put_setsockopt(struct program *program)
{
    static const uint32_t sizes[] = {SO_SNDBUF, SO_RCVBUF};
    static const uint32_t refused[] = {SO_LINGER,
                                       SO_ZEROCOPY,
                                       SO_ATTACH_FILTER,
                                       SO_ATTACH_BPF,
                                       SO_ATTACH_REUSEPORT_CBPF,
                                       SO_ATTACH_REUSEPORT_EBPF};
    const unsigned sizes_count = COUNT(sizes), refused_count = COUNT(refused);
    put_unless(program, SYS_setsockopt, 6 + sizes_count + refused_count);
    put_load_argument(program, 1);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 1 + sizes_count + refused_count);
    put_load_argument(program, 2);
    for (unsigned i = 0; i < sizes_count; i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, sizes[i], sizes_count - i + refused_count, 0);
    }
    for (unsigned i = 0; i < refused_count; i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, refused[i], refused_count - i + 1, 0);
    }
    put_return(program, SECCOMP_RET_ALLOW);
    put_error(program, 0);
    put_error(program, EPERM);
}

/* Nobody in the box may become undumpable: pid 1 could not count its memory any more. */
static void put_dumpable(struct program *program)
{
    put_unless(program, SYS_prctl, 6);
    put_load_argument(program, 0);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_DUMPABLE, 0, 3);
    put_load_argument(program, 1);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0);
    put_error(program, EPERM);
    put_load(program, offsetof(struct seccomp_data, nr));
}

/* No pages of the host's pool of huge ones: as if it were empty. And where nobody would see it, nothing that is shared without a
 * file: as if there were no memory. */
static void put_mmap(struct program *program, bool is_unseen)
{
    const unsigned more = is_unseen ? 2 : 0;
    put_unless(program, SYS_mmap, 4 + more);
    put_load_argument(program, 3);
    put(program, BPF_JMP | BPF_JSET | BPF_K, MAP_HUGETLB, more, is_unseen ? 0 : 1);
    if (is_unseen) {
        put(program, BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 2);
        put(program, BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1); /* MAP_SHARED_VALIDATE too */
    }
    put_error(program, ENOMEM);
    put_return(program, SECCOMP_RET_ALLOW);
}

static void put_by_argument(struct program *program, bool is_unseen)
{
    static const uint32_t ioctls[] = {TIOCSTI, TIOCLINUX, TIOCSETD};
    static const uint32_t prctls[] = {PR_SET_MM,         PR_SET_PTRACER, PR_SET_CHILD_SUBREAPER,
                                      PR_SET_SECCOMP,      /* programs are memory too */
                                      PR_SCHED_CORE,       /* nobody else on the same core */
                                      PR_SET_THP_DISABLE}; /* the last: only with is_unseen */
    static const uint32_t fcntls[] = {F_NOTIFY, F_SETPIPE_SZ, F_SETLEASE, F_OFD_SETLK,
                                      F_OFD_SETLKW}; /* locks that live on in passed descriptors */
    put_mmap(program, is_unseen);
    put_clone(program);
    put_unless(program, SYS_clone3,
               1); /* its flags are behind a pointer: libc falls back to clone */
    put_error(program, ENOSYS);
    put_socket(program, SYS_socket);
    put_socket(program, SYS_socketpair);
    put_except(program, SYS_ioctl, 1, ioctls, COUNT(ioctls));
    put_dumpable(program);
    put_except(program, SYS_prctl, 0, prctls, COUNT(prctls) - (is_unseen ? 0 : 1));
    put_except(program, SYS_fcntl, 1, fcntls, COUNT(fcntls));
    put_setsockopt(program);
    put_personality(program);
#ifdef SYS_setrlimit
    put_except(program, SYS_setrlimit, 0, (const uint32_t[]){RLIMIT_CORE}, 1);
#endif
    put_prlimit(program);
    put_setpriority(program);
    for (size_t i = 0; i < COUNT(calls_on_a_process); i++) {
        put_except(program, calls_on_a_process[i], 0, (const uint32_t[]){INIT_PID}, 1);
    }
}

static void program_make(struct program *program, const struct box_limits *limits, bool is_init)
{
    put_load(program, offsetof(struct seccomp_data, arch));
    put(program, BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0);
    put_return(program, SECCOMP_RET_KILL_PROCESS);
    put_load(program, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    put(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    put_error(program, ENOSYS);
#endif
    /* Memory is polled: such that no process maps would not be seen. */
    put_list(program, calls_unseen_memory, COUNT(calls_unseen_memory), SECCOMP_RET_ERRNO | EPERM);
    put_list(program, calls_epoll, COUNT(calls_epoll),
             limits->uid_is_shared ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_ALLOW);
    if (limits->uid_is_shared && !is_init) {
        put_list(program, calls_passing, COUNT(calls_passing), SECCOMP_RET_ERRNO | EPERM);
    }
    if (box_is_pinned(limits)) {
        put_list(program, calls_affinity, COUNT(calls_affinity), SECCOMP_RET_ERRNO | EPERM);
    }
    put_list(program, calls_attributes, COUNT(calls_attributes), SECCOMP_RET_ERRNO | EOPNOTSUPP);
    put_list(program, calls_without_effect, COUNT(calls_without_effect), SECCOMP_RET_ERRNO | 0);
    put_list(program, calls_taken_from_others, COUNT(calls_taken_from_others),
             SECCOMP_RET_ERRNO | ENOSYS);
    put_list(program, calls_allowed, COUNT(calls_allowed), SECCOMP_RET_ALLOW);
    /* Pid 1 and its workers run no code of a user, and share some notes. */
    put_by_argument(program, box_memory_is_polled(limits) && !is_init);
    put_load(program, offsetof(struct seccomp_data, nr));
    put_list(program, calls_forbidden, COUNT(calls_forbidden), SECCOMP_RET_ERRNO | EPERM);
    put_error(program, ENOSYS);
}

unsigned box_make_filter(const struct box_limits *limits, bool is_init, struct sock_filter *ret)
{
    static struct program program;
    program.len = 0;
    program_make(&program, limits, is_init);
    memcpy(ret, program.code, sizeof program.code);
    return program.len;
}

void box_set_filter(const struct box_limits *limits, bool is_init, int status_fd)
{
    static struct sock_filter code[FILTER_MAX];
    struct sock_fprog load = {.len = (unsigned short)box_make_filter(limits, is_init, code),
                              .filter = code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &load) != 0) {
        box_fail(status_fd, "load the system call filter (seccomp)");
    }
}
