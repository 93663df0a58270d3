/* What comes from a box of the sandbox `local`: packets and bytes of the pipes, as in a run. The input is a row of pieces,
 * each behind two bytes of length; the length's upper two bits choose packet, standard output or standard error. What is
 * handed on must be valid text or JSON. A plugin's parser is its own, so its sources are taken in whole. */
#include "../../plugins/local/frames.c"
#include "../../plugins/local/output.c"
#include "../../plugins/local/text.c"

#include "base/arena.h"
#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHOWN_BYTES = 2000, RESULT_BYTES = 4000 };

static int check_given(void *context, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)context;
    (void)err;
    struct str text = {data, len};
    if (kind == SG_OUT_LOG_OUT || kind == SG_OUT_LOG_ERR) {
        CHECK(utf8_valid(text));
        return 0;
    }
    CHECK(kind == SG_OUT_RESULT || kind == SG_OUT_EXCEPTION);
    struct arena *arena = arena_new(0);
    struct json_text json;
    struct sg_error wrong = {0};
    CHECK(json_scan(text, arena, &json, &wrong) == 0 && json.root.type == JSON_OBJECT);
    arena_free(arena);
    return 0;
}

static void take_piece(struct output *output, unsigned kind, const char *data, size_t len)
{
    struct frame frame;
    if (kind >= 2) {
        output_bytes(output, kind == 2 ? SOURCE_PIPE_OUT : SOURCE_PIPE_ERR, data, len, 0, NULL);
    } else if (frame_read(data, len, &frame)) {
        CHECK(frame.body_len <= len);
        output_frame(output, &frame, 0, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct output output;
    struct sg_sink sink = {.event = check_given};
    output_init(&output, &sink, SHOWN_BYTES, RESULT_BYTES);
    for (size_t at = 0; at + 2 <= size;) {
        unsigned kind = data[at] >> 6;
        size_t len = (size_t)(data[at] & 0x3F) << 8 | data[at + 1];
        at += 2;
        len = len < size - at ? len : size - at;
        take_piece(&output, kind, (const char *)data + at, len);
        at += len;
    }
    CHECK(output_end(&output, NULL) == 0);
    output_clear(&output);
    return 0;
}
