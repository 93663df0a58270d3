/* The clients of the benchmark, one thread on libevent: connections that stay, each with one request at a time, sent again
 * as soon as it is answered.
 *
 *   bench_load --port P --body FILE --connections N --seconds S
 *       [--ramp S]        the connections are opened evenly over this time (default 0)
 *       [--warm S]        then that long nothing is counted (default 0.3)
 *       [--drain S]       what is unanswered so long after the end is an error (default 10)
 *       [--cut]           instead, what is in progress at the end is cut: for streams
 *       [--once]          each connection sends --ids requests and then none; the measured time ends with the last
 *       [--ids N]         "%%%%%%%%" in the body is a number below N; no two connections share one
 *       [--header "A: B"] …, further headers
 *       [--path P]        instead of /v1/chat/completions
 *
 * Prints "begin" and "end" around the measured time, then one line of JSON. Errors count from the first connection on:
 * connections that fail or break, answers other than 200, what is no HTTP. Times of answers are those of answers that
 * ended within the measured time; `first` (request sent to first byte of the body) and `first_passage` count from the
 * first connection on, since streams begin with the ramp. `passage` is the age of every @NANOSECONDS@ in a body. */
#include "message.h"
#include "series.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID_MARK "%%%%%%%%"
#define ID_DIGITS 8
#define RAMP_STEP_MS 5

static struct {
    int port, connections, ids;
    double seconds, ramp, warm, drain;
    bool cut, once;
    const char *body_path, *path;
    char headers[4096];
} settings = {
    .path = "/v1/chat/completions", .connections = 1, .seconds = 1, .warm = 0.3, .drain = 10};

enum phase { PHASE_RAMP, PHASE_MEASURED, PHASE_DRAIN };

static struct {
    struct event_base *base;
    struct connection *connections;
    int opened, in_progress, finished;
    enum phase phase;
    int64_t started_ns, measured_from_ns, measured_ns;
    char *request;
    size_t request_len, id_at; /* id_at 0: it has none */
    struct series whole, first, passage, first_passage;
    uint64_t answers, chunks, errors;
    char error[160]; /* the first */
    struct event ramp_timer, phase_timer;
} load;

struct connection {
    int fd;
    struct event readable, writable;
    struct message answer;
    char *request; /* the shared one, or its own where it has a number */
    size_t sent;
    int64_t sent_ns;
    bool in_progress, first_seen, first_stamp_seen, in_stamp;
    int64_t stamp;
    int ids_first, ids_count, sends;
};

static void connection_open(struct connection *);
static void request_send(struct connection *);

static void note_error(const char *what, int number)
{
    if (load.errors++ == 0) {
        snprintf(load.error, sizeof load.error, "%s%s%s", what, number != 0 ? ": " : "",
                 number != 0 ? strerror(number) : "");
    }
}

/* A reset leaves no TIME_WAIT behind, of which thousands would stand in the way of the next measurement. */
static void connection_close(struct connection *c)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (c->fd < 0) {
        return;
    }
    event_del(&c->readable);
    event_del(&c->writable);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(c->fd);
    c->fd = -1;
}

static void progress_end(struct connection *c)
{
    if (c->in_progress) {
        c->in_progress = false;
        load.in_progress--;
    }
    if (load.phase == PHASE_DRAIN && load.in_progress == 0) {
        event_base_loopbreak(load.base);
    }
}

static void measured_end(void)
{
    load.measured_ns = now_ns() - load.measured_from_ns;
    load.phase = PHASE_DRAIN;
    puts("end");
    fflush(stdout);
}

static void connection_finished(struct connection *c)
{
    connection_close(c);
    if (++load.finished == settings.connections) {
        measured_end();
        event_base_loopbreak(load.base);
    }
}

static void request_next(struct connection *c)
{
    if (settings.once && c->sends == c->ids_count) {
        connection_finished(c);
    } else if (load.phase != PHASE_DRAIN) {
        if (c->fd < 0) {
            connection_open(c);
        } else {
            request_send(c);
        }
    }
}

