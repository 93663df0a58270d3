/* Any bytes as an upstream's answer on chat. The first byte chooses the form, the client's wish and the size of pieces.
 * Whatever comes, what goes to the client and up again is good JSON, an event a line. */
#include "base/check.h"
#include "surface/surface.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct surface_offer offers[] = {{.hosted = {"code_interpreter", 16},
                                               .name = {"code_interpreter", 16},
                                               .description = {"Runs Python.", 12},
                                               .show_runs = true}};

static void check_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, &scanned, &err) == SG_OK);
    arena_free(arena);
}

/* A stream is events of one line of good JSON; comments are not written by the surface. */
static void check_stream(struct str out)
{
    while (out.len > 0) {
        CHECK(str_starts(out, STR("data: ")));
        const char *end = memmem(out.data, out.len, "\n\n", 2);
        CHECK(end != NULL);
        struct str event = {out.data + 6, (size_t)(end - out.data) - 6};
        if (!str_is(event, "[DONE]")) {
            check_json(event);
        }
        size_t used = (size_t)(end - out.data) + 2;
        out = (struct str){out.data + used, out.len - used};
    }
}

static int turn(struct surface_exchange *exchange, bool is_stream, struct str bytes, size_t piece,
                struct buf *out, struct surface_turn *ret)
{
    struct sg_error err = {0};
    surface_chat.turn_begin(exchange, is_stream);
    while (bytes.len > 0) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        if (surface_chat.turn_feed(exchange, (struct str){bytes.data, len}, out, &err) != SG_OK) {
            CHECK(err.message[0] != '\0');
            return err.code;
        }
        bytes = (struct str){bytes.data + len, bytes.len - len};
    }
    return surface_chat.turn_end(exchange, out, ret, &err);
}

static void drive(struct surface_exchange *exchange, uint8_t how, struct str bytes)
{
    BUF_CLEANUP struct buf out = {0}, body = {0};
    struct sg_error err = {0};
    struct surface_turn_options options = {.stream = how & 1};
    struct surface_turn result;
    for (int i = 0; i < 2; i++) {
        if (turn(exchange, how & 1, bytes, (how & 4) ? 1 : 4096, &out, &result) != SG_OK) {
            surface_chat.fail(exchange, &err, &out);
            check_stream(buf_str(&out));
            return;
        }
        for (size_t k = 0; k < result.calls_count; k++) {
            struct surface_output hit = {
                SG_OUT_HIT, STR("{\"title\":\"\\\"A\\\"\",\"url\":\"https://a.test/\"}")};
            struct surface_result ran = {.model_text = STR("42"),
                                         .container_id = STR("cntr_1"),
                                         .outputs = &hit,
                                         .outputs_count = 1};
            surface_chat.call_end(exchange, k, &ran, &out);
        }
        buf_reset(&body);
        CHECK(surface_chat.turn_request(exchange, &options, &body, &err) == SG_OK);
        check_json(buf_str(&body));
    }
    CHECK(surface_chat.finish(exchange, STR("The end."), &out, &err) == SG_OK);
    if (surface_chat.wants_stream(exchange)) {
        check_stream(buf_str(&out));
    } else {
        check_json(buf_str(&out));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bodies[] = {
        "{\"messages\":[],\"tools\":[{\"type\":\"code_interpreter\"}]}",
        "{\"stream\":true,\"stream_options\":{\"include_usage\":true},\"messages\":[{}],\"tools\":["
        "{"
        "\"type\":\"code_interpreter\"}]}"};
    if (size == 0) {
        return 0;
    }
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    CHECK(json_scan(str_of(bodies[data[0] >> 1 & 1]), arena, &body, &err) == SG_OK);
    struct surface_input input = {
        .body = &body, .offers = offers, .offers_count = 1, .answer_id = "0123"};
    struct surface_exchange *exchange = NULL;
    CHECK(surface_chat.open(&input, arena, &exchange, &err) == SG_OK);
    drive(exchange, data[0], (struct str){(const char *)data + 1, size - 1});
    surface_chat.free(exchange);
    arena_free(arena);
    return 0;
}
