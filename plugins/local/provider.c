/* The operations on containers: create, run, files, destroy, touch, interrupt. */
#include "local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define START_MS 20000   /* for the interpreter to say hello */
#define CLOSED_MS 1000   /* from its closed socket to the word of its end */
#define DESTROY_MS 12000 /* for a killed box to be gone; the core waits for 15 s */
#define LIFE_DEFAULT_MS 3600000
#define TIMEOUT_DEFAULT_MS 60000

int64_t local_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- create ---- */

enum sg_code local_busy(const struct local *local)
{
    return local->unavailable == SG_E_CONFIG ? SG_E_CONFIG : SG_E_TIMEOUT;
}

int local_create(struct local *local, struct sg_call *call, int64_t life_ms, struct box **ret_box,
                 struct sg_error *err)
{
    struct box *box = box_new();
    if (box == NULL) {
        return sg->fail(err, local->unavailable, "no memory for a container");
    }
    int result = broker_ask(local, call, life_ms > 0 ? life_ms : LIFE_DEFAULT_MS, box, err);
    if (result == 0) {
        result = box_add(local, box, err);
    }
    if (result != 0) {
        box_unref(local, box);
        return result;
    }
    *ret_box = box;
    return 0;
}

static void hear_hello(struct box *box)
{
    char packet[512];
    size_t bytes = 0;
    struct frame frame;
    /* What comes before pid 1 has said which process is the interpreter stays where it is. */
    while (box->driver_pid > 0 && !box->said_hello && box->control >= 0) {
        ssize_t len = box_read_packet(box, packet, sizeof packet, &bytes);
        if (bytes == 0) {
            return;
        }
        box->said_hello =
            len > 0 && frame_read(packet, (size_t)len, &frame) && frame.kind == FRAME_HELLO;
    }
}

static int fail_start(const struct local *local, struct box *box, struct sg_error *err)
{
    char text[256];
    box_kill(box);
    if (box->end == END_SETUP) {
        return sg->fail(err, local->unavailable, "%s. %s",
                        box_end_text(local, box, text, sizeof text),
                        remedy_for(box->setup_step, box->setup_error));
    }
    return sg->fail(err, local->unavailable, "the interpreter did not start: %s",
                    box_end_text(local, box, text, sizeof text));
}

/* The interpreter may have said hello before pid 1 has said which process it is: that is waited for first, and what else
 * is there does not wake anybody. */
static int await_word(struct sg_call *call, const struct box *box, int64_t ms, struct sg_error *err)
{
    unsigned ready = 0;
    int events = 0;
    if (box->driver_pid > 0 || box->end != END_NONE) {
        return box_wait(call, box, ms, &ready, err);
    }
    int result = sg->wait_fd(call, box->status, SG_READ, ms, &events, err);
    return result == SG_E_TIMEOUT && sg->time_left_ms(call) > 0 ? 0 : result;
}

int local_await_start(struct local *local, struct sg_call *call, struct box *box,
                      struct sg_error *err)
{
    int64_t until = local_now_ms() + START_MS;
    while (!box->said_hello) {
        int64_t left = until - local_now_ms();
        if (left <= 0) {
            box_kill(box);
            return sg->fail(err, local_busy(local),
                            "the interpreter did not start within 20s: the machine is too busy");
        }
        int result = await_word(call, box, left, err);
        if (result != 0) {
            return result;
        }
        box_read_status(box);
        hear_hello(box);
        if (!box->said_hello && box->end != END_NONE) {
            return fail_start(local, box, err);
        }
        if (box->control < 0 && until > local_now_ms() + CLOSED_MS) {
            until = local_now_ms() + CLOSED_MS; /* how it ended is about to be told */
        }
    }
    return 0;
}

static int provider_create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                           struct sg_error *err)
{
    struct local *local = self;
    struct box *box = NULL;
    if (spec->template_name != NULL) {
        return sg->fail(err, SG_E_INVALID, "local has no templates; leave out '%s'",
                        spec->template_name);
    }
    int result = local_create(local, call, spec->life_ms, &box, err);
    if (result != 0) {
        return result;
    }
    result = sg->emit(call, SG_OUT_HANDLE, box->handle, strlen(box->handle), err);
    if (result != 0) {
        box_kill(box); /* nobody knows of it */
        box_remove(local, box);
    } else {
        result = local_await_start(local, call, box, err);
    }
    box_unref(local, box);
    return result;
}

/* ---- run ---- */

/* A container that has ended is found out by who uses it. */
static int end_of_use(struct local *local, struct box *box, int result)
{
    if (result == SG_E_GONE || result == SG_E_GONE_BEFORE) {
        box_kill(box);
        box_remove(local, box); /* also if nobody destroys what is gone */
    }
    box_unref(local, box);
    return result;
}

static int box_is_missing(struct sg_error *err)
{
    return sg->fail(err, SG_E_GONE_BEFORE, "the container no longer exists");
}

struct emitter {
    struct sg_call *call;
};

