/* What the tests of the HTTP front share: a server on loops of their own threads, a handler that does what the path
 * says, and a client of plain sockets on the test's thread. */
#ifndef TESTS_UNIT_HTTP_FIXTURE_H
#define TESTS_UNIT_HTTP_FIXTURE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "cunit_main.h"
#include "http/server.h"
#include "http/server_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOOPS_MAX 2
#define BODY_MAX 100

struct fixture {
    struct loop *loops[LOOPS_MAX];
    pthread_t threads[LOOPS_MAX];
    size_t count;
    struct http_server *server;
    sem_t waiting; /* a handler waits */
    sem_t done;    /* a handler has seen what the test is about */
    sem_t drained;
    int code; /* that it saw */
    char message[ERROR_MESSAGE_BYTES];
    struct buf body;      /* that it read */
    uint64_t bytes;       /* written, or held for requests when the body was read */
    struct fiber *parked; /* of /wait */
    struct loop_task task;
};

static struct fixture fixture;

static inline void note(int code, const struct sg_error *err)
{
    fixture.code = code;
    (void)snprintf(fixture.message, sizeof fixture.message, "%s", err->message);
    CU_ASSERT_EQUAL(sem_post(&fixture.done), 0);
}

/* ---- the log ---- */

static int log_fd = -1;

/* From here on the log goes to a file in memory. */
static inline void log_catch(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    CHECK(log_fd >= 0);
    log_set_fd(log_fd);
}

/* Is `text` in what was logged since the last call of log_forget()? */
static inline bool log_has(const char *text)
{
    static char all[65536];
    ssize_t count = pread(log_fd, all, sizeof all - 1, 0);
    all[count < 0 ? 0 : count] = '\0';
    if (strstr(all, text) == NULL) {
        printf("\nno '%s' in '%s'\n", text, all);
    }
    return strstr(all, text) != NULL;
}

static inline void log_forget(void)
{
    CHECK(ftruncate(log_fd, 0) == 0);
    (void)lseek(log_fd, 0, SEEK_SET);
}

/* ---- what the paths do ---- */

static inline void handle_echo(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    BUF_CLEANUP struct buf body = {0};
    int status = 200;
    if (http_read_body(exchange, BODY_MAX, &body, &err) != 0) {
        status = error_status(&err);
        buf_reset(&body);
        buf_puts(&body, err.message);
    }
    struct http_answer_field fields[] = {
        {STR("x-path"), http_request_head(exchange)->path},
        {STR("bad name"), STR("x")},
        {STR("x-bad"), STR("a\r\nx-evil: b")},
        {STR("Content-Length"), STR("5")},
        {STR("transfer-encoding"), STR("chunked")},
    };
    size_t count = str_is(fields[0].value, "/fields") ? COUNT_OF(fields) : 1;
    (void)http_answer(exchange, status, fields, count, buf_str(&body), &err);
}

static inline void handle_stream(struct http_exchange *exchange, int64_t length, bool ends)
{
    struct sg_error err = {0};
    int code = http_answer_begin(exchange, 200, NULL, 0, length, &err);
    code = code == 0 ? http_answer_write(exchange, STR("hello "), &err) : code;
    code = code == 0 ? http_answer_write(exchange, STR(""), &err) : code;
    code = code == 0 ? http_answer_write(exchange, STR("world, hello"), &err) : code;
    if (code == 0 && ends) {
        code = http_answer_end(exchange, &err);
    }
    fixture.bytes = http_answer_bytes(exchange);
    note(code, &err);
}

static inline void handle_wait(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    fixture.parked = fiber_self();
    CU_ASSERT_EQUAL(sem_post(&fixture.waiting), 0);
    int code = fiber_park(DEADLINE_NONE);
    fixture.parked = NULL;
    if (code == 0) {
        (void)http_answer(exchange, 200, NULL, 0, STR("woken"), &err);
    }
    note(code, &err);
}

static inline void handle_flush(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(http_answer_begin(exchange, 200, NULL, 0, -1, &err), 0);
    CU_ASSERT_EQUAL(http_answer_flush(exchange, &err), 0);
    handle_wait(exchange);
}

/* Writes until the client takes nothing any more. */
static inline void handle_flood(struct http_exchange *exchange)
{
    static char block[65536];
    struct sg_error err = {0};
    int code = http_answer_begin(exchange, 200, NULL, 0, -1, &err);
    while (code == 0) {
        code = http_answer_write(exchange, (struct str){block, sizeof block}, &err);
    }
    fixture.bytes = http_answer_bytes(exchange);
    note(code, &err);
}

