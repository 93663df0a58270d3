/* The server as a whole: its beginning, starting and draining on all loops. What touches a loop's part is posted to it. */
#include "http/fetch.h"
#include "http/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- beginning and end ---- */

static void server_loop_init(struct server_loop *home, struct http_server *server,
                             struct loop *loop)
{
    home->server = server;
    home->loop = loop;
    home->spare_fd = -1;
    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++) {
        home->listeners[i] =
            (struct loop_listener){.home = home, .listener = &server->listeners[i], .fd = -1};
    }
    TAILQ_INIT(&home->connections);
    for (int i = 0; i < PLACE_COUNT; i++) {
        TAILQ_INIT(&home->places[i]);
    }
    TAILQ_INIT(&home->rejected);
}

static void server_unref(struct http_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) > 1) {
        return;
    }
    listeners_close(server);
    for (size_t i = 0; i < server->loops_count; i++) {
        if (server->loops[i].spare_fd >= 0) {
            (void)close(server->loops[i].spare_fd); /* nothing was written that could be lost */
        }
    }
    http_tls_unref(server->tls);
    lock_destroy(&server->tls_lock);
    server->magic = 0;
    free(server);
}

/* Each loop's descriptor that is given up where there is no other. */
static int spares_open(struct http_server *server, struct sg_error *err)
{
    for (size_t i = 0; i < server->loops_count; i++) {
        server->loops[i].spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (server->loops[i].spare_fd < 0) {
            return error_set(err, SG_E_CONFIG, "cannot open /dev/null: %s", strerror(errno));
        }
    }
    return 0;
}

int http_server_new(const struct http_server_options *options, struct http_server **ret,
                    struct sg_error *err)
{
    CHECK(options->loops_count > 0);
    CHECK(options->listeners_count > 0 && options->listeners_count <= HTTP_LISTENERS_MAX);
    size_t size = sizeof(struct http_server) + options->loops_count * sizeof(struct server_loop);
    struct http_server *server = check_alloc(calloc(1, size));
    server->magic = SERVER_MAGIC;
    atomic_init(&server->refs, 1);
    server->handle = options->handle;
    server->ctx = options->ctx;
    server->loops_count = options->loops_count;
    server->tuning = (struct http_tuning){.header_ms = LIMIT_HEADER_MS,
                                          .body_silence_ms = LIMIT_BODY_SILENCE_MS,
                                          .idle_ms = LIMIT_IDLE_MS,
                                          .write_ms = LIMIT_WRITE_MS,
                                          .linger_ms = 5000,
                                          .handshake_ms = LIMIT_HANDSHAKE_MS,
                                          .settled_ms = 15000};
    lock_init(&server->tls_lock);
    server->tls = options->tls == NULL ? NULL : http_tls_ref(options->tls);
    server->listeners_count = options->listeners_count;
    for (size_t i = 0; i < server->listeners_count; i++) {
        server->listeners[i].at = options->listeners[i];
        CHECK(!options->listeners[i].has_tls || options->tls != NULL);
    }
    for (size_t i = 0; i < server->loops_count; i++) {
        server_loop_init(&server->loops[i], server, options->loops[i]);
    }
    int code = listeners_bind(server, err);
    code = code == 0 ? spares_open(server, err) : code;
    if (code != 0) {
        server_unref(server);
        return code;
    }
    *ret = server;
    return 0;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL) {
        return;
    }
    CHECK_MAGIC(server, SERVER_MAGIC);
    CHECK(http_server_connections(server) == 0);
    for (size_t i = 0; i < server->loops_count; i++) {
        CHECK(!server->loops[i].is_accepting);
    }
    server_unref(server);
}

void http_server_tune(struct http_server *server, const struct http_tuning *tuning)
{
    CHECK(!server->is_started);
    server->tuning = *tuning;
}

/* ---- work for every loop ---- */

struct server_task { /* keeps the server until it has run */
    struct loop_task task;
    struct server_loop *home;
    void (*run)(struct server_loop *, void *arg);
    void *arg;
};

static void server_task_run(struct loop_task *task)
{
    struct server_task *work = (void *)task;
    CHECK_MAGIC(work->home->server, SERVER_MAGIC);
    work->run(work->home, work->arg);
    server_unref(work->home->server);
    free(work);
}

static void post_to_all(struct http_server *server, void (*run)(struct server_loop *, void *),
                        void *arg)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    for (size_t i = 0; i < server->loops_count; i++) {
        struct server_task *work = check_alloc(calloc(1, sizeof *work));
        work->task.run = server_task_run;
        work->home = &server->loops[i];
        work->run = run;
        work->arg = arg;
        atomic_fetch_add(&server->refs, 1);
        loop_post(work->home->loop, &work->task);
    }
}

/* ---- relief: descriptors or places are nearly used up ---- */

bool server_connections_are_near(struct http_server *server)
{
    size_t most = admission_connections_max();
    return http_server_connections(server) >= most - most / 8;
}

/* Would so many more be too many? */
static bool is_over(struct http_server *server, size_t count)
{
    return http_server_connections(server) >= admission_connections_max() ||
           count > admission_limit() || admission_used() > admission_limit() - count;
}

/* One of those that may be about to send their head: no more of them than are wanted, on all loops together, since the
 * newest may be the one for which room was made. */
static bool head_gives_way(struct server_loop *home, size_t count)
{
    struct http_server *server = home->server;
    size_t left = atomic_load(&server->relief_heads);
    while (left > 0 && !atomic_compare_exchange_weak(&server->relief_heads, &left, left - 1)) {
    }
    if (left == 0) {
        return false;
    }
    bool is_found = is_over(server, count) && connection_give_way(home, PLACE_HEAD);
    if (!is_found) {
        atomic_fetch_add(&server->relief_heads, 1); /* another loop may have one */
    }
    return is_found;
}

