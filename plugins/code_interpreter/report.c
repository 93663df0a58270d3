/* The text for the model, put together as a run goes: a fixed buffer whatever comes, UTF-8 whatever a provider sends. */
#include "report.h"

#include "traceback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 1024 /* of a failure's message and of a note */
#define MARKER_BYTES 96    /* room for the line that says how much was cut */
#define NOTE_BYTES 256     /* of a note within the text */
#define DECODE_BYTES 2048  /* decoded at a time */

bool report_init(struct report *r, struct sg_call *call, size_t shown)
{
    *r = (struct report){.call = call, .shown = shown, .half = shown / 2};
    r->ring_at = r->half;
    r->bytes = sg->alloc(call, shown);
    return r->bytes != NULL;
}

/* Text that is valid UTF-8 by itself. */
static void put(struct report *r, const char *data, size_t len)
{
    if (len == 0) {
        return;
    }
    r->last = data[len - 1];
    if (r->total < r->half) {
        size_t part = r->half - (size_t)r->total < len ? r->half - (size_t)r->total : len;
        memcpy(r->bytes + r->total, data, part);
        r->total += part;
        data += part;
        len -= part;
    }
    r->total += len;
    size_t ring = r->shown - r->half;
    if (len > ring) { /* all but the end would be overwritten at once */
        r->ring_at = r->half + (r->ring_at - r->half + (len - ring)) % ring;
        data += len - ring;
        len = ring;
    }
    while (len > 0) {
        size_t part = r->shown - r->ring_at < len ? r->shown - r->ring_at : len;
        memcpy(r->bytes + r->ring_at, data, part);
        r->ring_at = r->ring_at + part == r->shown ? r->half : r->ring_at + part;
        data += part;
        len -= part;
    }
}

void report_puts(struct report *r, const char *text)
{
    put(r, text, strlen(text));
}

static void end_partial(struct report *r)
{
    if (r->partial_len > 0) {
        report_puts(r, "\xEF\xBF\xBD");
        r->partial_len = 0;
    }
}

/* Bytes of the character that starts with c, by its first byte alone; 0 if none can. */
static size_t character_length(unsigned char c)
{
    if (c < 0x80) {
        return 1;
    }
    if (c < 0xC2 || c > 0xF4) {
        return 0;
    }
    return c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* How many of the `len` bytes at p (at most one character) can be the start of one: a whole one gives its length. */
static size_t character_valid(const unsigned char *p, size_t len)
{
    size_t want = character_length(p[0]);
    if (want == 0) {
        return 0;
    }
    unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    size_t i = 1;
    while (i < want && i < len && p[i] >= low && p[i] <= high) {
        low = 0x80;
        high = 0xBF;
        i++;
    }
    return i;
}

/* Goes on with a character whose start came before; returns the bytes used. */
static size_t continue_partial(struct report *r, const char *data, size_t len)
{
    size_t used = 0;
    size_t want = character_length((unsigned char)r->partial[0]);
    while (used < len && r->partial_len < want) {
        r->partial[r->partial_len] = data[used];
        if (character_valid((const unsigned char *)r->partial, r->partial_len + 1) !=
            r->partial_len + 1) {
            end_partial(r);
            return used;
        }
        r->partial_len++;
        used++;
    }
    if (r->partial_len == want) {
        put(r, r->partial, want);
        r->partial_len = 0;
    }
    return used;
}

/* Text of unknown quality: what is not UTF-8 becomes U+FFFD; a character may come in pieces of one kind. */
static void put_text(struct report *r, enum sg_out kind, const char *data, size_t len)
{
    if (r->partial_len > 0 && r->partial_kind != kind) {
        end_partial(r);
    }
    size_t at = r->partial_len > 0 ? continue_partial(r, data, len) : 0;
    size_t from = at;
    while (at < len) {
        const unsigned char *p = (const unsigned char *)data + at;
        size_t valid = character_valid(p, len - at);
        if (valid > 0 && valid == character_length(*p)) {
            at += valid;
            continue;
        }
        put(r, data + from, at - from);
        if (valid > 0 && at + valid == len) { /* the rest may still come */
            memcpy(r->partial, p, valid);
            r->partial_len = valid;
            r->partial_kind = kind;
            return;
        }
        report_puts(r, "\xEF\xBF\xBD");
        at += valid > 0 ? valid : 1;
        from = at;
    }
    put(r, data + from, at - from);
}

static void begin_line(struct report *r)
{
    end_partial(r);
    if (r->total > 0 && r->last != '\n') {
        report_puts(r, "\n");
    }
}

static void put_decoded(struct report *r, enum sg_out kind, struct json_value string)
{
    struct json_value rest = json_inside(string);
    char piece[DECODE_BYTES];
    size_t len;
    while ((len = json_decode(&rest, piece, sizeof piece)) > 0) {
        put_text(r, kind, piece, len);
    }
    end_partial(r);
}

/* The end of text that was decoded only as far as there was room: a character cut in two goes. */
static void end_cut(struct report *r, struct json_value rest, const char *mark)
{
    if (rest.len > 0) {
        r->partial_len = 0;
        report_puts(r, mark);
    }
    end_partial(r);
}

/* A name from outside on a line of ours: cut at `max` bytes, without what would break the line. */
static void put_name(struct report *r, struct json_value string, size_t max)
{
    char name[512];
    struct json_value rest = json_inside(string);
    size_t len = json_decode(&rest, name, max < sizeof name ? max : sizeof name);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F) {
            name[i] = '?';
        }
    }
    put_text(r, SG_OUT_DATA, name, len);
    end_cut(r, rest, "...");
}

