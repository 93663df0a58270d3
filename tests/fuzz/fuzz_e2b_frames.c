/* What envd answers in the Connect protocol, as the plugin e2b reads it. The first byte says how the rest is cut into pieces.
 * What is read must not depend on the cuts; output must be valid text and base64 the only way to write its bytes. The rest
 * is read as JSON of an error and of a list, too. */
#include "frames.h"

#include "base/check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    uint64_t seen; /* a hash of all that was read */
    struct joiner joiners[2];
    struct text bytes, text;
};

static void hash(struct reading *r, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        r->seen = (r->seen ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    }
}

static void hash_text(struct reading *r)
{
    for (size_t at = 0, character; at < r->text.len; at += character) {
        character = text_character(r->text.data + at, r->text.len - at);
        CHECK(character > 0);
    }
    hash(r, r->text.data, r->text.len);
    r->text.len = 0;
}

/* Encoded again it is the same. */
static void check_base64(const struct text *bytes, struct json_value string)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes->data;
    if (memchr(string.data, '\\', string.len) != NULL) {
        return; /* some are written as escapes */
    }
    CHECK(string.len - 2 == (bytes->len + 2) / 3 * 4);
    for (size_t i = 0; i * 6 < bytes->len * 8; i++) {
        size_t at = i * 6 / 8;
        unsigned pair = (unsigned)p[at] << 8 | (at + 1 < bytes->len ? p[at + 1] : 0);
        CHECK(string.data[1 + i] == digits[pair >> (10 - i * 6 % 8) & 63]);
    }
}

static void take_event(struct reading *r, const struct process_event *event)
{
    hash(r, &event->kind, sizeof event->kind);
    hash(r, &event->pid, sizeof event->pid);
    hash(r, &event->exit_code, sizeof event->exit_code);
    hash(r, &event->is_killed, sizeof event->is_killed);
    hash(r, &event->error.code, sizeof event->error.code);
    CHECK(event->pid >= 0 && event->exit_code >= 0 && event->exit_code <= 255);
    CHECK(memchr(event->error.message, '\0', sizeof event->error.message) != NULL);
    if (event->kind == PROCESS_STDOUT || event->kind == PROCESS_STDERR) {
        r->bytes.len = 0;
        if (base64_put(&r->bytes, event->content)) {
            check_base64(&r->bytes, event->content);
            joiner_put(&r->joiners[event->kind == PROCESS_STDERR], r->bytes.data, r->bytes.len,
                       &r->text);
            hash_text(r);
        }
    }
}

static uint64_t read_cut(const char *data, size_t size, size_t piece)
{
    struct reading r = {.seen = 0xCBF29CE484222325u};
    struct frames frames = {0};
    struct frame frame;
    struct process_event event;
    for (size_t at = 0; at < size; at += piece) {
        const char *from = data + at;
        size_t len = size - at < piece ? size - at : piece;
        while (frames_next(&frames, &from, &len, &frame)) {
            CHECK(frame.json_len <= FRAME_BYTES_MAX);
            bool is_event = process_event_read(&frame, &event);
            hash(&r, &is_event, sizeof is_event);
            if (is_event) {
                take_event(&r, &event);
            }
        }
        CHECK(len == 0 || frames.problem != NULL);
    }
    for (int stream = 0; stream < 2; stream++) {
        joiner_end(&r.joiners[stream], &r.text);
        hash_text(&r);
    }
    bool is_whole = frames_is_between(&frames), has_problem = frames.problem != NULL;
    hash(&r, &is_whole, sizeof is_whole);
    hash(&r, &has_problem, sizeof has_problem);
    hash(&r, &frames.has_ended, sizeof frames.has_ended);
    frames_clear(&frames);
    text_clear(&r.bytes);
    text_clear(&r.text);
    return r.seen;
}

/* Elements are values of their own: where one is an object, it is a whole one. */
static void read_json(const char *data, size_t size)
{
    static const char *const names[] = {"entries"};
    struct json_value list, element, none;
    struct connect_error error;
    int64_t count = 0;
    (void)connect_error_read(data, size, &error);
    if (!json_find(data, size, names, &list, 1) || list.data == NULL || list.data[0] != '[') {
        return;
    }
    struct json_reader reader = json_reader_of(list.data, list.len);
    while (json_next_element(&reader, &element)) {
        CHECK(element.data > list.data && element.data + element.len < list.data + list.len);
        CHECK(element.data[0] != '{' || json_find(element.data, element.len, names, &none, 1));
        CHECK(!json_count(element, &count) || count >= 0);
    }
    CHECK(reader.problem == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1) {
        const char *text = (const char *)data + 1;
        CHECK(read_cut(text, size - 1, size) == read_cut(text, size - 1, data[0] % 64 + 1u));
        read_json(text, size - 1);
    }
    return 0;
}
