/* What the tests of the registry share: two loops on two threads, the provider of fake_sandbox.h, and clients, which are
 * fibers that acquire, run and release on command, as requests do.
 *
 * Nothing sleeps: the provider's functions wait at gates that the test opens, and the test waits in wait_for() for what
 * it wants to see. Everything that happens is a line in one pipe (the log, and what clients and provider say), so that
 * each thing that happens wakes the test, and the log can be matched. */
#ifndef TESTS_SUPPORT_SANDBOX_WORLD_H
#define TESTS_SUPPORT_SANDBOX_WORLD_H

#include "base/log.h"
#include "cunit_main.h"
#include "fake_sandbox.h"

#include <fcntl.h>

#define WAIT_MS 60000 /* a hung test ends; never reached otherwise */

/* ---- waiting for what happens ---- */

static inline void log_drain(void)
{
    char chunk[4096];
    ssize_t got;
    while ((got = read(world.pipe[0], chunk, sizeof chunk)) > 0) {
        buf_append(&world.log, chunk, (size_t)got);
    }
}

static inline int logged(const char *text)
{
    int count = 0;
    log_drain();
    for (const char *at = world.log.data; at != NULL && (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static inline void something_happens(const char *what)
{
    int events;
    if (fiber_wait_fd(world.pipe[0], SG_READ, deadline_in(WAIT_MS), &events) != 0) {
        fprintf(stderr, "\nwaited in vain for: %s\n%s\n", what, world.log.data);
        abort();
    }
    log_drain();
}

/* In the driver's fiber. */
#define wait_for(condition)                \
    do {                                   \
        while (!(condition)) {             \
            something_happens(#condition); \
        }                                  \
    } while (0)

/* ---- clients ---- */

enum command { ACQUIRE, RUN, RELEASE, KEEP, PARK, TAKE_LOSS, PUT, GET, QUIT };

struct client {
    unsigned loop; /* on which it lives */
    const char *identity, *session, *container;
    const char *new_id; /* of the container that is made for it */
    size_t per_identity, max_containers;
    const char *code;
    int64_t timeout_ms, keep_ms;
    bool is_parked;  /* acquires a container that is */
    bool refuses;    /* its sink takes nothing */
    bool opens_gate; /* of creations, when it has acquired or failed to */
    struct loop_task start, cancel;
    struct fiber *fiber; /* its loop's */
    enum command command;
    int wake_fd;
    /* Results: to be looked at while it is not busy. */
    struct lock lock; /* the two */
    bool busy, has_begun, is_over;
    int result;
    bool loss;
    unsigned begun;
    struct sg_error err;
    char id[64], output[128];
    struct lease *lease;
};

static inline int client_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                               struct sg_error *err)
{
    struct client *client = ctx;
    (void)kind;
    snprintf(client->output, sizeof client->output, "%.*s", (int)len, (const char *)data);
    return client->refuses ? error_set(err, SG_E_LIMIT, "too much output") : 0;
}

static inline int client_acquire(struct client *client)
{
    struct acquire acquire = {
        .identity = str_of(client->identity),
        .per_identity = client->per_identity,
        .max_containers = client->max_containers,
        .session_id = str_of(client->session),
        .container_id = str_of(client->container),
        .is_parked = client->is_parked,
        .new_id = client->new_id,
        .sandbox = &world.sandbox,
        .request_id = "req_1",
        .deadline = DEADLINE_NONE,
    };
    int code = registry_acquire(world.registry, &acquire, &client->lease, &client->err);
    if (client->opens_gate) {
        gate_open(world.create_gate);
    }
    return code;
}

static inline int client_obey(struct client *client)
{
    const struct sg_sink sink = {client_event, client};
    struct sg_run run = {.code = client->code, .timeout_ms = client->timeout_ms};
    switch (client->command) {
    case ACQUIRE:
        return client_acquire(client);
    case RUN:
        run.code_len = strlen(client->code);
        return lease_run(client->lease, &run, &sink, &client->begun, &client->err);
    case KEEP:
        lease_keep(client->lease, client->keep_ms);
        return 0;
    case PARK:
        lease_park(client->lease, client->keep_ms);
        return 0;
    case TAKE_LOSS:
        client->loss = lease_take_loss(client->lease);
        return 0;
    case PUT:
        return lease_file_put(client->lease, "a.txt", "x\0y", 3, &client->begun, &client->err);
    case GET:
        return lease_file_get(client->lease, "b.txt", &sink, &client->err);
    case RELEASE:
    case QUIT:
        lease_release(client->lease);
        client->lease = NULL;
        return 0;
    }
    return 0;
}

static inline void client_report(struct client *client, bool is_over)
{
    if (client->lease != NULL) {
        snprintf(client->id, sizeof client->id, "%s", lease_container_id(client->lease));
    }
    lock_take(&client->lock);
    client->busy = false;
    client->is_over = is_over;
    lock_release(&client->lock);
    say("client");
}

static inline void client_mark_begun(struct client *client)
{
    lock_take(&client->lock);
    client->has_begun = true;
    lock_release(&client->lock);
    say("begin");
}

static void client_main(void *arg)
{
    struct client *client = arg;
    int events;
    while (fiber_wait_fd(client->wake_fd, SG_READ, DEADLINE_NONE, &events) == 0) {
        gate_close(client->wake_fd);
        client->err = (struct sg_error){0};
        client->output[0] = '\0';
        client_mark_begun(client);
        client->result = client_obey(client);
        if (client->command == QUIT) {
            break;
        }
        if (!fiber_is_cancelled(fiber_self())) {
            client_report(client, false);
        }
    }
    lease_release(client->lease); /* as a request does, whatever happened above */
    client->lease = NULL;
    client->fiber = NULL;
    client_report(client, true);
}

static void client_on_loop(struct loop_task *task)
{
    struct client *client = (struct client *)((char *)task - offsetof(struct client, start));
    struct sg_error err = {0};
    CHECK(fiber_start(loop_self(), "client", client_main, client, &client->fiber, &err) == 0);
}

static void client_cancel_on_loop(struct loop_task *task)
{
    struct client *client = (struct client *)((char *)task - offsetof(struct client, cancel));
    if (client->fiber != NULL) {
        fiber_cancel(client->fiber);
    }
}

static inline struct client *client_new(unsigned loop, const char *identity, const char *session)
{
    struct client *client = check_alloc(calloc(1, sizeof *client));
    client->loop = loop;
    client->identity = identity;
    client->session = session;
    client->timeout_ms = 60000;
    client->wake_fd = gate_new(false);
    client->start.run = client_on_loop;
    client->cancel.run = client_cancel_on_loop;
    lock_init(&client->lock);
    loop_post(world.loops[loop], &client->start);
    return client;
}

static inline bool client_is_busy(struct client *client)
{
    lock_take(&client->lock);
    bool busy = client->busy;
    lock_release(&client->lock);
    return busy;
}

static inline void client_begin(struct client *client, enum command command)
{
    CHECK(!client_is_busy(client));
    lock_take(&client->lock);
    client->busy = true;
    client->has_begun = false;
    lock_release(&client->lock);
    client->command = command;
    gate_open(client->wake_fd);
}

static inline bool client_has_begun(struct client *client)
{
    lock_take(&client->lock);
    bool has_begun = client->has_begun;
    lock_release(&client->lock);
    return has_begun;
}

/* Begins, and returns when it waits inside. Of clients on this loop: they do not stop on the way. */
static inline void client_begin_waiting(struct client *client, enum command command)
{
    CHECK(client->loop == 0);
    client_begin(client, command);
    wait_for(client_has_begun(client));
}

static inline int client_wait(struct client *client)
{
    wait_for(!client_is_busy(client));
    return client->result;
}

static inline int client_do(struct client *client, enum command command)
{
    client_begin(client, command);
    return client_wait(client);
}

static inline int client_run(struct client *client, const char *code)
{
    client->code = code;
    return client_do(client, RUN);
}

static inline void client_begin_run(struct client *client, const char *code)
{
    client->code = code;
    client_begin(client, RUN);
}

static inline bool client_is_over(struct client *client)
{
    lock_take(&client->lock);
    bool is_over = client->is_over;
    lock_release(&client->lock);
    return is_over;
}

/* As when its connection closes. */
static inline void client_cancel(struct client *client)
{
    loop_post(world.loops[client->loop], &client->cancel);
    wait_for(client_is_over(client));
}

static inline void client_free(struct client *client)
{
    if (!client_is_over(client)) {
        client_begin(client, QUIT);
        wait_for(client_is_over(client));
    }
    close(client->wake_fd);
    lock_destroy(&client->lock);
    free(client);
}

/* One that has acquired; fails the test otherwise. */
static inline struct client *client_with(unsigned loop, const char *identity, const char *session)
{
    struct client *client = client_new(loop, identity, session);
    CU_ASSERT_EQUAL_FATAL(client_do(client, ACQUIRE), 0);
    return client;
}

/* ---- running a test ---- */

static void other_loop_end(void *arg)
{
    struct loop *loop = arg;
    while (loop_fibers(loop) > 1 || (world.pool != NULL && worker_pool_busy(world.pool) > 0)) {
        fiber_yield();
    }
    loop_stop(loop);
}

static void other_loop_ending(struct loop_task *task)
{
    struct sg_error err = {0};
    (void)task;
    CHECK(fiber_start(loop_self(), "end", other_loop_end, loop_self(), NULL, &err) == 0);
}

static void *other_loop_main(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void driver_main(void *arg)
{
    static struct loop_task ending;
    (void)arg;
    world.body();
    if (world.registry != NULL) {
        world.left = registry_shutdown(world.registry, deadline_in(world.shutdown_ms));
    }
    log_drain();
    ending = (struct loop_task){.run = other_loop_ending};
    loop_post(world.loops[1], &ending);
    while (loop_fibers(world.loops[0]) > 1 ||
           (world.pool != NULL && worker_pool_busy(world.pool) > 0)) {
        fiber_yield();
    }
    loop_stop(world.loops[0]);
}

static inline void world_open_with(struct worker_pool *pool)
{
    struct sg_error err = {0};
    memset(&world, 0, sizeof world);
    world.pool = pool;
    fake_instance = (struct instance){
        .name = "box", .plugin = pool == NULL ? &fake_plugin : &worker_plugin, .is_open = true};
    CU_ASSERT_EQUAL_FATAL(pipe2(world.pipe, O_CLOEXEC | O_NONBLOCK), 0);
    (void)fcntl(world.pipe[1], F_SETPIPE_SZ, 1 << 20); /* more than one test writes */
    log_set_fd(world.pipe[1]);
    lock_init(&world.lock);
    world.create_gate = gate_new(true);
    world.destroy_gate = gate_new(true);
    world.run_gate = gate_new(false);
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(loop_new(i, pool, &world.loops[i], &err), 0);
    }
    registry_options_default(&world.options);
    world.options.loops = world.loops;
    world.options.loops_count = 2;
    world.sandbox =
        (struct sandbox){.name = "box", .instance = &fake_instance, .run_timeout_ms = 60000};
    world.shutdown_ms = WAIT_MS;
    buf_puts(&world.log, "");
}

static inline void world_open(void)
{
    world_open_with(NULL);
}

/* The same with the provider on worker threads. */
static inline void world_open_workers(void)
{
    struct sg_error err = {0};
    struct worker_pool *pool;
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(64, 256, &pool, &err), 0);
    world_open_with(pool);
}

static inline void world_close(void)
{
    registry_free(world.registry);
    if (world.pool != NULL) {
        worker_pool_free(world.pool);
    }
    loop_free(world.loops[0]);
    loop_free(world.loops[1]);
    for (int i = 0; i < world.boxes_count; i++) {
        close(world.boxes[i].wake_fd);
    }
    close(world.create_gate);
    close(world.destroy_gate);
    close(world.run_gate);
    log_set_fd(2);
    close(world.pipe[0]);
    close(world.pipe[1]);
    buf_clear(&world.log);
    lock_destroy(&world.lock);
}

/* Runs the body in a fiber on loop 0, between world_open() with the options changed and the shutdown, after which no
 * container may be left anywhere. */
static inline void world_run(void (*body)(void))
{
    struct sg_error err = {0};
    world.body = body;
    CU_ASSERT_EQUAL_FATAL(registry_new(&world.options, &world.registry, &err), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&world.thread, NULL, other_loop_main, world.loops[1]), 0);
    CU_ASSERT_EQUAL_FATAL(fiber_start(world.loops[0], "driver", driver_main, NULL, NULL, &err), 0);
    loop_run(world.loops[0]);
    pthread_join(world.thread, NULL);
    CU_ASSERT_EQUAL(world.left, 0);
    CU_ASSERT_EQUAL(world.live, 0);
    CU_ASSERT_EQUAL(world.creates, world.destroys);
    CU_ASSERT_TRUE(world.running_max <= 1);
    CU_ASSERT_PTR_NULL(strstr(world.log.data, SECRET)); /* no handle in any line */
}

static inline void world_test(void (*body)(void))
{
    world_open();
    world_run(body);
    world_close();
}

#endif
