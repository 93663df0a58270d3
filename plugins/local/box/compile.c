/* The interpreter's side, compiled: once for each broker, by the interpreter that will run it, in a box like any other.
 * To compile the text at the start of every box would take longer than all else that a box needs.
 *
 * What comes back is run in boxes only, where the text would run too. If there is none, for whatever reason, boxes start
 * from the text; what is wrong with a system is told by the first box that is asked for. */
#include "box.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPILE_MS 10000
#define COMPILED_MAX ((size_t)1 << 20)

/* A .pyc: magic, three fields that a script's is not checked for, code. The folders of packages are the same in all boxes
 * and are put in, unless the interpreter is one of a virtual environment, whose prefix has to be set at each start. */
static const char compiler[] =
    "import marshal, os, site, sys\n"
    "from _frozen_importlib_external import MAGIC_NUMBER\n"
    "path, prefix = '/" BOX_DRIVER_TEXT "', sys.prefix\n"
    "with open(path, encoding='utf-8') as file: text = file.read()\n"
    "site.venv(set())\n"
    "if sys.prefix == prefix:\n"
    "    folders = [f for f in site.getsitepackages() if os.path.isdir(f)]\n"
    "    text = text.replace('PACKAGES = None', f'PACKAGES = {folders!r}', 1)\n"
    "code = compile(text, path, 'exec', dont_inherit=True)\n"
    "sys.stdout.buffer.write(MAGIC_NUMBER + bytes(12) + marshal.dumps(code))\n";

/* Until there is something to read. False: that takes too long, or the gateway is gone, for whom nothing is compiled. */
static bool await(int fd, int64_t until)
{
    struct pollfd events[] = {{fd, POLLIN, 0},
                              {WIRE_BROKER_FD, 0, 0}}; /* there only its end counts */
    int64_t left = until - now_ms();
    return left > 0 && poll(events, 2, (int)left) > 0 && events[1].revents == 0;
}

/* Bytes until the end of file; 0 if it does not come in time or there are too many. */
static size_t read_to_end(int fd, unsigned char *data, size_t size, int64_t until)
{
    size_t len = 0;
    for (;;) {
        if (!await(fd, until)) {
            return 0;
        }
        ssize_t got = read(fd, data + len, size - len);
        if (got <= 0) {
            return got == 0 && len < size ? len : 0;
        }
        len += (size_t)got;
    }
}

/* Whether pid 1 says that the compiler has ended well. */
static bool ended_well(int status_fd, int64_t until)
{
    for (;;) {
        struct wire_status status;
        /* The pidfd that comes along is not taken: there is no room for it. */
        if (!await(status_fd, until) ||
            recv(status_fd, &status, sizeof status, MSG_DONTWAIT) != (ssize_t)sizeof status) {
            return false;
        }
        if (status.kind == WIRE_ENDED || status.kind == WIRE_FAILED) {
            return status.kind == WIRE_ENDED && status.value == 0;
        }
    }
}

static size_t compile_take(const struct box_ends *ends, unsigned char *compiled)
{
    int64_t until = now_ms() + COMPILE_MS;
    size_t len = read_to_end(ends->fds[WIRE_FD_STDOUT], compiled, COMPILED_MAX, until);
    return len > 0 && ended_well(ends->fds[WIRE_FD_STATUS], until) ? len : 0;
}

void box_compile(struct box_maker *maker, uint32_t host_id)
{
    struct box_limits *limits = &maker->limits;
    unsigned char *compiled = malloc(COMPILED_MAX);
    if (compiled == NULL) {
        return;
    }
    struct box_maker compiling = *maker;
    struct box_ends ends;
    compiling.limits.command = compiler;
    const char *failed = box_start(&compiling, NULL, host_id, COMPILE_MS, &ends);
    limits->compiled_len = failed == NULL ? compile_take(&ends, compiled) : 0;
    fds_close(ends.fds, WIRE_FDS);
    if (limits->compiled_len > 0) {
        limits->compiled = compiled; /* for the broker's life */
    } else {
        free(compiled);
    }
    if (ends.pid > 0) {
        /* It has ended, or is of no use; its slot and uid are free for the first box. */
        kill(ends.pid, SIGKILL);
        while (waitpid(ends.pid, NULL, 0) < 0 && errno == EINTR) {
        }
        groups_reaped(maker->groups, ends.pid);
    }
}