/* A piece that does not fit into the kernel's buffers, begun when the handler's time is over. */
static inline void handle_late(struct http_exchange *exchange)
{
    static char block[8 * MIB];
    struct sg_error err = {0};
    int code = http_answer_begin(exchange, 200, NULL, 0, -1, &err);
    fiber_set_deadline(fiber_self(), clock_ms());
    CU_ASSERT_EQUAL(sem_post(&fixture.waiting), 0);
    code = code == 0 ? http_answer_write(exchange, (struct str){block, sizeof block}, &err) : code;
    fiber_set_deadline(fiber_self(), DEADLINE_NONE);
    code = code == 0 ? http_answer_write(exchange, STR("the end"), &err) : code;
    code = code == 0 ? http_answer_end(exchange, &err) : code;
    note(code, &err);
}

static inline void handle_read(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    buf_reset(&fixture.body);
    int code = http_read_body(exchange, LIMIT_BODY_BYTES, &fixture.body, &err);
    fixture.bytes = admission_bytes();
    if (code == 0) {
        (void)http_answer(exchange, 200, NULL, 0, STR("read"), &err);
    } else if (code != SG_E_CANCELLED) {
        (void)http_answer(exchange, error_status(&err), NULL, 0, str_of(err.message), &err);
    }
    note(code, &err);
}

/* Reads a body piece by piece, and says so of each. */
static inline void handle_pieces(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    BUF_CLEANUP struct buf piece = {0};
    buf_reset(&fixture.body);
    int code;
    while ((code = http_read_body_piece(exchange, BODY_MAX, &piece, &err)) == 0 && piece.len > 0) {
        (void)buf_append_str(&fixture.body, buf_str(&piece));
        buf_reset(&piece);
        CU_ASSERT_EQUAL(sem_post(&fixture.waiting), 0);
    }
    if (code == 0) {
        (void)http_answer(exchange, 200, NULL, 0, buf_str(&fixture.body), &err);
    } else if (code != SG_E_CANCELLED) {
        (void)http_answer(exchange, error_status(&err), NULL, 0, str_of(err.message), &err);
    }
    note(code, &err);
}

/* Reads the first piece of a body, and wants no more. */
static inline void handle_first(struct http_exchange *exchange)
{
    struct sg_error err = {0};
    BUF_CLEANUP struct buf piece = {0};
    CU_ASSERT_EQUAL(http_read_body_piece(exchange, LIMIT_BODY_BYTES, &piece, &err), 0);
    (void)http_answer(exchange, 400, NULL, 0, STR("enough"), &err);
}

/* Reads a body on account of identity "a". */
static inline void handle_account(struct http_exchange *exchange)
{
    struct account account = {0};
    account_open(&account, STR("a"));
    http_body_account(exchange, &account);
    handle_read(exchange);
    account_close(&account);
}

static inline void handle(void *ctx, struct http_exchange *exchange)
{
    struct str path = http_request_head(exchange)->path;
    struct sg_error err = {0};
    CU_ASSERT_PTR_EQUAL(ctx, &fixture);
    if (str_is(path, "/stream")) {
        handle_stream(exchange, -1, true);
    } else if (str_is(path, "/length")) {
        handle_stream(exchange, 18, true);
    } else if (str_is(path, "/longer")) {
        handle_stream(exchange, 17, true);
    } else if (str_is(path, "/shorter")) {
        handle_stream(exchange, 19, true);
    } else if (str_is(path, "/unfinished")) {
        handle_stream(exchange, -1, false);
    } else if (str_is(path, "/wait")) {
        handle_wait(exchange);
    } else if (str_is(path, "/flush")) {
        handle_flush(exchange);
    } else if (str_is(path, "/flood")) {
        handle_flood(exchange);
    } else if (str_is(path, "/late")) {
        handle_late(exchange);
    } else if (str_is(path, "/read")) {
        handle_read(exchange);
    } else if (str_is(path, "/pieces")) {
        handle_pieces(exchange);
    } else if (str_is(path, "/first")) {
        handle_first(exchange);
    } else if (str_is(path, "/account")) {
        handle_account(exchange);
    } else if (str_is(path, "/empty")) {
        (void)http_answer(exchange, 204, NULL, 0, STR(""), &err);
    } else if (!str_is(path, "/silent")) {
        handle_echo(exchange);
    }
}

/* ---- the server ---- */

static inline void *loop_thread(void *loop)
{
    loop_run(loop);
    return NULL;
}

static inline struct sockaddr_storage loopback(uint16_t port)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *four = (void *)&address;
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline int server_new(uint16_t port, struct http_server **ret, struct sg_error *err)
{
    struct http_server_options options = {
        .listeners[0] = {.address = loopback(port), .address_len = sizeof(struct sockaddr_in)},
        .listeners_count = 1,
        .loops = fixture.loops,
        .loops_count = fixture.count,
        .handle = handle,
        .ctx = &fixture};
    return http_server_new(&options, ret, err);
}

