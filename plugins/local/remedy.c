/* From a step that failed to what the operator can do about it. The steps are the texts of the files under box. */
#include "local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t setting_read(const char *path)
{
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read ? strtoll(text, NULL, 10) : -1;
}

struct remedy_facts remedy_facts_read(void)
{
    return (struct remedy_facts){
        .userns_clone = setting_read("/proc/sys/kernel/unprivileged_userns_clone"),
        .userns_max = setting_read("/proc/sys/user/max_user_namespaces"),
        .apparmor_restricts =
            setting_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        .is_root = geteuid() == 0,
    };
}

static const char *by_setting(bool is_denied, const struct remedy_facts *facts)
{
    if (facts->userns_max == 0) {
        return "user.max_user_namespaces is 0: set it to some thousands "
               "(sysctl -w user.max_user_namespaces=15000)";
    }
    if (is_denied && !facts->is_root && facts->userns_clone == 0) {
        return "kernel.unprivileged_userns_clone is 0: set it to 1 "
               "(sysctl -w kernel.unprivileged_userns_clone=1), or run the gateway as root";
    }
    if (is_denied && !facts->is_root && facts->apparmor_restricts == 1) {
        return "kernel.apparmor_restrict_unprivileged_userns is 1: give local-broker an AppArmor "
               "profile with 'userns,', or set it to 0 "
               "(sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)";
    }
    return NULL;
}

static const char *by_step(const char *step, int error, bool is_denied,
                           const struct remedy_facts *facts)
{
    if (strncmp(step, "run '", 5) == 0) {
        return error == ENOENT
                   ? "Install Python 3 (Debian: apt-get install python3), or name the interpreter "
                     "with 'python'; it must stand under /usr"
                   : "The option 'python' must name a Python 3 interpreter under /usr";
    }
    if (strstr(step, "clone3") != NULL && is_denied) {
        return "New namespaces are refused here. In a container: allow them in its seccomp profile "
               "(docker and podman: --security-opt seccomp=unconfined, or a profile with clone3 "
               "and "
               "unshare). In a chroot: the kernel refuses user namespaces there; enter the root by "
               "pivot_root";
    }
    if (strstr(step, "clone3") != NULL && error == ENOSYS) {
        return "Linux 5.14 or later is needed. In a container its seccomp profile answers so, the "
               "default one too: start it with --security-opt seccomp=unconfined (docker and "
               "podman), or a profile with clone3 and unshare";
    }
    if (strstr(step, "clone3") != NULL && (error == ENOSPC || error == EUSERS)) {
        return "Raise user.max_user_namespaces and the other user.max_*_namespaces";
    }
    if (strstr(step, "/proc") != NULL && is_denied) {
        return "Parts of /proc are covered, as in a container. Start the container with "
               "--security-opt unmask=ALL (podman) or --security-opt systempaths=unconfined "
               "(docker), or run the gateway outside of it; under systemd leave out "
               "ProtectKernelTunables=, ProtectKernelLogs= and ProtectProc=";
    }
    if (strcmp(step, "set the host name") == 0 && is_denied) {
        return "A box has a host name of its own: under systemd leave out ProtectHostname=";
    }
    if ((strstr(step, "_map") != NULL || strstr(step, "host uid") != NULL) && facts->is_root) {
        return "The uids from 'uid_base' on must exist in the gateway's own user namespace: choose "
               "'uid_base' by /proc/self/uid_map. Root needs CAP_SETUID, CAP_SETGID and CAP_CHOWN; "
               "or run the gateway as an ordinary user";
    }
    return NULL;
}

const char *remedy_pick(const char *step, int error, const struct remedy_facts *facts)
{
    bool is_denied = error == EPERM || error == EACCES;
    bool is_about_namespaces = is_denied || error == ENOSPC || error == EUSERS;
    const char *remedy = is_about_namespaces ? by_setting(is_denied, facts) : NULL;
    if (remedy == NULL) {
        remedy = by_step(step, error, is_denied, facts);
    }
    return remedy != NULL ? remedy
                          : "The requirements of the provider 'local' stand in its README.md";
}

const char *remedy_for(const char *step, int error)
{
    const struct remedy_facts facts = remedy_facts_read();
    return remedy_pick(step, error, &facts);
}