static int emit_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct emitter *emitter = ctx;
    return sg->emit(emitter->call, kind, data, len, err);
}

static int language_read(const char *name, enum run_language *ret, struct sg_error *err)
{
    static const struct {
        const char *name;
        enum run_language language;
    } names[] = {{"python", RUN_PYTHON},     {"python3", RUN_PYTHON}, {"bash", RUN_COMMAND},
                 {"javascript", RUN_SCRIPT}, {"js", RUN_SCRIPT},      {"node", RUN_SCRIPT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (name == NULL || strcmp(name, names[i].name) == 0) {
            *ret = names[i].language;
            return 0;
        }
    }
    return sg->fail(err, SG_E_INVALID, "local runs python, bash and javascript, not '%.40s'", name);
}

static int provider_run(void *self, struct sg_call *call, const char *handle,
                        const struct sg_run *run, struct sg_error *err)
{
    struct local *local = self;
    enum run_language language = RUN_PYTHON;
    int result = language_read(run->language, &language, err);
    if (result != 0) {
        return result;
    }
    struct box *box = box_find(local, handle);
    if (box == NULL) {
        return box_is_missing(err);
    }
    struct emitter emitter = {call};
    const struct sg_sink sink = {emit_event, &emitter};
    const struct run_request request = {.language = language,
                                        .code = run->code,
                                        .code_len = run->code_len,
                                        .timeout_ms = run->timeout_ms > 0 ? run->timeout_ms
                                                                          : TIMEOUT_DEFAULT_MS,
                                        .sink = &sink};
    return end_of_use(local, box, local_run(local, call, box, &request, err));
}

/* ---- files ---- */

static int provider_get(void *self, struct sg_call *call, const char *handle, const char *path,
                        struct sg_error *err)
{
    struct local *local = self;
    struct box *box = box_find(local, handle);
    return box == NULL ? box_is_missing(err)
                       : end_of_use(local, box, local_get(local, call, box, path, err));
}

static int provider_put(void *self, struct sg_call *call, const char *handle, const char *path,
                        const void *data, size_t len, struct sg_error *err)
{
    struct local *local = self;
    struct box *box = box_find(local, handle);
    return box == NULL ? box_is_missing(err)
                       : end_of_use(local, box, local_put(local, call, box, path, data, len, err));
}

static int provider_list(void *self, struct sg_call *call, const char *handle, const char *path,
                         struct sg_error *err)
{
    struct local *local = self;
    struct box *box = box_find(local, handle);
    return box == NULL ? box_is_missing(err)
                       : end_of_use(local, box, local_list(local, call, box, path, err));
}

/* ---- the end, and in between ---- */

int local_destroy(struct local *local, struct sg_call *call, struct box *box, struct sg_error *err)
{
    pthread_mutex_lock(&local->lock);
    box->closing = true;
    pthread_mutex_unlock(&local->lock);
    box_kill(box);
    box_wake(box);
    /* A pidfd is readable once its process has ended; for pid 1 that is when all others of the box have. */
    int ready = 0;
    int result = sg->wait_fd(call, box->init, SG_READ, DESTROY_MS, &ready, err);
    if (result == SG_E_TIMEOUT && sg->time_left_ms(call) > 0) {
        return sg->fail(err, local->unavailable, "the container's processes do not end");
    }
    if (result == 0) {
        box_remove(local, box);
    }
    return result;
}

static int provider_destroy(void *self, struct sg_call *call, const char *handle,
                            struct sg_error *err)
{
    struct local *local = self;
    struct box *box = box_find(local, handle);
    if (box == NULL) {
        return 0;
    }
    int result = local_destroy(local, call, box, err);
    box_unref(local, box);
    return result;
}

static int provider_touch(void *self, struct sg_call *call, const char *handle, int64_t life_ms,
                          struct sg_error *err)
{
    (void)call;
    struct local *local = self;
    struct box *box = box_find(local, handle);
    bool alive = box != NULL && box_order(box, WIRE_TOUCH, life_ms);
    if (box != NULL) {
        box_unref(local, box);
    }
    return alive ? 0 : sg->fail(err, SG_E_GONE, "the container no longer exists");
}

static int provider_interrupt(void *self, struct sg_call *call, const char *handle,
                              struct sg_error *err)
{
    (void)call;
    struct local *local = self;
    struct box *box = box_find(local, handle);
    if (box == NULL) {
        return sg->fail(err, SG_E_GONE, "the container no longer exists");
    }
    pthread_mutex_lock(&local->lock);
    box->interrupt_wanted = box->running;
    pthread_mutex_unlock(&local->lock);
    box_wake(
        box); /* the run itself sends the signal, once, and then sees to it that it has worked */
    box_unref(local, box);
    return 0;
}

const struct sg_sandbox_ops local_ops = {
    .create = provider_create,
    .run = provider_run,
    .destroy = provider_destroy,
    .touch = provider_touch,
    .interrupt = provider_interrupt,
    .put = provider_put,
    .get = provider_get,
    .list = provider_list,
    .fds_per_container = BOX_FDS,
};
