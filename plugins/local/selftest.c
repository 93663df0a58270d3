/* The start-up test: a box made, used and ended by the very code that serves requests. What it prints is one half of the
 * answer; the other is what the kernel says from outside about the process that ran the code. */
#include "local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_MS 20000

#define THREADS_MAX \
    256 /* started to see whether there is a limit; a larger one is only looked at from outside */

/* Limits are tried for real where that costs next to nothing: threads that are one too many, an empty mapping that is larger
 * than the memory, a call that the filter refuses and nothing else does. What none of them may need is what they try to
 * get: where a limit does not hold, the machine must not suffer. */
static const char test_code[] =
    "import _thread, mmap, os, socket\n"
    "print(40+2)\n"
    "print('uid', os.getuid())\n"
    "try:\n"
    "    open('/etc/shadow').close()\n"
    "    print('shadow found')\n"
    "except OSError as error:\n"
    "    print('shadow', type(error).__name__)\n"
    "if not os.path.samefile('/', '/..'): print('the host is in reach')\n"
    "print('interfaces', [name for _, name in socket.if_nameindex()])\n"
    "try:\n"
    "    socket.create_connection(('192.0.2.1', 9), 1).close()\n"
    "    print('network reached')\n"
    "except OSError as error:\n"
    "    print('network', error.errno)\n"
    "for masked in 'kcore', 'keys', 'timer_list':\n"
    "    masked = '/proc/' + masked\n"
    "    if os.path.exists(masked) and open(masked, 'rb').read(1):\n"
    "        print(masked, 'found')\n"
    "for path in '/proc/sys/kernel/core_pattern', '/proc/self/oom_score_adj', '/usr/x', '/x':\n"
    "    try:\n"
    "        open(path, 'w').close()\n"
    "        print('written:', path)\n"
    "    except OSError as error:\n"
    "        if error.errno != 30: print('not read-only:', path)\n"
    "for device in '/dev/null', '/dev/urandom':\n"
    "    open(device, 'rb').read(1)\n"
    "try:\n"
    "    os.close(os.memfd_create('seen by nobody'))\n"
    "    print('calls not filtered')\n"
    "except OSError as error:\n"
    "    print('calls', error.errno)\n"
    "try:\n"
    "    mmap.mmap(-1, %llu, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()\n"
    "    print('memory not limited')\n"
    "except OSError as error:\n"
    "    print('memory', error.errno)\n"
    "gate, threads = _thread.allocate_lock(), 0\n"
    "gate.acquire()\n"
    "_thread.stack_size(131072)\n"
    "try:\n"
    "    while threads < %lld:\n"
    "        _thread.start_new_thread(gate.acquire, ())\n"
    "        threads += 1\n"
    "    print('processes not limited')\n"
    "except RuntimeError:\n"
    "    print('processes limited')\n";

static const char test_expected[] = "42\nuid 1000\nshadow FileNotFoundError\ninterfaces ['lo']\n"
                                    "network 101\ncalls 1\nmemory 12\n";

static int collect(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)kind;
    (void)err;
    text_append(ctx, data, len);
    return 0;
}

/* A number of /proc/PID/status, in the given base; -1 if it is not there. */
static long long status_number(const char *status, const char *name, int base)
{
    const char *line = strstr(status, name);
    return line == NULL ? -1 : strtoll(line + strlen(name), NULL, base);
}

static int check_identity(const struct local *local, long long uid, struct sg_error *err)
{
    long long base = local->config->uid_base;
    bool is_own = geteuid() == 0 ? uid >= base && uid < base + local->config->boxes
                                 : uid == (long long)geteuid();
    if (!is_own || uid <= 0) {
        return sg->fail(err, SG_E_CONFIG,
                        "the test container runs with host uid %lld, which it must not", uid);
    }
    return 0;
}

/* The start of a file of the interpreter's process in /proc. */
static void proc_read(const struct box *box, const char *name, char *ret_text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)box->driver_pid, name);
    FILE *file = fopen(path, "re");
    size_t len = file == NULL ? 0 : fread(ret_text, 1, size - 1, file);
    if (file != NULL) {
        fclose(file);
    }
    ret_text[len] = '\0';
}

static int check_processes(const struct local *local, const struct box *box, struct sg_error *err)
{
    char limits[4096];
    proc_read(box, "limits", limits, sizeof limits);
    long long most = status_number(limits, "\nMax processes ", 10);
    if (most < 0 || most > local->config->processes + 1) {
        return sg->fail(err, SG_E_CONFIG,
                        "the test container may have %lld processes, which must be at most %lld",
                        most, (long long)local->config->processes + 1);
    }
    return 0;
}

static bool is_named(const char *list, size_t len, const char *name)
{
    size_t name_len = strlen(name);
    for (size_t at = 0; at <= len;) {
        size_t word = strcspn(list + at, ",:");
        if (word == name_len && strncmp(list + at, name, word) == 0) {
            return true;
        }
        at += word + 1;
    }
    return false;
}

/* Whether the group of a controller in /proc/PID/cgroup ("ID:CONTROLLERS:PATH"; none are named for v2) is one of the
 * broker's. */