static void relieve_here(struct server_loop *home, void *arg)
{
    struct http_server *server = home->server;
    (void)arg;
    if (admission_is_near()) {
        fetch_close_idle(home->loop);
    }
    bool is_near = admission_is_near() || server_connections_are_near(server);
    size_t count = is_near ? atomic_load(&server->relief) : 0;
    for (size_t i = 0; i < count; i++) { /* each ends in its fiber */
        bool has_given = is_over(home->server, count) ? connection_give_way(home, PLACE_OVER)
                                                      : connection_give_way_early(home);
        if (!has_given && !head_gives_way(home, count)) {
            break;
        }
    }
    atomic_fetch_sub(&server->relieving, 1);
}

void server_relieve(struct http_server *server, size_t count)
{
    size_t none = 0;
    size_t heads = is_over(server, count) ? count : 0;
    if (atomic_compare_exchange_strong(&server->relieving, &none, server->loops_count)) {
        atomic_store(&server->relief, count);
        atomic_store(&server->relief_heads, heads);
        post_to_all(server, relieve_here, NULL);
    } /* else they are at it */
}

static void relieve(struct admission_reliever *reliever, size_t count)
{
    server_relieve(
        (struct http_server *)((char *)reliever - offsetof(struct http_server, reliever)), count);
}

static void start_here(struct server_loop *home, void *arg)
{
    (void)arg;
    listeners_start(home);
}

void http_server_start(struct http_server *server)
{
    CHECK(!server->is_started);
    server->is_started = true;
    listeners_listen(server);
    post_to_all(server, start_here, NULL);
    server->reliever.relieve = relieve;
    admission_set_reliever(&server->reliever);
}

/* A drain waits on its fiber's stack until each loop has posted its `done`. */
struct drain {
    struct fiber *waiter;
    size_t left;
    struct drain_done {
        struct loop_task task;
        struct drain *drain;
    } * done; /* one a loop */
};

static void drain_done(struct loop_task *task)
{
    struct drain *drain = ((struct drain_done *)(void *)task)->drain;
    drain->left--;
    fiber_wake(drain->waiter);
}

static void drain_here(struct server_loop *home, void *arg)
{
    struct drain *drain = arg;
    home->is_draining = true;
    listeners_stop(home);
    rejected_close_all(home);
    connections_close_silent(home);
    struct drain_done *done = &drain->done[home - home->server->loops];
    loop_post(fiber_home(drain->waiter), &done->task);
}

void http_server_drain(struct http_server *server)
{
    admission_set_reliever(NULL); /* all that is idle is closed below */
    listeners_remove_files(server);
    struct drain drain = {.waiter = fiber_self(), .left = server->loops_count};
    CHECK(drain.waiter != NULL);
    drain.done = check_alloc(calloc(drain.left, sizeof *drain.done));
    for (size_t i = 0; i < drain.left; i++) {
        drain.done[i] = (struct drain_done){.task.run = drain_done, .drain = &drain};
    }
    post_to_all(server, drain_here, &drain);
    fiber_shield(); /* the loops hold pointers to this stack */
    while (drain.left > 0) {
        (void)fiber_park(DEADLINE_NONE); /* shielded: only wake-ups end it */
    }
    fiber_unshield();
    free(drain.done);
}

static void cancel_here(struct server_loop *home, void *arg)
{
    (void)arg;
    struct connection *connection;
    TAILQ_FOREACH(connection, &home->connections, link)
    {
        fiber_cancel(connection->fiber);
    }
}

void http_server_cancel(struct http_server *server)
{
    post_to_all(server, cancel_here, NULL);
}

/* ---- TLS ---- */

void http_server_set_tls(struct http_server *server, struct http_tls *tls)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    (void)http_tls_ref(tls);
    lock_take(&server->tls_lock);
    struct http_tls *before = server->tls;
    server->tls = tls;
    lock_release(&server->tls_lock);
    http_tls_unref(before);
}

struct http_tls *server_tls_take(struct http_server *server)
{
    lock_take(&server->tls_lock);
    struct http_tls *tls = http_tls_ref(server->tls);
    lock_release(&server->tls_lock);
    return tls;
}

/* ---- counts ---- */

uint64_t http_server_handshakes(struct http_server *server, enum http_handshake outcome)
{
    uint64_t count = 0;
    for (size_t i = 0; i < server->loops_count; i++) {
        count +=
            atomic_load_explicit(&server->loops[i].handshake_counts[outcome], memory_order_relaxed);
    }
    return count;
}

size_t http_server_busy(struct http_server *server)
{
    size_t count = 0;
    for (size_t i = 0; i < server->loops_count; i++) {
        count += atomic_load(&server->loops[i].busy_count);
    }
    return count;
}

size_t http_server_connections(struct http_server *server)
{
    size_t count = 0;
    for (size_t i = 0; i < server->loops_count; i++) {
        count += atomic_load(&server->loops[i].connections_count);
    }
    return count;
}

uint16_t http_server_port(const struct http_server *server)
{
    return http_address_port(&server->listeners[0].at.address);
}

void http_server_address(const struct http_server *server, size_t listener,
                         char ret[HTTP_ADDRESS_BYTES])
{
    CHECK(listener < server->listeners_count);
    const struct http_listener_options *at = &server->listeners[listener].at;
    http_address_write(&at->address, at->address_len, ret);
}
