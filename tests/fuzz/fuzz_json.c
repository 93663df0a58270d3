/* Any bytes through json_scan(); what it accepts is walked whole, decoded, cut and scanned again. */
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct json_value value, struct arena *arena)
{
    struct json_value inner;
    struct str key;
    int64_t number;
    if (value.type == JSON_STRING) {
        CHECK(utf8_valid(json_text_of(value, arena)));
    } else if (value.type == JSON_NUMBER) {
        (void)json_int_of(value, &number); /* only that it ends well */
    } else if (value.type == JSON_ARRAY || value.type == JSON_OBJECT) {
        struct json_walk at = json_walk_of(value);
        while (value.type == JSON_ARRAY ? json_walk_element(&at, &inner)
                                        : json_walk_member(&at, &key, &inner)) {
            CHECK(inner.raw.len > 0);
            walk(inner, arena);
        }
    }
}

/* Every second member is cut: the rest must scan and be as many as were left. */
static void cut(const struct json_text *text, struct arena *arena)
{
    static bool gone[LIMIT_JSON_MEMBERS];
    for (size_t i = 0; i < text->count; i++) {
        gone[i] = i % 2 == 0;
    }
    struct splice splice = {.arena = arena};
    splice_cut_members(&splice, text->raw, text->members, text->count, gone);
    BUF_CLEANUP struct buf out = {0};
    CHECK(splice_apply(&splice, text->raw, &out));
    struct json_text again;
    struct sg_error err = {0};
    CHECK(json_scan(buf_str(&out), arena, &again, &err) == SG_OK);
    CHECK(again.count == text->count / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    if (json_scan((struct str){(const char *)data, size}, arena, &text, &err) == SG_OK) {
        walk(text.root, arena);
        if (text.root.type == JSON_OBJECT) {
            cut(&text, arena);
        }
    } else {
        CHECK(err.message[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