/* What failed is tried again: a server that refuses shows as many errors, not as an idle load. */
static void connection_fail(struct connection *c, const char *what, int number)
{
    note_error(what, number);
    connection_close(c);
    progress_end(c);
    if (load.errors > 1000000) {
        event_base_loopbreak(load.base);
    } else if (load.phase != PHASE_DRAIN) {
        request_next(c);
    }
}

/* ---- sending ---- */

static void request_write(struct connection *c)
{
    ssize_t len = send(c->fd, c->request + c->sent, load.request_len - c->sent, MSG_NOSIGNAL);
    if (len < 0 && errno != EAGAIN && errno != EINTR) {
        connection_fail(c, "sending", errno);
        return;
    }
    c->sent += len > 0 ? (size_t)len : 0;
    if (c->sent < load.request_len) {
        event_add(&c->writable, NULL);
    }
}

static void on_writable(int fd, short what, void *arg)
{
    struct connection *c = arg;
    int failed = 0;
    socklen_t len = sizeof failed;
    (void)what;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0 || failed != 0) {
        connection_fail(c, "connecting", failed);
        return;
    }
    request_write(c);
}

static void request_number(struct connection *c)
{
    int id = c->ids_first + c->sends % c->ids_count;
    for (size_t i = ID_DIGITS; i > 0; i--) {
        c->request[load.id_at + i - 1] = (char)('0' + id % 10);
        id /= 10;
    }
}

static void request_begin(struct connection *c)
{
    if (load.id_at != 0) {
        request_number(c);
    }
    c->sends++;
    message_start(&c->answer);
    c->sent = 0;
    c->first_seen = c->first_stamp_seen = c->in_stamp = false;
    c->in_progress = true;
    load.in_progress++;
    c->sent_ns = now_ns();
}

static void request_send(struct connection *c)
{
    request_begin(c);
    request_write(c);
}

/* ---- receiving ---- */

static void stamp_end(struct connection *c)
{
    int64_t age = now_ns() - c->stamp;
    c->in_stamp = false;
    if (load.phase == PHASE_MEASURED) {
        series_add(&load.passage, age);
        load.chunks++;
    }
    if (!c->first_stamp_seen) {
        c->first_stamp_seen = true;
        series_add(&load.first_passage, age);
    }
}

static void stamps_read(struct connection *c, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!c->in_stamp) {
            const char *mark = memchr(data + i, '@', len - i);
            if (mark == NULL) {
                return;
            }
            i = (size_t)(mark - data);
            c->in_stamp = true;
            c->stamp = 0;
        } else if (data[i] >= '0' && data[i] <= '9') {
            c->stamp = c->stamp * 10 + (data[i] - '0');
        } else if (data[i] == '@' && c->stamp > 0) {
            stamp_end(c);
        } else {
            c->in_stamp = false;
        }
    }
}

static void on_body(void *arg, const char *data, size_t len)
{
    struct connection *c = arg;
    if (!c->first_seen) {
        c->first_seen = true;
        series_add(&load.first, now_ns() - c->sent_ns);
    }
    stamps_read(c, data, len);
}

static void answer_done(struct connection *c)
{
    if (c->answer.status != 200) {
        char what[40];
        snprintf(what, sizeof what, "status %d", c->answer.status);
        note_error(what, 0);
    } else if (load.phase == PHASE_MEASURED) {
        load.answers++;
        series_add(&load.whole, now_ns() - c->sent_ns);
    }
    if (c->answer.closes) {
        connection_close(c); /* the next request opens it anew */
    }
    progress_end(c);
    request_next(c);
}

