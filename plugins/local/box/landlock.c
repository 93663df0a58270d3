/* A second layer over the mounts, where the kernel has Landlock: what may be read, run and written below which folder. It forbids
 * nothing that the mounts allow. But it holds for whatever a path or a descriptor leads to: had a folder of the host been
 * left reachable by a mistake, its files could still not be written, and a process of another box or of the host not traced. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABI_MIN 2 /* 1 forbids to move files between folders */
#define ABI_TRUNCATE 3
#define ACCESS_TRUNCATE \
    (1ull << 14) /* newer than the headers of the oldest system that this builds on */

#define READING \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define CHANGING                                                                                  \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                              \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |  \
     LANDLOCK_ACCESS_FS_REFER | ACCESS_TRUNCATE)

static bool allow(int ruleset, const char *folder, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = access, .parent_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (rule.parent_fd < 0) {
        return false;
    }
    bool added = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return added;
}

static bool rules_add(int ruleset, uint64_t known)
{
    /* Directories on the way must be readable too, "/" itself above all. */
    return allow(ruleset, "/", READING) &&
           allow(ruleset, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE | (ACCESS_TRUNCATE & known)) &&
           allow(ruleset, "/home/user", CHANGING & known) &&
           allow(ruleset, "/tmp", CHANGING & known) &&
           allow(ruleset, "/var/tmp", CHANGING & known) &&
           allow(ruleset, "/dev/shm", CHANGING & known);
}

void box_set_landlock(int status_fd)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < ABI_MIN) {
        return; /* the kernel has none, or has it switched off */
    }
    uint64_t known = READING | DEVICES | CHANGING;
    known &= abi < ABI_TRUNCATE ? ~ACCESS_TRUNCATE : ~0ull;
    struct landlock_ruleset_attr attr = {.handled_access_fs = known};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (ruleset < 0 || !rules_add(ruleset, known) ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
        box_fail(status_fd, "set the rules for files (landlock)");
    }
    close(ruleset);
}
