/* The answer of E2B's interpreter, as the plugin e2b reads it. The first byte says how the rest is cut into pieces. What is
 * emitted must be valid text, or JSON objects without a name twice, and must not depend on the cuts. */
#include "event.h"
#include "json_text.h"

#include "base/check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen; /* a hash of all that was emitted */

static void hash(const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        seen = (seen ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    }
}

static void check_text(const char *data, size_t len)
{
    for (size_t at = 0, character; at < len; at += character) {
        character = text_character(data + at, len - at);
        CHECK(character > 0);
    }
}

static void check_object(const char *data, size_t len)
{
    struct json_value keys[64], value;
    size_t count = 0;
    struct json_reader reader = json_reader_of(data, len);
    while (json_next(&reader, &keys[count], &value)) {
        for (size_t i = 0; i < count; i++) {
            CHECK(keys[i].len != keys[count].len ||
                  memcmp(keys[i].data, keys[count].data, keys[i].len) != 0);
        }
        count++;
        CHECK(count < 64);
    }
    CHECK(reader.problem == NULL);
}

static int check_emitted(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
                         struct sg_error *err)
{
    (void)call;
    (void)err;
    hash(&kind, sizeof kind);
    hash(data, len);
    CHECK(len > 0);
    check_text(data, len);
    if (kind != SG_OUT_LOG_OUT && kind != SG_OUT_LOG_ERR) {
        CHECK(kind == SG_OUT_RESULT || kind == SG_OUT_EXCEPTION || kind == SG_OUT_STATUS);
        check_object(data, len);
    }
    return 0;
}

static int fail_with(struct sg_error *err, enum sg_code code, const char *format, ...)
{
    (void)err;
    (void)format;
    return (int)code;
}

static int sleep_not(struct sg_call *call, int64_t ms, struct sg_error *err)
{
    (void)call;
    (void)err;
    return ms == 0 ? 0 : SG_E_INTERNAL; /* others have a turn, and no time passes */
}

static const struct sg_host host = {.emit = check_emitted, .fail = fail_with, .sleep = sleep_not};
const struct sg_host *sg = &host;

static uint64_t read_cut(const char *data, size_t size, size_t piece)
{
    struct stream stream = {0};
    seen = 0xCBF29CE484222325u;
    for (size_t at = 0; at < size; at += piece) {
        (void)stream_take(&stream, data + at, size - at < piece ? size - at : piece, NULL);
    }
    (void)stream_end(&stream, NULL);
    CHECK(stream.line_len == 0);
    hash(&stream.has_begun, sizeof stream.has_begun);
    hash(&stream.has_ended, sizeof stream.has_ended);
    hash(&stream.unreadable_count, sizeof stream.unreadable_count);
    stream_clear(&stream);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1) {
        const char *text = (const char *)data + 1;
        CHECK(read_cut(text, size - 1, size) == read_cut(text, size - 1, data[0] % 64 + 1u));
    }
    return 0;
}