static void on_readable(int fd, short what, void *arg)
{
    static char bytes[256 * 1024];
    struct connection *c = arg;
    (void)what;
    ssize_t len = recv(fd, bytes, sizeof bytes, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (len <= 0) {
        connection_fail(c, len == 0 ? "the connection was closed" : "receiving",
                        len == 0 ? 0 : errno);
        return;
    }
    size_t used = message_feed(&c->answer, bytes, (size_t)len, on_body, c);
    if (c->answer.state == MESSAGE_BROKEN || used < (size_t)len || !c->in_progress) {
        connection_fail(c, "an answer that is no HTTP", 0);
    } else if (c->answer.state == MESSAGE_DONE) {
        answer_done(c);
    }
}

/* ---- connections ---- */

static void connection_open(struct connection *c)
{
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)settings.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        fprintf(stderr, "bench_load: a socket: %s\n", strerror(errno));
        exit(1);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    event_assign(&c->readable, load.base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, load.base, c->fd, EV_WRITE, on_writable, c);
    event_add(&c->readable, NULL);
    event_add(&c->writable, NULL); /* when it is connected, the request goes out */
    request_begin(c);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        fprintf(stderr, "bench_load: port %d: %s\n", settings.port, strerror(errno));
        exit(1);
    }
}

static void connection_init(struct connection *c, int index)
{
    int share = settings.ids / settings.connections;
    c->fd = -1;
    c->request = load.request;
    c->ids_count = share > 0 ? share : 1;
    c->ids_first = index * c->ids_count;
    if (load.id_at != 0) {
        c->request = malloc(load.request_len);
        if (c->request == NULL) {
            abort();
        }
        memcpy(c->request, load.request, load.request_len);
    }
}

/* ---- phases ---- */