static bool key_starts(struct json_value key, const char *prefix)
{
    size_t len = strlen(prefix);
    return key.len > len + 1 && memcmp(key.data + 1, prefix, len) == 0;
}

/* One line for what cannot be told as text. Whether a client shows it is not known here, so nothing is promised. */
static void put_unseen(struct report *r, struct json_value key)
{
    begin_line(r);
    report_puts(r, "[");
    put_name(r, key, 64);
    report_puts(r, ", not shown]");
}

static bool put_result(struct report *r, const char *data, size_t len)
{
    static const char *const names[] = {"text/plain"};
    struct json_value text;
    if (!json_find(data, len, names, &text, 1)) {
        begin_line(r);
        report_puts(r, "[a result that cannot be read]");
        return false;
    }
    bool has_text = json_is_string(text);
    if (has_text) {
        begin_line(r);
        put_decoded(r, SG_OUT_RESULT, text);
    }
    struct json_reader reader = json_reader_of(data, len);
    struct json_value key, value;
    while (json_next(&reader, &key, &value)) {
        if (key_starts(key, "image/") || (!has_text && !json_string_is(key, "text/plain"))) {
            put_unseen(r, key);
        }
    }
    return true;
}

void report_name(struct report *r, struct json_value string)
{
    put_name(r, string, 256);
}

static uint64_t number_of(struct json_value value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < value.len && value.data[i] >= '0' && value.data[i] <= '9'; i++) {
        if (number > UINT64_MAX / 10 - 1) {
            break;
        }
        number = number * 10 + (uint64_t)(value.data[i] - '0');
    }
    return number;
}

void report_size(struct report *r, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    char text[48];
    if (bytes < 1024) {
        snprintf(text, sizeof text, "%" PRIu64 " B", bytes);
    } else {
        double size = (double)bytes / 1024;
        size_t unit = 0;
        for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) {
            size /= 1024;
        }
        snprintf(text, sizeof text, "%.1f %s", size, units[unit]);
    }
    report_puts(r, text);
}

static bool put_file(struct report *r, const char *data, size_t len)
{
    static const char *const names[] = {"path", "size", "type"};
    struct json_value found[3];
    begin_line(r);
    if (!json_find(data, len, names, found, 3) || !json_is_string(found[0])) {
        report_puts(r, "[a file whose name cannot be read]");
        return false;
    }
    if (json_string_is(found[2], "directory")) {
        report_puts(r, "[folder: ");
        report_name(r, found[0]);
    } else {
        report_puts(r, "[file: ");
        report_name(r, found[0]);
        report_puts(r, ", ");
        report_size(r, number_of(found[1]));
    }
    report_puts(r, "]");
    return true;
}

/* A short traceback and, on the last line where the tail always holds it, the label. */
static bool put_exception(struct report *r, const char *data, size_t len)
{
    static const char *const names[] = {"name", "value", "traceback"};
    struct json_value found[3];
    begin_line(r);
    if (!json_find(data, len, names, found, 3)) {
        report_puts(r, "[exception] (without details)");
        return false;
    }
    if (json_is_string(found[2])) {
        char traceback[TRACEBACK_BYTES];
        size_t shown = traceback_shorten(found[2], found[0], traceback);
        put_text(r, SG_OUT_EXCEPTION, traceback, shown);
        begin_line(r);
    }
    report_puts(r, "[exception] ");
    if (json_is_string(found[0])) {
        put_name(r, found[0], 64);
    }
    if (json_is_string(found[1]) && found[1].len > 2) {
        report_puts(r, ": ");
        char value[DECODE_BYTES / 2];
        struct json_value rest = json_inside(found[1]);
        size_t room = r->shown / 4 < sizeof value ? r->shown / 4 : sizeof value;
        put_text(r, SG_OUT_EXCEPTION, value, json_decode(&rest, value, room));
        end_cut(r, rest, " ...");
    }
    return true;
}

/* What stands in front of everything: that earlier variables are gone. */
static void keep_note(struct report *r, struct json_value string)
{
    char *note = r->note == NULL ? sg->alloc(r->call, MESSAGE_BYTES + 4) : NULL;
    if (note != NULL) {
        struct json_value rest = json_inside(string);
        note[0] = '[';
        size_t decoded = json_decode(&rest, note + 1, MESSAGE_BYTES);
        memcpy(note + 1 + decoded, "]\n", 2);
        r->note = note;
        r->note_len = decoded + 3;
    }
}

