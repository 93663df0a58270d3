/* The start-up test: a box made, used and ended by the very code that serves requests. What it prints is one half of the
 * answer; the other is what the kernel says from outside about the process that ran the code. */
#include "local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_MS 20000

static const char test_code[] = "import os, socket\n"
                                "print(40+2)\n"
                                "print('uid', os.getuid())\n"
                                "try:\n"
                                "    open('/etc/shadow').close()\n"
                                "    print('shadow found')\n"
                                "except OSError as error:\n"
                                "    print('shadow', type(error).__name__)\n"
                                "print('interfaces', [name for _, name in socket.if_nameindex()])\n"
                                "try:\n"
                                "    socket.create_connection(('192.0.2.1', 9), 1).close()\n"
                                "    print('network reached')\n"
                                "except OSError as error:\n"
                                "    print('network', error.errno)\n"
                                "for device in '/dev/null', '/dev/urandom':\n"
                                "    open(device, 'rb').read(1)\n";

static const char test_expected[] = "42\nuid 1000\nshadow FileNotFoundError\ninterfaces ['lo']\n"
                                    "network 101\n";

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

/* What the kernel says about the interpreter's process. */
static int check_outside(const struct local *local, const struct box *box, struct sg_error *err)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)box->driver_pid);
    FILE *file = fopen(path, "re");
    size_t len = file == NULL ? 0 : fread(status, 1, sizeof status - 1, file);
    if (file != NULL) {
        fclose(file);
    }
    status[len] = '\0';
    int result = check_identity(local, status_number(status, "\nUid:\t", 10), err);
    if (result == 0 && (status_number(status, "\nCapEff:\t", 16) != 0 ||
                        status_number(status, "\nCapBnd:\t", 16) != 0 ||
                        status_number(status, "\nNoNewPrivs:\t", 10) != 1 ||
                        status_number(status, "\nSeccomp:\t", 10) != 2)) {
        result = sg->fail(err, SG_E_CONFIG,
                          "the test container has capabilities or no system call filter");
    }
    return result;
}

static int fail_run(const struct local *local, const struct box *box, struct sg_error *err)
{
    char end[256];
    return sg->fail(err, SG_E_CONFIG, "code does not run in the test container: %s",
                    box->end != END_NONE ? box_end_text(local, box, end, sizeof end)
                                         : "it did not end in time");
}

static int check_printed(const struct text *printed, struct sg_error *err)
{
    size_t len = sizeof test_expected - 1;
    if (printed->len == len && memcmp(printed->data, test_expected, len) == 0) {
        return 0;
    }
    char shown[300];
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
    const struct sg_sink sink = {collect, &printed};
    const struct run_request request = {
        .code = test_code, .code_len = sizeof test_code - 1, .timeout_ms = TEST_MS, .sink = &sink};
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
        result = check_printed(&printed, err);
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