/* `tuning` may be NULL: as in base/limits.h. */
static inline void fixture_begin(size_t loops, const struct http_tuning *tuning)
{
    struct sg_error err = {0};
    fixture = (struct fixture){.count = loops};
    CU_ASSERT_EQUAL_FATAL(sem_init(&fixture.waiting, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&fixture.done, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&fixture.drained, 0, 0), 0);
    for (size_t i = 0; i < loops; i++) {
        CU_ASSERT_EQUAL_FATAL(loop_new((unsigned)i, NULL, &fixture.loops[i], &err), 0);
    }
    CU_ASSERT_EQUAL_FATAL(server_new(0, &fixture.server, &err), 0);
    if (tuning != NULL) {
        http_server_tune(fixture.server, tuning);
    }
    http_server_start(fixture.server);
    for (size_t i = 0; i < loops; i++) {
        CU_ASSERT_EQUAL_FATAL(
            pthread_create(&fixture.threads[i], NULL, loop_thread, fixture.loops[i]), 0);
    }
}

static inline void drain_fiber(void *arg)
{
    (void)arg;
    http_server_drain(fixture.server);
    CU_ASSERT_EQUAL(sem_post(&fixture.drained), 0);
}

static inline void drain_start(struct loop_task *task)
{
    (void)task;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(fiber_start(fixture.loops[0], "drain", drain_fiber, NULL, NULL, &err), 0);
}

static inline void drain(void)
{
    fixture.task.run = drain_start;
    loop_post(fixture.loops[0], &fixture.task);
    CU_ASSERT_EQUAL(sem_wait(&fixture.drained), 0);
}

/* After drain(): every client has closed or been answered, so the last connection ends by itself. */
static inline void fixture_stop(void)
{
    while (http_server_connections(fixture.server) > 0) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(http_server_busy(fixture.server), 0);
    for (size_t i = 0; i < fixture.count; i++) {
        loop_stop(fixture.loops[i]);
        CU_ASSERT_EQUAL(pthread_join(fixture.threads[i], NULL), 0);
    }
    http_server_free(fixture.server);
    for (size_t i = 0; i < fixture.count; i++) {
        CU_ASSERT_EQUAL(loop_fibers(fixture.loops[i]), 0);
        loop_free(fixture.loops[i]);
    }
    buf_clear(&fixture.body);
}

static inline void fixture_end(void)
{
    drain();
    fixture_stop();
}

/* ---- the client ---- */

static inline int client_connect(void)
{
    struct sockaddr_storage address = loopback(http_server_port(fixture.server));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (void *)&address, sizeof(struct sockaddr_in)), 0);
    struct timeval guard = {.tv_sec = 60}; /* a test that would hang fails */
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &guard, sizeof guard), 0);
    return fd;
}

static inline void client_send(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t sent = send(fd, text.data, text.len, MSG_NOSIGNAL);
        if (sent < 0) {
            CU_FAIL("the server takes no more");
            return;
        }
        text = (struct str){text.data + sent, text.len - (size_t)sent};
    }
}

/* Reads until `got` ends in `end`, or (NULL) to the end of the stream. False if it comes otherwise. */
static inline bool client_read(int fd, const char *end, struct buf *got)
{
    static char piece[65536];
    for (;;) {
        size_t len = end == NULL ? sizeof piece : 1;
        ssize_t count = recv(fd, piece, len, 0);
        if (count <= 0) {
            return count == 0 && end == NULL;
        }
        buf_append(got, piece, (size_t)count);
        size_t wanted = end == NULL ? 0 : strlen(end);
        if (end != NULL && got->len >= wanted &&
            memcmp(got->data + got->len - wanted, end, wanted) == 0) {
            return true;
        }
    }
}

/* One exchange: sends, then reads up to `end`. */
static inline void client_ask(int fd, const char *request, const char *end, struct buf *got)
{
    buf_reset(got);
    client_send(fd, str_of(request));
    CU_ASSERT_TRUE(client_read(fd, end, got));
}

static inline bool has(const struct buf *got, const char *text)
{
    bool found = got->data != NULL && strstr(got->data, text) != NULL;
    if (!found) {
        printf("\nno '%s' in '%s'\n", text, got->data == NULL ? "" : got->data);
    }
    return found;
}

static inline bool lacks(const struct buf *got, const char *text)
{
    return got->data == NULL || strstr(got->data, text) == NULL;
}

/* A whole connection: sends, reads to its end. */
static inline void client_once(const char *request, struct buf *got)
{
    int fd = client_connect();
    client_ask(fd, request, NULL, got);
    (void)close(fd);
}

#endif
