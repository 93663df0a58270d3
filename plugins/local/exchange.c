/* One exchange with the interpreter of a box: how it begins and ends. */
#include "exchange.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

bool exchange_claim(struct local *local, struct box *box)
{
    pthread_mutex_lock(&local->lock);
    bool free_now = !box->running;
    box->running = true;
    box->interrupt_wanted = free_now ? false : box->interrupt_wanted;
    pthread_mutex_unlock(&local->lock);
    return free_now;
}

void exchange_release(struct local *local, struct box *box)
{
    pthread_mutex_lock(&local->lock);
    box->running = false;
    pthread_mutex_unlock(&local->lock);
}

static void send_head(const struct box *box, enum frame_kind kind)
{
    uint8_t head[FRAME_HEAD_BYTES];
    frame_head(head, kind, false, box->nonce);
    (void)send(box->control, head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void exchange_answer_sync(const struct box *box)
{
    send_head(box, FRAME_SYNC);
}

void exchange_interrupt(const struct box *box)
{
    send_head(box, FRAME_INTERRUPT); /* first: when the signal comes it must be there */
    (void)box_interrupt(box);
}

/* ---- what came before ---- */

static void drop_packets(const struct exchange *exchange)
{
    struct box *box = exchange->box;
    struct frame frame;
    size_t dropped = 0, bytes = 0;
    ssize_t len;
    while (dropped < STALE_BYTES &&
           ((len = box_read_packet(box, exchange->packet, FRAME_BYTES_MAX, &bytes)) > 0 ||
            bytes > 0)) {
        dropped += bytes;
        if (len > 0 && frame_read(exchange->packet, (size_t)len, &frame) &&
            frame.nonce == box->nonce) {
            box->unfinished = box->unfinished && frame.kind != FRAME_FINISHED;
            if (frame.kind == FRAME_SYNC) {
                exchange_answer_sync(box); /* all that is in the pipes is dropped anyway */
            }
        }
    }
}

void exchange_drop_pipes(const struct exchange *exchange)
{
    int *pipes[] = {&exchange->box->out, &exchange->box->err};
    for (int i = 0; i < 2; i++) {
        size_t dropped = 0;
        ssize_t len;
        while (dropped < STALE_BYTES &&
               (len = box_read_pipe(exchange->box, pipes[i], exchange->packet, FRAME_BYTES_MAX)) >
                   0) {
            dropped += (size_t)len;
        }
    }
}

/* What came since the last exchange; `ready` or not, all is looked at. */
static void drop_stale(const struct exchange *exchange)
{
    drop_packets(exchange);
    exchange_drop_pipes(exchange);
}

/* The interpreter's end of its socket is closed: how it ended is about to be told by pid 1. */
static int fail_closed(const struct exchange *exchange, struct sg_error *err)
{
    struct box *box = exchange->box;
    int64_t until = local_now_ms() + GRACE_MS;
    box_read_status(box);
    while (box->end == END_NONE && local_now_ms() < until) {
        unsigned ready = 0;
        int result = box_wait(exchange->call, box, until - local_now_ms(), &ready, err);
        if (result != 0) {
            return result;
        }
        drop_stale(exchange);
        box_read_status(box);
    }
    char text[256];
    box_kill(box);
    return sg->fail(err, SG_E_GONE_BEFORE, "%s",
                    box->end == END_NONE ? "the interpreter closed its connection and was killed"
                                         : box_end_text(exchange->local, box, text, sizeof text));
}

int exchange_settle(const struct exchange *exchange, struct sg_error *err)
{
    struct box *box = exchange->box;
    int64_t until = local_now_ms() + GRACE_MS;
    drop_stale(exchange);
    box_read_status(box);
    while (box->unfinished && box->end == END_NONE && box->control >= 0) {
        unsigned ready = 0;
        int64_t left = until - local_now_ms();
        if (left <= 0) {
            box_kill(box);
            return sg->fail(err, SG_E_GONE_BEFORE,
                            "the code of an earlier run did not stop and was killed");
        }
        int result = box_wait(exchange->call, box, left, &ready, err);
        if (result != 0) {
            return result;
        }
        drop_stale(exchange);
        box_read_status(box);
    }
    return box->end != END_NONE || box->control < 0 ? fail_closed(exchange, err) : 0;
}

/* ---- the beginning ---- */

int exchange_begin(const struct exchange *exchange, struct sg_error *err)
{
    struct box *box = exchange->box;
    if (getrandom(&box->nonce, sizeof box->nonce, 0) != (ssize_t)sizeof box->nonce) {
        return sg->fail(err, SG_E_INTERNAL, "the system gave no random bytes");
    }
    box->group_kills = group_kills(box->events);
    (void)box_order(box, WIRE_BUSY, 0); /* a box that is gone is seen by what follows */
    box->memory_killed = false;
    box->unfinished = true;
    return 0;
}

/* One packet; waits while the socket is full. */
static int send_packet(const struct exchange *exchange, uint8_t head[FRAME_HEAD_BYTES],
                       const char *data, size_t len, struct sg_error *err)
{
    struct iovec iov[] = {{head, FRAME_HEAD_BYTES}, {(void *)(uintptr_t)data, len}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    for (;;) {
        if (sendmsg(exchange->box->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
            return 0;
        }
        if (errno == EPIPE || errno == ECONNRESET) {
            return fail_closed(exchange, err);
        }
        int64_t left_ms = exchange->deadline - local_now_ms();
        if (errno != EAGAIN || left_ms <= 0) {
            box_kill(exchange->box);
            return sg->fail(err, SG_E_GONE_BEFORE, "the interpreter does not take code any more");
        }
        int events = 0;
        int result =
            sg->wait_fd(exchange->call, exchange->box->control, SG_WRITE, left_ms, &events, err);
        if (result != 0 && (result != SG_E_TIMEOUT || sg->time_left_ms(exchange->call) <= 0)) {
            return result;
        }
    }
}

int exchange_send(const struct exchange *exchange, enum frame_kind kind, const char *data,
                  size_t len, bool more, struct sg_error *err)
{
    size_t at = 0;
    int result;
    do {
        uint8_t head[FRAME_HEAD_BYTES];
        size_t part = len - at < FRAME_BODY_BYTES ? len - at : FRAME_BODY_BYTES;
        frame_head(head, kind, more || at + part < len, exchange->box->nonce);
        result = send_packet(exchange, head, data + at, part, err);
        at += part;
    } while (result == 0 && at < len);
    return result;
}

/* ---- the end ---- */

void exchange_end(struct box *box, bool was_killed)
{
    if (!box->unfinished) {
        (void)box_order(box, WIRE_IDLE, 0);
    } else if (!was_killed) {
        exchange_interrupt(box); /* and not frozen: it is to come to its end */
    }
}
