/* What the tests of fetching share: a loop whose one fiber is the test, and an upstream on a thread of its own that does
 * a list of steps on plain sockets. */
#ifndef TESTS_UNIT_FETCH_FIXTURE_H
#define TESTS_UNIT_FETCH_FIXTURE_H

#include "cunit_main.h"
#include "http/admission.h"
#include "http/fetch_internal.h"
#include "loop/worker.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum step_kind {
    STEP_END,
    STEP_ACCEPT,  /* the next connection */
    STEP_READ,    /* a head, up to its empty line, and `count` bytes; kept in upstream.record */
    STEP_READ_ON, /* `count` bytes, added there */
    STEP_SEEN,    /* tells upstream.closed */
    STEP_SEND,    /* `text` */
    STEP_FLOOD,   /* `count` bytes */
    STEP_CLOSE,
    STEP_RESET,
    STEP_UNTIL_CLOSED, /* by the other side */
    STEP_WAIT          /* for upstream.go */
};

struct step {
    enum step_kind kind;
    const char *text;
    size_t count;
};

#define END              \
    {                    \
        .kind = STEP_END \
    }
#define ACCEPT              \
    {                       \
        .kind = STEP_ACCEPT \
    }
#define READ(bytes)                         \
    {                                       \
        .kind = STEP_READ, .count = (bytes) \
    }
#define READ_ON(bytes)                         \
    {                                          \
        .kind = STEP_READ_ON, .count = (bytes) \
    }
#define SEEN              \
    {                     \
        .kind = STEP_SEEN \
    }
#define SEND(what)                        \
    {                                     \
        .kind = STEP_SEND, .text = (what) \
    }
#define FLOOD(bytes)                         \
    {                                        \
        .kind = STEP_FLOOD, .count = (bytes) \
    }
#define CLOSE              \
    {                      \
        .kind = STEP_CLOSE \
    }
#define RESET              \
    {                      \
        .kind = STEP_RESET \
    }
#define UNTIL_CLOSED              \
    {                             \
        .kind = STEP_UNTIL_CLOSED \
    }
#define WAIT              \
    {                     \
        .kind = STEP_WAIT \
    }

struct upstream {
    int listen_fd, fd;
    uint16_t port;
    pthread_t thread;
    const struct step *steps;
    struct buf record;
    size_t accepted;
    sem_t go;
    sem_t closed; /* the other side has closed, or what was waited for has come */
};

static struct upstream upstream;
static struct loop *loop;
static struct worker_pool *pool;
static struct fetch_loop *home; /* of the loop */
static void (*test_body)(void);

/* ---- the upstream ---- */

static inline void upstream_read_on(size_t count)
{
    char c;
    for (size_t i = 0; i < count && recv(upstream.fd, &c, 1, 0) == 1; i++) {
        buf_putc(&upstream.record, c);
    }
}

static inline void upstream_read(size_t count)
{
    char c;
    buf_reset(&upstream.record);
    while (recv(upstream.fd, &c, 1, 0) == 1) {
        buf_putc(&upstream.record, c);
        size_t len = upstream.record.len;
        if (len >= 4 && memcmp(upstream.record.data + len - 4, "\r\n\r\n", 4) == 0) {
            break;
        }
    }
    upstream_read_on(count);
}

