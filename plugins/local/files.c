/* Files of a box: read, written and listed by a worker in the box, a process of its pid 1 with the box's own rights and
 * view, while code may be running; the gateway never opens a path of a box. The worker's end of a socket goes to pid 1 with
 * the order, so the code of the box never has it. What comes back is bounded, waited for no longer than FILE_MS, and told in
 * the gateway's own words. */
#include "exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_MS 20000
#define CHANGES_MS 2000
#define END_MS 1000 /* for a box to be gone once its worker is */
#define BUSY_MS 2   /* until another call's worker, or a full socket, is looked at again */
#define HOME "/home/user"

struct transfer {
    struct local *local;
    struct sg_call *call;
    struct box *box;
    enum wire_file_kind kind;
    const char *path;
    const char *data; /* WIRE_PUT */
    size_t data_len;
    const struct sg_sink *sink; /* NULL: the call's own */
    int64_t deadline;
    int socket;
    size_t bytes;   /* of content so far */
    size_t entries; /* so far */
    bool ended;
    struct wire_piece end;
    bool emit_failed; /* the core no longer takes what comes */
    struct text json; /* of an entry */
    char packet[sizeof(struct wire_piece) + WIRE_PIECE_BYTES];
};

static bool is_listing(const struct transfer *t)
{
    return t->kind == WIRE_LIST || t->kind == WIRE_CHANGED;
}

static int give(struct transfer *t, enum sg_out kind, const void *data, size_t len,
                struct sg_error *err)
{
    int result = t->sink == NULL ? sg->emit(t->call, kind, data, len, err)
                                 : t->sink->event(t->sink->ctx, kind, data, len, err);
    t->emit_failed = result != 0;
    return result;
}

/* ---- how it failed ---- */

static int fail_refused(const struct transfer *t, uint32_t refusal, struct sg_error *err)
{
    const char *path = t->path, *deed = t->kind == WIRE_PUT ? "written" : "read";
    switch (refusal) {
    case WIRE_NOT_FOUND:
        return sg->fail(err, SG_E_NOT_FOUND, "there is no %s '%.200s'",
                        is_listing(t) ? "folder" : "file", path);
    case WIRE_IS_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is a folder", path);
    case WIRE_NO_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is not a folder, or not in one", path);
    case WIRE_NO_FILE:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is neither a file nor a folder", path);
    case WIRE_TOO_LARGE:
        return is_listing(t) ? sg->fail(err, SG_E_LIMIT, "'%.200s' has more than %d entries", path,
                                        WIRE_ENTRIES_MAX)
                             : sg->fail(err, SG_E_LIMIT, "'%.200s' is larger than 10MiB", path);
    case WIRE_DENIED:
        return sg->fail(err, SG_E_INVALID, "'%.200s' may not be %s", path, deed);
    case WIRE_DISK_FULL:
        return sg->fail(err, SG_E_LIMIT, "the disk of the container is full");
    default:
        return sg->fail(err, SG_E_INVALID, "'%.200s' cannot be %s", path, deed);
    }
}

/* The reason is the reading call's to hear; one that reads now will tell it. */
static const char *end_text(struct transfer *t, char *text, size_t size)
{
    struct box *box = t->box;
    if (!exchange_claim(t->local, box)) {
        return "the container has ended";
    }
    box_read_status(box);
    exchange_release(t->local, box);
    return box->end == END_NONE ? "the container has ended"
                                : box_end_text(t->local, box, text, size);
}

static bool box_is_closing(const struct transfer *t)
{
    pthread_mutex_lock(&t->local->lock);
    bool closing = t->box->closing;
    pthread_mutex_unlock(&t->local->lock);
    return closing;
}

/* The worker is gone without a word: with its box, or killed alone. */
static int fail_broken(struct transfer *t, struct sg_error *err)
{
    char text[256];
    int ready = 0;
    struct pollfd ended = {.fd = t->box->init, .events = POLLIN};
    int result = poll(&ended, 1, 0) == 1
                     ? 0
                     : sg->wait_fd(t->call, t->box->init, SG_READ, END_MS, &ready, err);
    if (result == SG_E_TIMEOUT && sg->time_left_ms(t->call) > 0) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "the container's processes do not let its files be served");
    }
    if (result != 0) {
        return result;
    }
    if (box_is_closing(t)) {
        return sg->fail(err, SG_E_GONE, "the container was deleted meanwhile");
    }
    return sg->fail(err, SG_E_GONE, "%s; variables and files are gone",
                    end_text(t, text, sizeof text));
}

static int fail_late(struct sg_error *err)
{
    return sg->fail(err, SG_E_TIMEOUT, "the container did not answer in time");
}

/* ---- what comes ---- */

