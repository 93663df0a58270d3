/* local-init from its first instruction: takes over from the process that set the box up, and tells the gateway that the
 * interpreter is there.
 *
 * Whether it is hidden from the box is checked before that: it is, since nobody may read the file that it runs. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Closed over an exec, of which there is none: a second line of defence. -1 where it is not there. */
static int take_fd(int fd)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

static void report_ready(pid_t driver)
{
    struct wire_status status = {.magic = WIRE_MAGIC, .kind = WIRE_READY};
    int pidfd = (int)syscall(SYS_pidfd_open, driver, 0);
    if (pidfd < 0) {
        box_fail(INIT_FD_STATUS, "open a pidfd");
    }
    if (!packet_send(INIT_FD_STATUS, &status, sizeof status, &pidfd, 1)) {
        _exit(1); /* nobody is there any more */
    }
    close(pidfd);
}

int main(void)
{
    static struct init_config config;
    prctl(PR_SET_NAME, "box-init", 0, 0, 0);
    for (int fd = INIT_FD_CONFIG; fd <= INIT_FD_LIFELINE; fd++) {
        (void)take_fd(fd);
    }
    if (read(INIT_FD_CONFIG, &config, sizeof config) != (ssize_t)sizeof config ||
        config.magic != WIRE_MAGIC) {
        errno = EIO;
        box_fail(INIT_FD_STATUS, "take over as init of the box");
    }
    close(INIT_FD_CONFIG);
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1) {
        errno = EPERM;
        box_fail(INIT_FD_STATUS, "hide pid 1 from the box");
    }
    report_ready(config.driver);
    struct init init = {.limits = &config.limits,
                        .status = INIT_FD_STATUS,
                        .lifeline = INIT_FD_LIFELINE,
                        .driver = config.driver,
                        .group = {.index = -1,
                                  .into = -1,
                                  .work = -1,
                                  .freeze = take_fd(INIT_FD_FREEZE),
                                  .events = take_fd(INIT_FD_EVENTS)},
                        .freeze_at = INT64_MAX,
                        .life_until = config.life_ms == 0 ? INT64_MAX : now_ms() + config.life_ms,
                        .waits = config.life_ms == 0,
                        .busy = true};
    init_run(&init);
}
