/* Resource limits and the loss of all privileges. Limits are only ever lowered: a root without CAP_SYS_RESOURCE may not
 * raise one, and needs not. */
#include "box.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITIES_MAX 64 /* what the capget() of today can hold */

static bool limit_lower(int resource, uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return false;
    }
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted) {
        limit.rlim_max = wanted;
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

/* What has them is not seen whole where memory is polled. All processes of the box inherit it, whatever they execute, and the
 * filter keeps it. */
static void switch_huge_pages_off(int status_fd)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        box_fail(status_fd, "switch huge pages off (PR_SET_THP_DISABLE)");
    }
}

void box_set_limits(const struct box_limits *limits, int status_fd)
{
    const struct {
        int resource;
        uint64_t value;
        const char *name;
    } table[] = {
        /* 1, not 0: where core dumps go to a program (systemd-coredump, apport), 0 still starts it, as root, on the
         * host; 1 does not. The filter keeps it there. */
        {RLIMIT_CORE, 1, "CORE"},
        {RLIMIT_NPROC, limits->processes + 1 + WORKERS_MAX, "NPROC"}, /* and pid 1 */
        {RLIMIT_FSIZE, limits->disk_bytes, "FSIZE"},
        {RLIMIT_MEMLOCK, 8u << 20, "MEMLOCK"},
        {RLIMIT_MSGQUEUE, 0, "MSGQUEUE"},
        {RLIMIT_SIGPENDING, 64, "SIGPENDING"},
        {RLIMIT_RTPRIO, 0, "RTPRIO"},
        {RLIMIT_NICE, 0, "NICE"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!limit_lower(table[i].resource, table[i].value)) {
            box_fail(status_fd, "set RLIMIT_%s", table[i].name);
        }
    }
    if (box_memory_is_polled(limits)) {
        switch_huge_pages_off(status_fd);
    }
}

/* ---- processors, where no control group limits their time ---- */

#define PINNED_NICE 5 /* the host's own work goes first */

bool box_is_pinned(const struct box_limits *limits)
{
    return limits->cpu_millis != 0 && (limits->group_controls & GROUP_CPU) == 0;
}

/* As many of the broker's processors as the limit comes to, rounded up; which, is chosen at random. */
static bool pin(const struct box_limits *limits)
{
    cpu_set_t all, chosen;
    unsigned random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random ||
        sched_getaffinity(0, sizeof all, &all) != 0) {
        return false;
    }
    unsigned there = (unsigned)CPU_COUNT(&all), seen = 0;
    uint64_t wanted = (limits->cpu_millis + 999) / 1000;
    CPU_ZERO(&chosen);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && (seen++ + random) % there < wanted) {
            CPU_SET(cpu, &chosen);
        }
    }
    int nice_now = getpriority(PRIO_PROCESS, 0); /* raised only */
    return sched_setaffinity(0, sizeof chosen, &chosen) == 0 &&
           setpriority(PRIO_PROCESS, 0, nice_now > PINNED_NICE ? nice_now : PINNED_NICE) == 0;
}

void box_limit_processors(const struct box_limits *limits, int status_fd)
{
    if (box_is_pinned(limits) && !pin(limits)) {
        box_fail(status_fd, "keep the box to some processors (sched_setaffinity)");
    }
}

bool box_limit_driver(const struct box_limits *limits)
{
    /* What a template has loaded is not the box's own. */
    /* Descriptors in flight are counted by host uid and checked against the sender's own limit: pid 1 keeps a high one, so
     * that what other boxes have in flight does not keep it from reporting. */
    return limit_lower(RLIMIT_DATA, limits->memory_bytes + limits->loaded_data_bytes) &&
           limit_lower(RLIMIT_NOFILE, limits->files) &&
           limit_lower(RLIMIT_NPROC, limits->processes + 1); /* what is left is for a worker */
}

void box_drop_privileges(int status_fd)
{
    for (unsigned long capability = 0; capability < CAPABILITIES_MAX; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) {
            box_fail(status_fd, "empty the bounding set");
        }
    }
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0 || syscall(SYS_capset, &header, none) != 0) {
        box_fail(status_fd, "give up capabilities");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        box_fail(status_fd, "set no_new_privs");
    }
}
