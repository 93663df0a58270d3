/* Files of a box: its interpreter's side reads, writes and lists them, with the box's own rights and within its own view
 * of the file system; the gateway never opens a path of a box. What it answers is hostile input like all else: counted,
 * checked frame by frame, waited for no longer than FILE_MS, and told in the gateway's own words. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MS 20000
#define END_MS 5000 /* for the word of the end of a box whose connection is closed */
#define PATH_BYTES_MAX 4096
#define ANSWER_BYTES_MAX (2 * FILE_BYTES_MAX) /* of one function, whatever it is */
#define HOME "/home/user"

struct transfer {
    struct exchange exchange;
    const char *path;
    bool is_listing, is_writing;
    size_t bytes;   /* of content so far */
    size_t entries; /* so far */
    size_t taken;   /* bytes of packets of all kinds */
    bool has_data;  /* some DATA was emitted */
    bool refused, finished, is_closed;
    enum frame_refusal refusal;
    struct text json; /* of an entry */
};

/* ---- how it failed ---- */

static int fail_refused(const struct transfer *t, enum frame_refusal refusal, struct sg_error *err)
{
    const char *path = t->path;
    switch (refusal) {
    case REFUSAL_NOT_FOUND:
        return sg->fail(err, SG_E_NOT_FOUND, "there is no %s '%.200s'",
                        t->is_listing ? "folder" : "file", path);
    case REFUSAL_IS_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is a folder", path);
    case REFUSAL_NO_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is not a folder, or not in one", path);
    case REFUSAL_NO_FILE:
        return sg->fail(err, SG_E_INVALID, "'%.200s' is neither a file nor a folder", path);
    case REFUSAL_TOO_LARGE:
        return t->is_listing ? sg->fail(err, SG_E_LIMIT, "'%.200s' has more than %d entries", path,
                                        FILE_ENTRIES_MAX)
                             : sg->fail(err, SG_E_LIMIT, "'%.200s' is larger than 10MiB", path);
    case REFUSAL_DENIED:
        return sg->fail(err, SG_E_INVALID, "'%.200s' may not be %s", path,
                        t->is_writing ? "written" : "read");
    case REFUSAL_DISK_FULL:
        return sg->fail(err, SG_E_LIMIT, "the disk of the container is full");
    default:
        return sg->fail(err, SG_E_INVALID, "'%.200s' cannot be %s", path,
                        t->is_writing ? "written" : "read");
    }
}

static int fail_gone(const struct transfer *t, struct sg_error *err)
{
    char end[256];
    return sg->fail(err, SG_E_GONE, "%s; variables and files are gone",
                    box_end_text(t->exchange.local, t->exchange.box, end, sizeof end));
}

/* ---- what comes ---- */

static int take_data(struct transfer *t, const struct frame *frame, struct sg_error *err)
{
    t->bytes += frame->body_len;
    if (t->bytes > FILE_BYTES_MAX) {
        return fail_refused(t, REFUSAL_TOO_LARGE, err);
    }
    t->has_data = true;
    return sg->emit(t->exchange.call, SG_OUT_DATA, frame->body, frame->body_len, err);
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

static int take_entry(struct transfer *t, const struct frame *frame, struct sg_error *err)
{
    static const char *const types[ENTRY_TYPES] = {"file", "directory", "other"};
    char tail[80];
    if (++t->entries > FILE_ENTRIES_MAX) {
        return fail_refused(t, REFUSAL_TOO_LARGE, err);
    }
    snprintf(tail, sizeof tail, "\",\"size\":%llu,\"type\":\"%s\"}",
             (unsigned long long)frame->size, types[frame->number]);
    text_reset(&t->json);
    text_puts(&t->json, "{\"path\":\"");
    put_folder(&t->json, t->path);
    text_puts(&t->json, "/");
    text_put_json(&t->json, frame->body, frame->body_len);
    text_puts(&t->json, tail);
    return t->json.cut ? sg->fail(err, SG_E_LIMIT, "no memory for a folder's entries")
                       : sg->emit(t->exchange.call, SG_OUT_FILE, t->json.data, t->json.len, err);
}

static int take_frame(struct transfer *t, const struct frame *frame, struct sg_error *err)
{
    switch (frame->kind) {
    case FRAME_DATA:
        return t->is_listing || t->is_writing ? 0 : take_data(t, frame, err);
    case FRAME_ENTRY:
        return t->is_listing ? take_entry(t, frame, err) : 0;
    case FRAME_REFUSED:
        t->refused = true;
        t->refusal = (enum frame_refusal)frame->number;
        return 0;
    case FRAME_SYNC: /* what is in the pipes belongs to no run */
        exchange_answer_sync(t->exchange.box);
        return 0;
    case FRAME_FINISHED:
        t->finished = true;
        return 0;
    default:
        return 0;
    }
}

/* Packets until there are none, or it has finished, or it is the turn of others. */
static int take_packets(struct transfer *t, struct sg_error *err)
{
    struct box *box = t->exchange.box;
    size_t bytes = 0, turn = 0;
    ssize_t len;
    int result = 0;
    while (result == 0 && !t->finished && box->end == END_NONE && turn < FRAME_BYTES_MAX * 4 &&
           ((len = box_read_packet(box, t->exchange.packet, FRAME_BYTES_MAX, &bytes)) > 0 ||
            bytes > 0)) {
        struct frame frame;
        turn += bytes;
        t->taken += bytes;
        if (t->taken > ANSWER_BYTES_MAX) {
            return sg->fail(err, SG_E_UNAVAILABLE,
                            "the container answered with more than any file has");
        }
        if (len > 0 && frame_read(t->exchange.packet, (size_t)len, &frame) &&
            frame.nonce == box->nonce) {
            result = take_frame(t, &frame, err);
        }
    }
    return result;
}

static bool is_interrupted(const struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->local->lock);
    bool is = exchange->box->interrupt_wanted;
    exchange->box->interrupt_wanted = false;
    pthread_mutex_unlock(&exchange->local->lock);
    return is;
}