static bool is_in_our_group(const char *memberships, const char *controller)
{
    for (const char *line = memberships; line != NULL && *line != '\0';) {
        const char *names = strchr(line, ':');
        const char *path = names == NULL ? NULL : strchr(names + 1, ':');
        if (path != NULL && is_named(names + 1, (size_t)(path - names) - 1, controller)) {
            const char *ours = strstr(path, "/sandgate-local.");
            return ours != NULL && ours < path + strcspn(path, "\n");
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

static int check_groups(const struct local *local, const struct box *box, struct sg_error *err)
{
    static const struct {
        unsigned control;
        const char *name;
    } controllers[] = {{GROUP_MEMORY, "memory"}, {GROUP_PIDS, "pids"}, {GROUP_CPU, "cpu"}};
    char memberships[8192];
    proc_read(box, "cgroup", memberships, sizeof memberships);
    for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
        const char *name = controllers[i].name;
        if ((local->isolation.controls & controllers[i].control) != 0 &&
            !is_in_our_group(memberships, local->isolation.groups_version == 2 ? "" : name)) {
            return sg->fail(err, SG_E_CONFIG,
                            "the test container is not in the control group of %s that was made "
                            "for it",
                            name);
        }
    }
    return 0;
}

/* What the kernel says about the interpreter's process. */
static int check_outside(const struct local *local, const struct box *box, struct sg_error *err)
{
    char status[4096];
    proc_read(box, "status", status, sizeof status);
    int result = check_identity(local, status_number(status, "\nUid:\t", 10), err);
    if (result == 0 && (status_number(status, "\nCapEff:\t", 16) != 0 ||
                        status_number(status, "\nCapBnd:\t", 16) != 0 ||
                        status_number(status, "\nNoNewPrivs:\t", 10) != 1 ||
                        status_number(status, "\nSeccomp:\t", 10) != 2)) {
        result = sg->fail(err, SG_E_CONFIG,
                          "the test container has capabilities or no system call filter");
    }
    result = result == 0 ? check_processes(local, box, err) : result;
    return result == 0 ? check_groups(local, box, err) : result;
}

static int fail_run(const struct local *local, const struct box *box, struct sg_error *err)
{
    char end[256];
    return sg->fail(err, SG_E_CONFIG, "code does not run in the test container: %s",
                    box->end != END_NONE ? box_end_text(local, box, end, sizeof end)
                                         : "it did not end in time");
}

/* Of the processes that a box may have the interpreter is one. */
static bool threads_are_tried(const struct local *local)
{
    return local->config->processes <= THREADS_MAX;
}

static void code_write(const struct local *local, char *ret_code, size_t size)
{
    unsigned long long bytes = local->config->memory + ((uint64_t)1 << 20);
    long long threads = threads_are_tried(local) ? local->config->processes : 0;
    snprintf(ret_code, size, test_code, bytes, threads);
}

static int check_printed(const struct local *local, const struct text *printed,
                         struct sg_error *err)
{
    char expected[sizeof test_expected + 64];
    snprintf(expected, sizeof expected, "%sprocesses %slimited\n", test_expected,
             threads_are_tried(local) ? "" : "not ");
    size_t len = strlen(expected);
    if (printed->len == len && memcmp(printed->data, expected, len) == 0) {
        return 0;
    }
    char shown[400];
    size_t at = 0;
    for (; at < printed->len && at < sizeof shown - 1; at++) {
        char c = printed->data[at];
        shown[at] = c >= ' ' && c < 0x7f ? c : c == '\n' ? '|' : '?';
    }
    shown[at] = '\0';
    return sg->fail(err, SG_E_CONFIG, "the test container is not what it must be; it printed: %s",
                    shown);
}

static int test_box(struct local *local, struct sg_call *call, struct box *box,
                    struct sg_error *err)
{
    struct text printed = {.max = 65536};
    char code[sizeof test_code + 64];
    code_write(local, code, sizeof code);
    const struct sg_sink sink = {collect, &printed};
    const struct run_request request = {
        .code = code, .code_len = strlen(code), .timeout_ms = TEST_MS, .sink = &sink};
    int result = local_await_start(local, call, box, err);
    if (result == 0) {
        result = check_outside(local, box, err);
    }
    if (result == 0) {
        result = local_run(local, call, box, &request, err);
        if (result != 0 && sg->time_left_ms(call) > 0) {
            result = fail_run(local, box, err);
        }
    }
    if (result == 0) {
        result = check_printed(local, &printed, err);
    }
    text_clear(&printed);
    return result;
}

int local_selftest(struct local *local, struct sg_call *call, struct sg_error *err)
{
    struct box *box = NULL;
    int result = local_create(local, call, TEST_MS * 2, &box, err);
    if (result != 0) {
        return result;
    }
    result = test_box(local, call, box, err);
    if (result == 0) {
        result = local_destroy(local, call, box, err);
    } else {
        box_kill(box);
        box_remove(local, box);
    }
    box_unref(local, box);
    return result;
}
