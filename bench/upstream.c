/* The model server of the benchmark, one thread on libevent. What it answers is chosen by the request's model, which every
 * gateway passes on:
 *   wait      the fixed answer, after a random time between --wait-ms's two
 *   stream, stream-responses, stream-messages
 *             in that API form: --chunks events, --rate a second; each carries the time at which it was sent, as @NANOSECONDS@
 *   tool      a call of code_interpreter; a history with its result gets the fixed answer, if the result is right
 *   any other the fixed answer at once
 * bench_upstream --port P [--wait-ms LOW-HIGH] [--rate N] [--chunks N] */
#include "message.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "forms.h"

#define MODEL_WITHIN 512 /* bytes of the body in which the model is looked for */

#define FIXED_ANSWER                                                                          \
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1764400000,\"model\":" \
    "\"m\","                                                                                  \
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Good "       \
    "morning.\"},"                                                                            \
    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,"    \
    "\"total_tokens\":12}}"
#define TOOL_ANSWER                                                                              \
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1764400000,\"model\":"    \
    "\"m\","                                                                                     \
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,"            \
    "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{"                    \
    "\"name\":\"code_interpreter\",\"arguments\":\"{\\\"code\\\": \\\"print(6 * 7)\\\"}\"}}]},"  \
    "\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3," \
    "\"total_tokens\":12}}"
#define WRONG_ANSWER \
    "{\"error\":{\"message\":\"The result of the tool is not 42.\",\"type\":\"server_error\"}}"

static struct {
    int port;
    long wait_low_ms, wait_high_ms;
    long rate, chunks;
    struct event_base *base;
} settings = {.wait_low_ms = 2000, .wait_high_ms = 6000, .rate = 50, .chunks = 250};

struct client {
    int fd;
    struct event readable, writable, timer;
    struct message request;
    char *body;
    size_t body_len, body_size;
    struct evbuffer *out;
    const struct form *form; /* of its stream */
    long chunks_left;
    int64_t next_chunk_ns;
};

static void client_free(struct client *c)
{
    event_del(&c->readable);
    event_del(&c->writable);
    event_del(&c->timer);
    evbuffer_free(c->out);
    close(c->fd);
    free(c->body);
    free(c);
}

static void client_flush(struct client *c)
{
    int written = evbuffer_write(c->out, c->fd);
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        shutdown(c->fd, SHUT_RDWR); /* seen, and freed, where it is read */
        evbuffer_drain(c->out, evbuffer_get_length(c->out));
    } else if (evbuffer_get_length(c->out) > 0) {
        event_add(&c->writable, NULL);
    }
}

static void on_writable(int fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    client_flush(arg);
}

static void answer_json(struct client *c, int status, const char *json)
{
    evbuffer_add_printf(c->out,
                        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        status, status == 200 ? "OK" : "Internal Server Error", strlen(json), json);
    client_flush(c);
}

/* ---- streams ---- */

static void put_events(struct client *c, const char *events)
{
    if (events[0] != '\0') {
        evbuffer_add_printf(c->out, "%zx\r\n%s\r\n", strlen(events), events);
    }
}

static void put_text_chunk(struct client *c)
{
    char event[512], time[sizeof TIME];
    const char *at = strstr(c->form->chunk, TIME);
    snprintf(time, sizeof time, "%0*" PRId64, (int)sizeof TIME - 1, now_ns());
    snprintf(event, sizeof event, "%.*s%s%s", (int)(at - c->form->chunk), c->form->chunk, time,
             at + sizeof TIME - 1);
    put_events(c, event);
}

static void stream_end(struct client *c)
{
    put_events(c, c->form->end);
    evbuffer_add_printf(c->out, "0\r\n\r\n");
    client_flush(c);
}

static void timer_start(struct client *c, int64_t ns)
{
    ns = ns < 0 ? 0 : ns;
    struct timeval after = {.tv_sec = ns / 1000000000, .tv_usec = ns % 1000000000 / 1000};
    event_add(&c->timer, &after);
}

/* At a fixed rate, not a fixed pause: a late chunk does not make the later ones late. */
static void stream_next(struct client *c)
{
    if (c->chunks_left == 0) {
        stream_end(c);
        return;
    }
    put_text_chunk(c);
    client_flush(c);
    c->chunks_left--;
    c->next_chunk_ns += 1000000000 / settings.rate;
    timer_start(c, c->next_chunk_ns - now_ns());
}