static int take_data(struct transfer *t, const char *data, size_t len, struct sg_error *err)
{
    t->bytes += len;
    return t->bytes > WIRE_FILE_BYTES_MAX ? fail_refused(t, WIRE_TOO_LARGE, err)
                                          : give(t, SG_OUT_DATA, data, len, err);
}

/* The listed folder's path as an absolute one, without what says nothing at its end. */
static void put_folder(struct text *json, const char *path)
{
    size_t len = strlen(path);
    while (len > 0 &&
           (path[len - 1] == '/' || (path[len - 1] == '.' && (len == 1 || path[len - 2] == '/')))) {
        len--;
    }
    if (path[0] != '/') {
        text_puts(json, HOME);
        text_puts(json, len > 0 ? "/" : "");
    }
    text_put_json(json, path, len);
}

static int take_entry(struct transfer *t, const struct wire_piece *piece, const char *name,
                      size_t len, struct sg_error *err)
{
    static const char *const types[WIRE_ENTRY_TYPES] = {"file", "directory", "other"};
    char tail[80];
    if (piece->number >= WIRE_ENTRY_TYPES || ++t->entries > WIRE_ENTRIES_MAX) {
        return fail_refused(t, WIRE_TOO_LARGE, err);
    }
    snprintf(tail, sizeof tail, "\",\"size\":%llu,\"type\":\"%s\"}",
             (unsigned long long)piece->size, types[piece->number]);
    text_reset(&t->json);
    text_puts(&t->json, "{\"path\":\"");
    put_folder(&t->json, t->path);
    text_puts(&t->json, "/");
    text_put_json(&t->json, name, len);
    text_puts(&t->json, tail);
    return t->json.cut ? sg->fail(err, SG_E_LIMIT, "no memory for a folder's entries")
                       : give(t, SG_OUT_FILE, t->json.data, t->json.len, err);
}

static int take_piece(struct transfer *t, size_t packet_len, struct sg_error *err)
{
    struct wire_piece piece;
    memcpy(&piece, t->packet, sizeof piece);
    const char *data = t->packet + sizeof piece;
    size_t len = packet_len - sizeof piece;
    switch (piece.kind) {
    case WIRE_DATA:
        return take_data(t, data, len, err);
    case WIRE_ENTRY:
        return take_entry(t, &piece, data, len, err);
    default:
        t->ended = true;
        t->end = piece;
        return 0;
    }
}

/* Waits for the socket, until the deadline. */
static int await(struct transfer *t, int events, struct sg_error *err)
{
    int ready = 0;
    int64_t left = t->deadline - local_now_ms();
    if (left <= 0) {
        return fail_late(err);
    }
    int result = sg->wait_fd(t->call, t->socket, events, left, &ready, err);
    return result == SG_E_TIMEOUT && sg->time_left_ms(t->call) > 0 ? fail_late(err) : result;
}

static int take_answer(struct transfer *t, struct sg_error *err)
{
    int result = 0;
    while (result == 0) {
        ssize_t len = recv(t->socket, t->packet, sizeof t->packet, MSG_DONTWAIT);
        if (len == 0 && t->ended) {
            return 0; /* and its process is gone */
        }
        if (len >= (ssize_t)sizeof(struct wire_piece)) {
            result = take_piece(t, (size_t)len, err);
        } else if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
            result = await(t, SG_READ, err);
        } else {
            result = fail_broken(t, err);
        }
    }
    return result;
}

/* ---- what goes ---- */