/* A line of its own at the place where it came. */
static void put_note(struct report *r, struct json_value string)
{
    begin_line(r);
    report_puts(r, "[");
    put_name(r, string, NOTE_BYTES);
    report_puts(r, "]");
}

/* Of what the core and the provider say of a run, the model has to know what became of its state and its processes. */
static bool take_status(struct report *r, const char *data, size_t len)
{
    static const char *const names[] = {"state", "note"};
    struct json_value found[2];
    if (!json_find(data, len, names, found, 2)) {
        return false;
    }
    r->has_run |= json_string_is(found[0], "output") || json_string_is(found[0], "memory") ||
                  json_string_is(found[0], "begun");
    if (!json_is_string(found[1])) {
        return true;
    }
    if (json_string_is(found[0], "lost")) {
        keep_note(r, found[1]);
    } else if (json_string_is(found[0], "memory")) {
        put_note(r, found[1]);
    } else if (json_string_is(found[0], "restarted")) {
        bool is_first = r->total == r->noted;
        put_note(r, found[1]);
        report_puts(r, "\n"); /* the run's output may follow */
        r->noted = is_first ? r->total : r->noted;
    }
    return true;
}

bool report_event(struct report *r, enum sg_out kind, const char *data, size_t len)
{
    r->has_run |= kind != SG_OUT_STATUS;
    switch (kind) {
    case SG_OUT_LOG_OUT:
    case SG_OUT_LOG_ERR:
        put_text(r, kind, data, len);
        return true;
    case SG_OUT_RESULT:
        return put_result(r, data, len);
    case SG_OUT_FILE:
        return put_file(r, data, len);
    case SG_OUT_EXCEPTION:
        return put_exception(r, data, len);
    case SG_OUT_STATUS:
        return take_status(r, data, len);
    default:
        return false; /* nothing that a run may emit */
    }
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The ring's bytes in order, from `from` on (0 is its oldest). */
static size_t copy_ring(const struct report *r, size_t from, char *out)
{
    size_t ring = r->shown - r->half;
    for (size_t i = from; i < ring; i++) {
        out[i - from] = r->bytes[r->half + (r->ring_at - r->half + i) % ring];
    }
    return ring - from;
}

/* Head, a line with the exact count, tail: together at most `shown` bytes. */
static size_t copy_cut(const struct report *r, char *out)
{
    size_t head = (r->shown - MARKER_BYTES) / 2;
    while (head > 0 && is_continuation(r->bytes[head])) {
        head--;
    }
    memcpy(out, r->bytes, head);
    size_t ring = r->shown - r->half;
    char *tail = out + head + MARKER_BYTES;
    size_t tail_len = copy_ring(r, ring - (r->shown - MARKER_BYTES) / 2, tail);
    while (tail_len > 0 && is_continuation(*tail)) {
        tail++;
        tail_len--;
    }
    const char *line_break = head > 0 && out[head - 1] != '\n' ? "\n" : "";
    char marker[MARKER_BYTES];
    int marker_len =
        snprintf(marker, sizeof marker, "%s[... %" PRIu64 " of %" PRIu64 " bytes cut ...]\n",
                 line_break, r->total - head - tail_len, r->total);
    memcpy(out + head, marker, (size_t)marker_len);
    memmove(out + head + marker_len, tail, tail_len);
    return head + (size_t)marker_len + tail_len;
}

static size_t copy_body(const struct report *r, char *out)
{
    if (r->total > r->shown) {
        return copy_cut(r, out);
    }
    memcpy(out, r->bytes, (size_t)r->total); /* the ring has not wrapped */
    return (size_t)r->total;
}

static size_t copy_label(char *out, size_t len, const char *label, const char *message)
{
    if (len > 0 && out[len - 1] != '\n') {
        out[len++] = '\n';
    }
    return len + (size_t)snprintf(out + len, MESSAGE_BYTES, "%s%s%.*s", label,
                                  message == NULL ? "" : " ", MESSAGE_BYTES - 64,
                                  message == NULL ? "" : message);
}

int report_emit(struct report *r, const char *label, const char *message, struct sg_error *err)
{
    end_partial(r);
    char *text = sg->alloc(r->call, r->note_len + r->shown + MARKER_BYTES + MESSAGE_BYTES + 16);
    if (text == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory for the text that the model is shown");
    }
    size_t len = 0;
    if (r->note != NULL) {
        memcpy(text, r->note, r->note_len);
        len = r->note_len;
    }
    len += copy_body(r, text + len);
    if (label != NULL) {
        len = copy_label(text, len, label, message);
    } else if (r->total == r->noted) {
        static const char nothing[] = "[no output]";
        memcpy(text + len, nothing, sizeof nothing - 1);
        len += sizeof nothing - 1;
    }
    return sg->emit(r->call, SG_OUT_MODEL, text, len, err);
}
