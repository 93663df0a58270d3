/* Any bytes as the answer of a server of another API than the client's. The first byte chooses the two APIs, the form and
 * the size of pieces. Whatever comes, what is said of it is good JSON, an event a line, and the client's surface understands
 * it as an answer of its own API. */
#include "translate_bench.h"

#include "surface/surface.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, &scanned, &err) == SG_OK);
    CHECK(scanned.root.type == JSON_OBJECT);
    arena_free(arena);
}

/* Each event: a name where the API has them, one line of data, an empty line. */
static void check_stream(struct str out, bool is_named)
{
    while (out.len > 0) {
        const char *end = memmem(out.data, out.len, "\n\n", 2);
        CHECK(end != NULL);
        struct str event = {out.data, (size_t)(end - out.data)};
        size_t used = event.len + 2;
        if (is_named) {
            const char *line = memchr(event.data, '\n', event.len);
            CHECK(str_starts(event, STR("event: ")) && line != NULL);
            event = (struct str){line + 1, event.len - (size_t)(line + 1 - event.data)};
        }
        CHECK(str_starts(event, STR("data: ")) && memchr(event.data, '\n', event.len) == NULL);
        event = (struct str){event.data + 6, event.len - 6};
        if (!str_is(event, "[DONE]")) {
            check_json(event);
        }
        out = (struct str){out.data + used, out.len - used};
    }
}

static const char *container_id(void *context)
{
    (void)context;
    return "cntr_1";
}

static int64_t container_expires(void *context)
{
    (void)context;
    return 0;
}

static void check_understood(const struct surface *surface, bool is_stream, struct str answer)
{
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    CHECK(json_scan(STR("{\"max_tokens\":9,\"messages\":[],\"input\":\"x\"}"), arena, &body,
                    &err) == SG_OK);
    struct surface_container_source container = {container_id, container_expires, NULL};
    struct surface_input input = {.body = &body, .container = &container, .answer_id = "0123"};
    struct surface_exchange *exchange = NULL;
    struct surface_turn turn;
    BUF_CLEANUP struct buf out = {0};
    CHECK(surface->open(&input, arena, &exchange, &err) == SG_OK);
    surface->turn_begin(exchange, is_stream);
    CHECK(surface->turn_feed(exchange, answer, &out, &err) == SG_OK);
    CHECK(surface->turn_end(exchange, &out, &turn, &err) == SG_OK);
    surface->free(exchange);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {0, 1, 2, 7};
    if (size == 0) {
        return 0;
    }
    const struct translate_pair pair = translate_pairs[data[0] & 3];
    bool is_stream = (data[0] & 4) != 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    int code = translate_answer(pair, is_stream, bytes, pieces[data[0] >> 3 & 3], &out, &err);
    CHECK(code == SG_OK || err.message[0] != '\0');
    if (is_stream) {
        check_stream(buf_str(&out), strcmp(pair.from, "chat") != 0);
    } else if (code == SG_OK) {
        check_json(buf_str(&out));
    }
    if (code == SG_OK) {
        check_understood(surface_named(pair.from), is_stream, buf_str(&out));
    }
    return 0;
}
