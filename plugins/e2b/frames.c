/* Frames of the Connect protocol and the small things that their JSON is made of. */
#include "frames.h"

#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

enum frame_flags { FRAME_MESSAGE = 0, FRAME_LAST = 2 };

/* ---- frames ---- */

static size_t length_of(const char *head)
{
    const unsigned char *p = (const unsigned char *)head + 1;
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static bool fail(struct frames *frames, const char *problem)
{
    frames->problem = problem;
    return false;
}

/* Holds more bytes until there are `wanted` of them. */
static bool hold(struct frames *frames, size_t wanted, const char **data, size_t *len)
{
    size_t missing = wanted > frames->held.len ? wanted - frames->held.len : 0;
    size_t part = missing < *len ? missing : *len;
    text_put(&frames->held, *data, part);
    *data += part;
    *len -= part;
    return frames->held.len >= wanted;
}

static bool is_head_valid(struct frames *frames)
{
    unsigned char flags = (unsigned char)frames->held.data[0];
    if (flags != FRAME_MESSAGE && flags != FRAME_LAST) {
        return fail(frames, "a frame has flags that were not asked for");
    }
    return length_of(frames->held.data) <= FRAME_BYTES_MAX ||
           fail(frames, "a frame is larger than 4MiB");
}

bool frames_next(struct frames *frames, const char **data, size_t *len, struct frame *ret)
{
    if (frames->problem != NULL || *len == 0) {
        return false;
    }
    if (frames->has_ended) {
        return fail(frames, "more came behind the last frame");
    }
    /* The flags are looked at first: what is no stream of frames at all is not waited for. */
    if (!hold(frames, 1, data, len) || !hold(frames, FRAME_HEAD_BYTES, data, len)) {
        return frames->held.overflow ? fail(frames, "there is no memory for a frame") : false;
    }
    size_t size = is_head_valid(frames) ? FRAME_HEAD_BYTES + length_of(frames->held.data) : 0;
    if (size == 0 || !hold(frames, size, data, len)) {
        return frames->held.overflow ? fail(frames, "there is no memory for a frame") : false;
    }
    frames->has_ended = frames->held.data[0] == FRAME_LAST;
    *ret = (struct frame){frames->has_ended, frames->held.data + FRAME_HEAD_BYTES,
                          size - FRAME_HEAD_BYTES};
    frames->held.len = 0; /* its memory stays, and holds the frame until more is taken */
    return true;
}

bool frames_is_between(const struct frames *frames)
{
    return frames->held.len == 0;
}

void frames_clear(struct frames *frames)
{
    text_clear(&frames->held);
}

/* ---- base64 ---- */

static int sextet_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits, the last ones perhaps padding; returns the bytes, 0 if they are no such group. */
static size_t decode_group(const char *p, bool is_last, char out[3])
{
    size_t padding = is_last && p[3] == '=' ? 1 + (p[2] == '=') : 0;
    unsigned bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i < 4 - padding ? sextet_of(p[i]) : 0;
        if (value < 0) {
            return 0;
        }
        bits = bits << 6 | (unsigned)value;
    }
    if ((padding == 1 && (bits & 0xFF) != 0) || (padding == 2 && (bits & 0xFFFF) != 0)) {
        return 0; /* bits that stand for nothing */
    }
    out[0] = (char)(bits >> 16);
    out[1] = (char)(bits >> 8);
    out[2] = (char)bits;
    return 3 - padding;
}

static bool decode(struct text *out, const char *data, size_t len)
{
    char bytes[3];
    if (len % 4 != 0) {
        return false;
    }
    for (size_t at = 0; at < len; at += 4) {
        size_t count = decode_group(data + at, at + 4 == len, bytes);
        if (count == 0) {
            return false;
        }
        text_put(out, bytes, count);
    }
    return !out->overflow;
}

bool base64_put(struct text *out, struct json_value string)
{
    if (!json_is_string(string)) {
        return false;
    }
    struct json_value inside = json_inside(string);
    if (memchr(inside.data, '\\', inside.len) == NULL) {
        return decode(out, inside.data, inside.len);
    }
    /* An encoder may write a slash as "\/". */
    char piece[512];
    TEXT_CLEANUP struct text plain = {0};
    for (size_t len; (len = json_decode(&inside, piece, sizeof piece)) > 0;) {
        text_put(&plain, piece, len);
    }
    return !plain.overflow && decode(out, plain.data, plain.len);
}

/* ---- characters ---- */

/* Could these 1 to 3 bytes become a character with more to come? */
static bool is_unfinished(const char *data, size_t len)
{
    char trial[4] = {'\x80', '\x80', '\x80', '\x80'};
    memcpy(trial, data, len);
    if (len == 1) { /* the second byte has its own bounds after these two */
        trial[1] = data[0] == '\xE0' ? '\xA0' : data[0] == '\xF0' ? '\x90' : '\x80';
    }
    return text_character(trial, sizeof trial) > len;
}

static void give_held(struct joiner *joiner, size_t len, const char *character, struct text *out)
{
    text_puts(out, character);
    joiner->held_len -= len;
    memmove(joiner->held, joiner->held + len, joiner->held_len);
}

/* Gives what is decided of the held bytes. */
static void settle(struct joiner *joiner, struct text *out)
{
    while (joiner->held_len > 0) {
        size_t len = text_character(joiner->held, joiner->held_len);
        if (len > 0) {
            text_put(out, joiner->held, len);
            give_held(joiner, len, "", out);
        } else if (joiner->held_len < 4 && is_unfinished(joiner->held, joiner->held_len)) {
            return;
        } else {
            give_held(joiner, 1, REPLACEMENT, out);
        }
    }
}

void joiner_put(struct joiner *joiner, const char *data, size_t len, struct text *out)
{
    for (size_t at = 0; at < len;) {
        size_t from = at, step = 0;
        while (joiner->held_len == 0 && (step = text_character(data + at, len - at)) > 0) {
            at += step;
        }
        text_put(out, data + from, at - from);
        if (at < len) {
            joiner->held[joiner->held_len++] = data[at++];
            settle(joiner, out);
        }
    }
}

void joiner_end(struct joiner *joiner, struct text *out)
{
    while (joiner->held_len > 0) {
        give_held(joiner, 1, REPLACEMENT, out);
    }
}

/* ---- JSON ---- */

bool json_count(struct json_value value, int64_t *ret)
{
    if (json_is_string(value)) {
        value = json_inside(value);
    }
    int64_t number = 0;
    for (size_t i = 0; i < value.len; i++) {
        int digit = value.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number)) {
            return false;
        }
    }
    if (value.len > 0) {
        *ret = number;
    }
    return value.len > 0;
}
