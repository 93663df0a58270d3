/* Any bytes as a request on messages, its history above all. Whatever comes, what goes up is good JSON. */
#include "base/check.h"
#include "surface/surface.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct surface_offer offers[] = {
    {.hosted = {"code_interpreter", 16}, .name = {"code_interpreter", 16}},
    {.hosted = {"bash_code_execution", 19}, .name = {"bash", 4}},
    {.hosted = {"text_editor_code_execution", 26}, .name = {"editor", 6}},
    {.hosted = {"web_search", 10}, .name = {"web_search", 10}},
    {.name = {"hidden", 6}}};

static void scan(struct str text, struct arena *arena, struct json_text *ret)
{
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, ret, &err) == SG_OK);
}

static void drive(struct surface_exchange *exchange, struct arena *arena)
{
    BUF_CLEANUP struct buf body = {0}, out = {0};
    struct sg_error err = {0};
    struct surface_turn pending;
    struct json_text text;
    surface_messages.pending(exchange, &pending);
    for (size_t i = 0; i < pending.calls_count; i++) {
        struct surface_result ran = {.model_text = STR("42")};
        surface_messages.call_begin(exchange, i, (struct str){0}, &out);
        surface_messages.call_end(exchange, i, &ran, &out);
    }
    struct surface_turn_options options[] = {
        {.stream = true}, {.last = true}, {.last = true, .remove_tools = true}};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        buf_reset(&body);
        CHECK(surface_messages.turn_request(exchange, &options[i], &body, &err) == SG_OK);
        scan(buf_str(&body), arena, &text);
    }
    CHECK(surface_messages.finish(exchange, STR("x"), &out, &err) == SG_OK);
    if (!surface_messages.wants_stream(exchange)) {
        scan(buf_str(&out), arena, &text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    struct surface_exchange *exchange = NULL;
    bool looks;
    if (json_scan((struct str){(const char *)data, size}, arena, &body, &err) == SG_OK &&
        body.root.type == JSON_OBJECT) {
        struct surface_input input = {
            .body = &body, .offers = offers, .offers_count = COUNT_OF(offers), .answer_id = "0123"};
        (void)surface_messages.looks_for(&input, arena, &looks, &err); /* or a refusal */
        if (surface_messages.open(&input, arena, &exchange, &err) == SG_OK) {
            drive(exchange, arena);
        } else {
            CHECK(err.message[0] != '\0');
        }
    }
    surface_messages.free(exchange);
    arena_free(arena);
    return 0;
}