static void stream_start(struct client *c, const struct form *form)
{
    c->form = form;
    evbuffer_add_printf(c->out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
    c->chunks_left = settings.chunks;
    c->next_chunk_ns = now_ns();
    put_events(c, form->open);
    stream_next(c);
}

/* ---- requests ---- */

static bool body_has(const struct client *c, size_t within, const char *text)
{
    size_t len = within < c->body_len ? within : c->body_len;
    return memmem(c->body, len, text, strlen(text)) != NULL;
}

/* The form of the stream that is asked for; NULL: another model is. */
static const struct form *form_of(const struct client *c)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char named[64];
        snprintf(named, sizeof named, "\"model\":\"%s\"", forms[i].model);
        if (body_has(c, MODEL_WITHIN, named)) {
            return &forms[i];
        }
    }
    return NULL;
}

static void answer_tool(struct client *c)
{
    if (!body_has(c, c->body_len, "\"role\":\"tool\"")) {
        answer_json(c, 200, TOOL_ANSWER);
    } else if (body_has(c, c->body_len, "42")) {
        answer_json(c, 200, FIXED_ANSWER);
    } else {
        answer_json(c, 500, WRONG_ANSWER);
    }
}

static void request_done(struct client *c)
{
    if (body_has(c, MODEL_WITHIN, "\"model\":\"wait\"")) {
        long span = settings.wait_high_ms - settings.wait_low_ms;
        int64_t ms = settings.wait_low_ms + (span > 0 ? random() % (span + 1) : 0);
        timer_start(c, ms * 1000000);
    } else if (form_of(c) != NULL) {
        stream_start(c, form_of(c));
    } else if (body_has(c, MODEL_WITHIN, "\"model\":\"tool\"")) {
        answer_tool(c);
    } else {
        answer_json(c, 200, FIXED_ANSWER);
    }
    c->body_len = 0;
}

static void on_timer(int fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd;
    (void)what;
    if (c->next_chunk_ns != 0) {
        stream_next(c);
    } else {
        answer_json(c, 200, FIXED_ANSWER);
    }
}

static void on_body(void *arg, const char *data, size_t len)
{
    struct client *c = arg;
    if (c->body_len + len > c->body_size) {
        c->body_size = (c->body_len + len) * 2;
        c->body = realloc(c->body, c->body_size);
        if (c->body == NULL) {
            abort();
        }
    }
    memcpy(c->body + c->body_len, data, len);
    c->body_len += len;
}

static void on_readable(int fd, short what, void *arg)
{
    static char bytes[256 * 1024];
    struct client *c = arg;
    (void)what;
    ssize_t len = recv(fd, bytes, sizeof bytes, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    size_t used = len > 0 ? message_feed(&c->request, bytes, (size_t)len, on_body, c) : 0;
    if (len <= 0 || used < (size_t)len || c->request.state == MESSAGE_BROKEN) {
        client_free(c);
    } else if (c->request.state == MESSAGE_DONE) {
        message_start(&c->request);
        c->next_chunk_ns = 0;
        request_done(c);
    }
}

static void on_connection(int listener, short what, void *arg)
{
    (void)what;
    (void)arg;
    int on = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = calloc(1, sizeof *c);
        if (c == NULL || (c->out = evbuffer_new()) == NULL) {
            abort();
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        message_start(&c->request);
        event_assign(&c->readable, settings.base, fd, EV_READ | EV_PERSIST, on_readable, c);
        event_assign(&c->writable, settings.base, fd, EV_WRITE, on_writable, c);
        event_assign(&c->timer, settings.base, -1, 0, on_timer, c);
        event_add(&c->readable, NULL);
    }
}

static int listen_at(int port)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0) {
        fprintf(stderr, "bench_upstream: port %d: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

static void read_settings(int argc, char **argv)
{
    static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                            {"wait-ms", required_argument, NULL, 'w'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"chunks", required_argument, NULL, 'c'},
                                            {0}};
    int letter;
    bool wrong = false;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (letter == 'p') {
            settings.port = (int)strtol(optarg, NULL, 10);
        } else if (letter == 'w') {
            wrong |= sscanf(optarg, "%ld-%ld", &settings.wait_low_ms, &settings.wait_high_ms) != 2;
        } else if (letter == 'r') {
            settings.rate = strtol(optarg, NULL, 10);
        } else if (letter == 'c') {
            settings.chunks = strtol(optarg, NULL, 10);
        } else {
            wrong = true;
        }
    }
    if (wrong || optind < argc || settings.port <= 0 || settings.rate <= 0 || settings.chunks < 1) {
        fprintf(stderr,
                "usage: bench_upstream --port P [--wait-ms LOW-HIGH] [--rate N] [--chunks N]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    read_settings(argc, argv);
    signal(SIGPIPE, SIG_IGN); /* clients cut streams */
    srandom(1);               /* the same waits in every run */
    int fd = listen_at(settings.port);
    settings.base = event_base_new();
    struct event *accepting =
        event_new(settings.base, fd, EV_READ | EV_PERSIST, on_connection, NULL);
    event_add(accepting, NULL);
    event_base_dispatch(settings.base);
    event_free(accepting);
    event_base_free(settings.base);
    close(fd);
    return 0;
}
