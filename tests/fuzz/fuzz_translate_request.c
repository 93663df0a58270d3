/* Any bytes as a client's request that goes to a server of another API. The first byte chooses the two APIs and whether
 * fields are let go. What goes up is good JSON, the same each time; what is refused is refused with a message. */
#include "translate_bench.h"

#include "base/json.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const drops[] = {"top_k",       "seed",     "messages", "input",   "tools",
                                    "tool_choice", "thinking", "text",     "include", NULL};

static bool is_object(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    bool good = json_scan(text, arena, &scanned, &err) == SG_OK && scanned.root.type == JSON_OBJECT;
    arena_free(arena);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data + 1, size == 0 ? 0 : size - 1};
    if (size == 0 || !is_object(body)) { /* surfaces ask for nothing else */
        return 0;
    }
    const struct translate_pair pair = translate_pairs[data[0] & 3];
    const char *const *drop = (data[0] & 4) ? drops : NULL;
    BUF_CLEANUP struct buf first = {0}, again = {0};
    struct sg_error err = {0};
    if (translate_request(pair, drop, body, &first, &err) != SG_OK) {
        CHECK(err.message[0] != '\0');
        return 0;
    }
    CHECK(is_object(buf_str(&first)));
    CHECK(translate_request(pair, drop, body, &again, &err) == SG_OK);
    CHECK(str_eq(buf_str(&first), buf_str(&again)));
    return 0;
}