/* A closed connection is the end; how it came to that is about to be told. */
static void await_word_of_end(struct transfer *t)
{
    if (t->exchange.box->control < 0 && !t->is_closed) {
        t->is_closed = true;
        t->exchange.deadline = local_now_ms() + END_MS;
    }
}

static int take_answer(struct transfer *t, struct sg_error *err)
{
    struct box *box = t->exchange.box;
    for (;;) {
        int result = take_packets(t, err);
        if (result != 0 || t->finished) {
            return result;
        }
        if (is_interrupted(&t->exchange)) {
            return sg->fail(err, SG_E_UNAVAILABLE, "interrupted");
        }
        box_read_status(box);
        await_word_of_end(t);
        unsigned ready = 0;
        int64_t left = t->exchange.deadline - local_now_ms();
        if (box->end != END_NONE || (t->is_closed && left <= 0)) {
            box_kill(box);
            return fail_gone(t, err);
        }
        if (left <= 0) {
            return sg->fail(err, SG_E_TIMEOUT, "the container did not answer in time");
        }
        result = box_wait(t->exchange.call, box, left, &ready, err);
        if (result != 0) {
            return result;
        }
        if ((ready & (READY_STDOUT | READY_STDERR)) != 0) {
            exchange_drop_pipes(&t->exchange); /* or it would be ready at once again */
        }
    }
}

/* ---- the functions ---- */

static int ask(struct transfer *t, enum frame_kind kind, const void *data, size_t len,
               struct sg_error *err)
{
    int result = exchange_settle(&t->exchange, err);
    t->exchange.deadline = local_now_ms() + FILE_MS;
    if (result == 0) {
        result = exchange_begin(&t->exchange, err);
    }
    if (result == 0) {
        result = exchange_send(&t->exchange, kind, t->path, strlen(t->path), false, err);
    }
    if (result == 0 && kind == FRAME_PUT) {
        result = exchange_send(&t->exchange, FRAME_CONTENT, data, len, false, err);
    }
    if (result == 0) {
        result = take_answer(t, err);
    }
    t->exchange.box->unfinished = t->exchange.box->unfinished && !t->finished;
    exchange_end(t->exchange.box, false);
    return result == 0 && t->refused ? fail_refused(t, t->refusal, err) : result;
}

static int claim_and_ask(struct transfer *t, enum frame_kind kind, const void *data, size_t len,
                         struct sg_error *err)
{
    if (t->path[0] == '\0' || strlen(t->path) > PATH_BYTES_MAX) {
        return sg->fail(err, SG_E_INVALID, "a path has 1 to %d bytes", PATH_BYTES_MAX);
    }
    t->exchange.packet = malloc(FRAME_BYTES_MAX);
    if (t->exchange.packet == NULL) {
        return sg->fail(err, SG_E_UNAVAILABLE, "no memory for a file");
    }
    int result;
    if (exchange_claim(t->exchange.local, t->exchange.box)) {
        result = ask(t, kind, data, len, err);
        exchange_release(t->exchange.local, t->exchange.box);
    } else {
        result = sg->fail(err, SG_E_INTERNAL, "code runs in this container already");
    }
    free(t->exchange.packet);
    text_clear(&t->json);
    return result;
}

int local_get(struct local *local, struct sg_call *call, struct box *box, const char *path,
              struct sg_error *err)
{
    struct transfer t = {.exchange = {.local = local, .call = call, .box = box}, .path = path};
    int result = claim_and_ask(&t, FRAME_GET, NULL, 0, err);
    return result == 0 && !t.has_data ? sg->emit(call, SG_OUT_DATA, "", 0, err) : result;
}

int local_put(struct local *local, struct sg_call *call, struct box *box, const char *path,
              const void *data, size_t len, struct sg_error *err)
{
    struct transfer t = {
        .exchange = {.local = local, .call = call, .box = box}, .path = path, .is_writing = true};
    return len > FILE_BYTES_MAX ? fail_refused(&t, REFUSAL_TOO_LARGE, err)
                                : claim_and_ask(&t, FRAME_PUT, data == NULL ? "" : data, len, err);
}

int local_list(struct local *local, struct sg_call *call, struct box *box, const char *path,
               struct sg_error *err)
{
    struct transfer t = {.exchange = {.local = local, .call = call, .box = box},
                         .path = path[0] == '\0' ? "." : path,
                         .is_listing = true};
    return claim_and_ask(&t, FRAME_LIST, NULL, 0, err);
}