static void timer_set(struct event *timer, double seconds)
{
    struct timeval after = {.tv_sec = (time_t)seconds,
                            .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    event_add(timer, &after);
}

static void measured_begin(void)
{
    load.phase = PHASE_MEASURED;
    load.measured_from_ns = now_ns();
    puts("begin");
    fflush(stdout);
}

static void on_phase(int fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    if (load.phase == PHASE_RAMP) {
        measured_begin();
        if (!settings.once) {
            timer_set(&load.phase_timer, settings.seconds);
        }
    } else if (load.phase == PHASE_MEASURED) {
        measured_end();
        timer_set(&load.phase_timer, settings.drain);
        if (settings.cut || load.in_progress == 0) {
            event_base_loopbreak(load.base);
        }
    } else {
        event_base_loopbreak(load.base); /* the drain's time is over */
    }
}

static void on_ramp(int fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    double passed = (double)(now_ns() - load.started_ns) / 1e9;
    double due =
        settings.ramp > 0 ? passed / settings.ramp * settings.connections : settings.connections;
    while (load.opened < settings.connections && load.opened < due) {
        connection_open(&load.connections[load.opened++]);
    }
    if (load.opened < settings.connections) {
        timer_set(&load.ramp_timer, RAMP_STEP_MS / 1e3);
    } else if (!settings.once) {
        timer_set(&load.phase_timer, settings.warm);
    }
}

static void run(void)
{
    load.base = event_base_new();
    load.connections = calloc((size_t)settings.connections, sizeof load.connections[0]);
    if (load.base == NULL || load.connections == NULL) {
        abort();
    }
    for (int i = 0; i < settings.connections; i++) {
        connection_init(&load.connections[i], i);
    }
    event_assign(&load.ramp_timer, load.base, -1, 0, on_ramp, NULL);
    event_assign(&load.phase_timer, load.base, -1, 0, on_phase, NULL);
    load.started_ns = now_ns();
    if (settings.once) {
        measured_begin();
    }
    event_active(&load.ramp_timer, EV_TIMEOUT, 0);
    event_base_dispatch(load.base);
}

static void clean_up(void)
{
    for (int i = 0; i < settings.connections; i++) {
        struct connection *c = &load.connections[i];
        connection_close(c);
        if (c->request != load.request) {
            free(c->request);
        }
    }
    event_del(&load.ramp_timer);
    event_del(&load.phase_timer);
    event_base_free(load.base);
    free(load.connections);
    free(load.request);
    series_clear(&load.whole);
    series_clear(&load.first);
    series_clear(&load.passage);
    series_clear(&load.first_passage);
}

static void results_print(void)
{
    if (!settings.cut && load.in_progress > 0) {
        note_error("no answer in time", 0);
        load.errors += (uint64_t)load.in_progress - 1;
    }
    printf("{\"seconds\": %.6f, \"answers\": %llu, \"chunks\": %llu, \"errors\": %llu, "
           "\"error\": \"%s\", ",
           (double)load.measured_ns / 1e9, (unsigned long long)load.answers,
           (unsigned long long)load.chunks, (unsigned long long)load.errors, load.error);
    series_print(&load.whole, "whole");
    printf(", ");
    series_print(&load.first, "first");
    printf(", ");
    series_print(&load.passage, "passage");
    printf(", ");
    series_print(&load.first_passage, "first_passage");
    printf("}\n");
}

/* ---- settings ---- */

static char *file_read(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    long len = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *bytes = len >= 0 ? malloc((size_t)len + 1) : NULL;
    if (bytes == NULL || fseek(file, 0, SEEK_SET) != 0 ||
        fread(bytes, 1, (size_t)len, file) != (size_t)len) {
        fprintf(stderr, "bench_load: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fclose(file);
    *ret_len = (size_t)len;
    return bytes;
}

static void request_make(void)
{
    size_t body_len;
    char *body = file_read(settings.body_path, &body_len);
    size_t size = sizeof settings.headers + strlen(settings.path) + 256 + body_len;
    load.request = malloc(size);
    if (load.request == NULL) {
        abort();
    }
    int head = snprintf(load.request, size,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                        "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
                        settings.path, settings.port, settings.headers, body_len);
    memcpy(load.request + head, body, body_len);
    load.request_len = (size_t)head + body_len;
    const char *mark = memmem(load.request, load.request_len, ID_MARK, ID_DIGITS);
    load.id_at = mark != NULL ? (size_t)(mark - load.request) : 0;
    free(body);
}

static void header_add(const char *header)
{
    size_t len = strlen(settings.headers);
    snprintf(settings.headers + len, sizeof settings.headers - len, "%s\r\n", header);
}

static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                        {"body", required_argument, NULL, 'b'},
                                        {"ids", required_argument, NULL, 'i'},
                                        {"connections", required_argument, NULL, 'n'},
                                        {"seconds", required_argument, NULL, 's'},
                                        {"ramp", required_argument, NULL, 'r'},
                                        {"warm", required_argument, NULL, 'w'},
                                        {"drain", required_argument, NULL, 'd'},
                                        {"header", required_argument, NULL, 'h'},
                                        {"cut", no_argument, NULL, 'c'},
                                        {"path", required_argument, NULL, 'u'},
                                        {"once", no_argument, NULL, 'o'},
                                        {0}};

static bool setting_take(int letter, const char *value)
{
    switch (letter) {
    case 'p':
        settings.port = (int)strtol(value, NULL, 10);
        return true;
    case 'b':
        settings.body_path = value;
        return true;
    case 'i':
        settings.ids = (int)strtol(value, NULL, 10);
        return true;
    case 'n':
        settings.connections = (int)strtol(value, NULL, 10);
        return true;
    case 's':
        settings.seconds = strtod(value, NULL);
        return true;
    case 'r':
        settings.ramp = strtod(value, NULL);
        return true;
    case 'w':
        settings.warm = strtod(value, NULL);
        return true;
    case 'd':
        settings.drain = strtod(value, NULL);
        return true;
    case 'h':
        header_add(value);
        return true;
    case 'u':
        settings.path = value;
        return true;
    case 'c':
        return settings.cut = true;
    case 'o':
        return settings.once = true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    int letter;
    bool right = true;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        right &= setting_take(letter, optarg);
    }
    if (!right || optind < argc || settings.port <= 0 || settings.body_path == NULL ||
        settings.connections < 1) {
        fprintf(stderr, "usage: bench_load --port P --body FILE [--connections N] [--seconds S] "
                        "[--ramp S] [--warm S] [--drain S] [--cut] [--once] [--ids N] "
                        "[--header TEXT]…\n");
        return 2;
    }
    request_make();
    run();
    results_print();
    clean_up();
    return 0;
}
