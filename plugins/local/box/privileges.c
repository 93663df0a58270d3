/* What a broker that runs as root keeps: the id maps and owners of boxes with other uids (SETUID, SETGID, CHOWN), and new
 * user namespaces where the system allows them to root only (SYS_ADMIN). It may also take back, for moments,
 * DAC_OVERRIDE: the topmost folder of control groups may be written by nobody (mode 0555). A box has none of these, whatever the broker
 * has: it gets its own in its own user namespace, and gives them up. */
#include "box.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITIES_MAX 64 /* what the capget() of today can hold */

/* So that the process that the exec makes has them too: it does not become root by its uid. */
static bool keep_over_exec(const uint64_t kept)
{
    for (unsigned long capability = 0; capability < CAPABILITIES_MAX; capability++) {
        bool is_kept = capability < 64 && (kept >> capability & 1) != 0;
        if (is_kept ? prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0
                    : prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) {
            return false;
        }
    }
    return true;
}

bool template_keep_privileges(bool is_root)
{
    const uint64_t kept = is_root ? 1ull << CAP_SETUID | 1ull << CAP_SETGID : 0;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    data[0].inheritable = (uint32_t)kept;
    data[1].inheritable = 0;
    if (syscall(SYS_capset, &header, data) != 0 || !keep_over_exec(kept)) {
        return false;
    }
    memset(data, 0, sizeof data);
    data[0].effective = data[0].permitted = data[0].inheritable = (uint32_t)kept;
    return syscall(SYS_capset, &header, data) == 0;
}

bool broker_keep_privileges(void)
{
    const uint64_t kept =
        1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_CHOWN | 1ull << CAP_SYS_ADMIN;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        uint32_t half = (uint32_t)(kept >> (32 * i));
        uint32_t spare = i == 0 ? 1u << CAP_DAC_OVERRIDE : 0;
        data[i].permitted &= half | spare; /* a root that lacks one does not get it */
        data[i].effective = data[i].permitted & half;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, data) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

void broker_override_modes(bool on)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &header, data) == 0) {
        const uint32_t override = 1u << CAP_DAC_OVERRIDE;
        data[0].effective &= ~override;
        data[0].effective |= on ? data[0].permitted & override : 0;
        (void)syscall(SYS_capset, &header, data); /* what then cannot be done is told where it is */
    }
}