static int send_content(struct transfer *t, struct sg_error *err)
{
    size_t at = 0;
    int result = 0;
    while (result == 0 && at < t->data_len) {
        size_t part = t->data_len - at < WIRE_PIECE_BYTES ? t->data_len - at : WIRE_PIECE_BYTES;
        if (send(t->socket, t->data + at, part, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
            at += part;
        } else if (errno == EAGAIN || errno == EINTR) {
            result = await(t, SG_WRITE, err);
        } else {
            result = fail_broken(t, err);
        }
    }
    return result;
}

static bool send_request(const struct transfer *t)
{
    struct wire_file file = {.magic = WIRE_MAGIC, .kind = (uint32_t)t->kind, .size = t->data_len};
    snprintf(file.path, sizeof file.path, "%s", t->path);
    return send(t->socket, &file, sizeof file, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof file;
}

/* Hands the worker's end to pid 1. */
static int order(struct transfer *t, int worker_end, struct sg_error *err)
{
    int error;
    while ((error = box_order_file(t->box, worker_end)) == EAGAIN) {
        if (local_now_ms() >= t->deadline) {
            return fail_late(err);
        }
        int result = sg->sleep(t->call, BUSY_MS, err);
        if (result != 0) {
            return result;
        }
    }
    char text[256];
    return error == 0 ? 0 : sg->fail(err, SG_E_GONE_BEFORE, "%s", end_text(t, text, sizeof text));
}

static int ask(struct transfer *t, struct sg_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return sg->fail(err, SG_E_UNAVAILABLE, "no descriptors left for a file: %s",
                        strerror(errno));
    }
    t->socket = ends[0];
    int result = send_request(t) ? order(t, ends[1], err)
                                 : sg->fail(err, SG_E_UNAVAILABLE, "no memory for a file");
    close(ends[1]);
    result = result == 0 ? send_content(t, err) : result;
    result = result == 0 ? take_answer(t, err) : result;
    close(ends[0]); /* a worker whose answer nobody waits for ends by that */
    return result;
}

/* ---- the functions ---- */

/* A box serves one at a time. */
static int claim(struct transfer *t, struct sg_error *err)
{
    for (;;) {
        pthread_mutex_lock(&t->local->lock);
        bool is_ours = !t->box->filing;
        t->box->filing = true;
        pthread_mutex_unlock(&t->local->lock);
        if (is_ours) {
            return 0;
        }
        int result =
            local_now_ms() < t->deadline ? sg->sleep(t->call, BUSY_MS, err) : fail_late(err);
        if (result != 0) {
            return result;
        }
    }
}

static int claim_and_ask(struct transfer *t, struct sg_error *err)
{
    int result = claim(t, err);
    if (result == 0) {
        result = ask(t, err);
        pthread_mutex_lock(&t->local->lock);
        t->box->filing = false;
        pthread_mutex_unlock(&t->local->lock);
    }
    text_clear(&t->json);
    return result == 0 && t->end.number != WIRE_DONE ? fail_refused(t, t->end.number, err) : result;
}

static struct transfer *transfer_new(struct local *local, struct sg_call *call, struct box *box,
                                     enum wire_file_kind kind, const char *path,
                                     struct sg_error *err)
{
    if (path[0] == '\0' || strlen(path) >= WIRE_PATH_BYTES) {
        sg->fail(err, SG_E_INVALID, "a path has 1 to %d bytes", WIRE_PATH_BYTES - 1);
        return NULL;
    }
    struct transfer *t = sg->alloc(call, sizeof *t);
    if (t == NULL) {
        sg->fail(err, SG_E_INVALID, "no memory for a file");
        return NULL;
    }
    memset(t, 0, offsetof(struct transfer, packet));
    t->local = local;
    t->call = call;
    t->box = box;
    t->kind = kind;
    t->path = path;
    t->deadline = local_now_ms() + (kind == WIRE_CHANGED ? CHANGES_MS : FILE_MS);
    return t;
}

int local_get(struct local *local, struct sg_call *call, struct box *box, const char *path,
              struct sg_error *err)
{
    struct transfer *t = transfer_new(local, call, box, WIRE_GET, path, err);
    int result = t == NULL ? SG_E_INVALID : claim_and_ask(t, err);
    return result == 0 && t->bytes == 0 ? sg->emit(call, SG_OUT_DATA, "", 0, err) : result;
}

int local_put(struct local *local, struct sg_call *call, struct box *box, const char *path,
              const void *data, size_t len, struct sg_error *err)
{
    struct transfer *t = transfer_new(local, call, box, WIRE_PUT, path, err);
    if (t == NULL) {
        return SG_E_INVALID;
    }
    t->data = data;
    t->data_len = len;
    return len > WIRE_FILE_BYTES_MAX ? fail_refused(t, WIRE_TOO_LARGE, err) : claim_and_ask(t, err);
}

int local_list(struct local *local, struct sg_call *call, struct box *box, const char *path,
               struct sg_error *err)
{
    struct transfer *t =
        transfer_new(local, call, box, WIRE_LIST, path[0] == '\0' ? "." : path, err);
    return t == NULL ? SG_E_INVALID : claim_and_ask(t, err);
}

int local_tell_changes(struct local *local, struct sg_call *call, struct box *box,
                       const struct sg_sink *sink, struct sg_error *err)
{
    char line[96];
    struct sg_error *ignored = NULL;
    struct transfer *t = transfer_new(local, call, box, WIRE_CHANGED, HOME, ignored);
    if (t == NULL) {
        return 0;
    }
    t->sink = sink;
    int result = claim_and_ask(t, err);
    if (result == SG_E_CANCELLED || t->emit_failed) {
        return result;
    }
    if (result != 0 || t->end.size == 0) {
        return 0;
    }
    int len = snprintf(line, sizeof line, "\n[%llu more files are new or changed]\n",
                       (unsigned long long)t->end.size);
    return sink->event(sink->ctx, SG_OUT_LOG_ERR, line, (size_t)len, err);
}