static inline void upstream_close(bool reset)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (reset) {
        (void)setsockopt(upstream.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
    (void)close(upstream.fd);
    upstream.fd = -1;
}

static inline void upstream_send(struct str text)
{
    while (text.len > 0) {
        ssize_t sent = send(upstream.fd, text.data, text.len, MSG_NOSIGNAL);
        if (sent < 0) {
            return; /* the other side has left: STEP_UNTIL_CLOSED tells */
        }
        text = (struct str){text.data + sent, text.len - (size_t)sent};
    }
}

static inline void upstream_flood(size_t count)
{
    char *data = check_alloc(malloc(count));
    for (size_t i = 0; i < count; i++) {
        data[i] = (char)('a' + i % 23);
    }
    upstream_send((struct str){data, count});
    free(data);
}

static inline void upstream_step(const struct step *step)
{
    char c;
    switch (step->kind) {
    case STEP_ACCEPT:
        if (upstream.fd >= 0) {
            (void)close(upstream.fd);
        }
        upstream.fd = accept4(upstream.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        upstream.accepted++;
        return;
    case STEP_READ:
        upstream_read(step->count);
        return;
    case STEP_READ_ON:
        upstream_read_on(step->count);
        return;
    case STEP_SEEN:
        CU_ASSERT_EQUAL(sem_post(&upstream.closed), 0);
        return;
    case STEP_SEND:
        upstream_send(str_of(step->text));
        return;
    case STEP_FLOOD:
        upstream_flood(step->count);
        return;
    case STEP_CLOSE:
    case STEP_RESET:
        upstream_close(step->kind == STEP_RESET);
        return;
    case STEP_UNTIL_CLOSED:
        while (recv(upstream.fd, &c, 1, 0) == 1) {
        }
        CU_ASSERT_EQUAL(sem_post(&upstream.closed), 0);
        return;
    default:
        CU_ASSERT_EQUAL(sem_wait(&upstream.go), 0);
    }
}

static inline void *upstream_run(void *arg)
{
    (void)arg;
    for (const struct step *step = upstream.steps; step->kind != STEP_END; step++) {
        upstream_step(step);
    }
    return NULL;
}

static inline int listen_here(int queue, uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (void *)&address, len), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, queue), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (void *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* ---- the test ---- */

static inline void test_fiber(void *arg)
{
    (void)arg;
    test_body();
    while (loop_fibers(loop) > 1) {
        fiber_yield();
    }
    loop_stop(loop);
}

/* Runs `body` in a fiber, against an upstream that does `steps`; everything has to come back at the end. */
static inline void run(const struct step *steps, void (*body)(void))
{
    struct sg_error err = {0};
    upstream = (struct upstream){.fd = -1, .steps = steps};
    CU_ASSERT_EQUAL_FATAL(sem_init(&upstream.go, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&upstream.closed, 0, 0), 0);
    upstream.listen_fd = listen_here(16, &upstream.port);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&upstream.thread, NULL, upstream_run, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(4, 64, &pool, &err), 0);
    CU_ASSERT_EQUAL_FATAL(loop_new(0, pool, &loop, &err), 0);
    CU_ASSERT_EQUAL_FATAL(fetch_loop_init(loop, &err), 0);
    home = loop_slot(loop, LOOP_SLOT_FETCH);
    test_body = body;
    CU_ASSERT_EQUAL_FATAL(fiber_start(loop, "test", test_fiber, NULL, NULL, &err), 0);
    loop_run(loop);
    fetch_loop_clear(loop);
    loop_free(loop);
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(admission_used(), 0);
    CU_ASSERT_EQUAL(pthread_join(upstream.thread, NULL), 0);
    if (upstream.fd >= 0) {
        (void)close(upstream.fd);
    }
    (void)close(upstream.listen_fd);
    buf_clear(&upstream.record);
}

/* ---- fetching, as most tests do it ---- */

struct result {
    struct arena *arena;
    struct fetch *fetch;
    struct fetch_reply reply;
    struct buf body;
    struct sg_error err;
    char url[128];
};

static inline struct fetch_request request_to(struct result *result, const char *host,
                                              const char *path)
{
    (void)snprintf(result->url, sizeof result->url, "http://%s:%u%s", host, upstream.port, path);
    return (struct fetch_request){.url = result->url, .deadline = DEADLINE_NONE};
}

static inline struct fetch_request request_of(struct result *result, const char *path)
{
    return request_to(result, "127.0.0.1", path);
}

static inline int result_start(struct result *result, const struct fetch_request *request)
{
    result->arena = arena_new(0);
    return fetch_start(request, result->arena, &result->fetch, &result->err);
}

static inline int result_read(struct result *result)
{
    struct str data = STR("x");
    int code = 0;
    while (code == 0 && data.len > 0) {
        code = fetch_read(result->fetch, &data, &result->err);
        if (code == 0) {
            buf_append_str(&result->body, data);
        }
    }
    return code;
}

static inline void result_clear(struct result *result)
{
    fetch_end(result->fetch);
    buf_clear(&result->body);
    arena_free(result->arena);
    *result = (struct result){0};
}

/* All of it; the code of the first thing that fails. */
static inline int result_fetch(struct result *result, const struct fetch_request *request)
{
    int code = result_start(result, request);
    code = code == 0 ? fetch_head(result->fetch, &result->reply, &result->err) : code;
    return code == 0 ? result_read(result) : code;
}

static inline struct str result_field(const struct result *result, const char *name)
{
    for (size_t i = 0; i < result->reply.fields_count; i++) {
        if (str_is(result->reply.fields[i].name, name)) {
            return result->reply.fields[i].value;
        }
    }
    return (struct str){NULL, 0};
}

/* The message, with '@' standing for the upstream's address. */
static inline void expect_message(const struct result *result, const char *wanted)
{
    BUF_CLEANUP struct buf text = {0};
    for (const char *c = wanted; *c != '\0'; c++) {
        if (*c == '@') {
            buf_printf(&text, "127.0.0.1:%u", upstream.port);
        } else {
            buf_putc(&text, *c);
        }
    }
    bool is_same = str_starts(str_of(result->err.message), buf_str(&text));
    if (!is_same) {
        printf("\n'%s' instead of '%s'\n", result->err.message, text.data);
    }
    CU_ASSERT_TRUE(is_same);
}

#endif
