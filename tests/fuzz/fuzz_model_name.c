/* Fuzzes the model's name as it passes: cut in two at a place that the first byte chooses, an answer becomes the same as whole;
 * and one that was JSON still is. Bit 0 of the second byte makes it a stream. */
#include "base/check.h"
#include "base/json.h"
#include "surface/model_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pass(struct str text, size_t cut, bool is_stream, struct buf *out)
{
    struct model_name name;
    model_name_init(&name, STR("\"fast\""), is_stream);
    model_name_feed(&name, (struct str){text.data, cut}, out);
    model_name_feed(&name, (struct str){text.data + cut, text.len - cut}, out);
}

static bool is_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text ignored_text;
    struct sg_error ignored = {0};
    bool ret = json_scan(text, arena, &ignored_text, &ignored) == 0;
    arena_free(arena);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_CLEANUP struct buf whole = {0}, cut = {0};
    if (size < 2) {
        return 0;
    }
    struct str text = {(const char *)data + 2, size - 2};
    bool is_stream = (data[1] & 1) != 0;
    pass(text, text.len, is_stream, &whole);
    pass(text, data[0] * text.len / 255, is_stream, &cut);
    CHECK(str_eq(buf_str(&whole), buf_str(&cut)));
    if (!is_stream && is_json(text)) {
        CHECK(is_json(buf_str(&whole)));
    }
    return 0;
}
