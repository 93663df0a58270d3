/* Any bytes as an upstream's answer on responses. The first byte chooses the form, the client's wish and the size of pieces.
 * Whatever comes, what goes to the client and up again is good JSON, an event an `event:` and a `data:` line, numbered
 * without gaps; items open under indexes from 0 on, each is closed, and one terminal event ends the stream. */
#include "base/check.h"
#include "surface/responses_stored.h"
#include "surface/surface.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct surface_offer offers[] = {
    {.hosted = {"code_interpreter", 16},
     .name = {"code_interpreter", 16},
     .description = {"Runs Python.", 12}},
    {.name = {"lookup", 6}, .description = {"Looks.", 6}},
    {.hosted = {"web_search", 10}, .name = {"web_search", 10}, .description = {"Searches.", 9}}};

/* What every search finds; a turn that is read a second time may cite it. */
static const struct surface_output hits[] = {
    {SG_OUT_HIT, {"{\"url\":\"https://a.org/x\",\"title\":\"A\"}", 37}},
    {SG_OUT_HIT, {"{\"url\":\"https://a.org/x\\\"\",\"title\":\"\"}", 38}}};

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

/* What was kept of the answer is read back as a record. */
static bool store_keep(void *context, const struct str *ids, size_t count, struct str data)
{
    struct arena *arena = arena_new(0);
    struct responses_record record;
    BUF_CLEANUP struct buf out = {0};
    CHECK(count > 0);
    CHECK(str_starts(ids[0], STR("resp_sg")));
    CHECK(responses_record_read(data, arena, &record));
    responses_stored_put(&record, NULL, &out);
    responses_stored_replay(&record, NULL, -1, (struct buf *)context);
    arena_free(arena);
    return true;
}

static bool store_find(void *context, struct str id, struct str *ret)
{
    (void)context, (void)id, (void)ret;
    return false;
}

static void check_json(struct str text, struct arena *arena, struct json_text *ret)
{
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, ret, &err) == SG_OK);
}

static int64_t number_of(const struct json_text *event, const char *name)
{
    const struct json_member *member = json_find(event->members, event->count, name);
    int64_t n = -1;
    return member != NULL && json_int_of(member->value, &n) ? n : -1;
}

struct seen {
    int64_t events, opened, closed, ends;
};

static void check_event(struct str data, struct seen *seen)
{
    struct arena *arena = arena_new(0);
    struct json_text event;
    check_json(data, arena, &event);
    struct str type = json_find_text(event.members, event.count, "type", arena);
    CHECK(number_of(&event, "sequence_number") == seen->events);
    CHECK(seen->ends == 0);
    seen->events++;
    if (str_is(type, "response.output_item.added")) {
        CHECK(number_of(&event, "output_index") == seen->opened);
        seen->opened++;
    } else if (str_is(type, "response.output_item.done")) {
        CHECK(number_of(&event, "output_index") < seen->opened);
        seen->closed++;
    }
    seen->ends += str_is(type, "response.completed") || str_is(type, "response.incomplete") ||
                  str_is(type, "response.failed");
    arena_free(arena);
}

static void check_stream(struct str out)
{
    struct seen seen = {0};
    while (out.len > 0) {
        CHECK(str_starts(out, STR("event: ")));
        const char *line = memchr(out.data, '\n', out.len);
        const char *end = memmem(out.data, out.len, "\n\n", 2);
        CHECK(line != NULL);
        CHECK(end > line);
        CHECK(memchr(line + 1, '\n', (size_t)(end - line) - 1) == NULL);
        check_event((struct str){line + 7, (size_t)(end - line) - 7}, &seen);
        size_t used = (size_t)(end - out.data) + 2;
        out = (struct str){out.data + used, out.len - used};
    }
    CHECK(seen.ends == 1);
    CHECK(seen.opened == seen.closed);
}

static int turn(struct surface_exchange *exchange, bool is_stream, struct str bytes, size_t piece,
                struct buf *out, struct surface_turn *ret)
{
    struct sg_error err = {0};
    surface_responses.turn_begin(exchange, is_stream);
    while (bytes.len > 0) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        if (surface_responses.turn_feed(exchange, (struct str){bytes.data, len}, out, &err) !=
            SG_OK) {
            CHECK(err.message[0] != '\0');
            return err.code;
        }
        bytes = (struct str){bytes.data + len, bytes.len - len};
    }
    return surface_responses.turn_end(exchange, out, ret, &err);
}

static void calls_end(struct surface_exchange *exchange, const struct surface_turn *result,
                      struct buf *out)
{
    for (size_t k = 0; k < result->calls_count; k++) {
        struct surface_result ran = {.model_text = STR("42"), .container_id = STR("cntr_1")};
        if (offers[result->calls[k].offer].hosted.len == 10) {
            ran.outputs = hits;
            ran.outputs_count = COUNT_OF(hits);
        }
        surface_responses.call_begin(exchange, k, STR("cntr_1"), out);
        surface_responses.call_end(exchange, k, &ran, out);
    }
}

static void drive(struct surface_exchange *exchange, uint8_t how, struct str bytes,
                  const struct buf *replayed)
{
    BUF_CLEANUP struct buf out = {0}, body = {0};
    struct sg_error err = {.code = SG_E_UNAVAILABLE, .message = "Broken."};
    struct surface_turn_options options = {.stream = how & 1};
    struct surface_turn result;
    struct arena *arena = arena_new(0);
    struct json_text text;
    bool is_stream = surface_responses.wants_stream(exchange);
    for (int i = 0; i < 2; i++) {
        if (turn(exchange, how & 1, bytes, (how & 4) ? 1 : 4096, &out, &result) != SG_OK) {
            surface_responses.fail(exchange, &err, &out);
            if (is_stream) {
                check_stream(buf_str(&out));
            }
            arena_free(arena);
            return;
        }
        if (!result.length) {
            calls_end(exchange, &result, &out);
        }
        buf_reset(&body);
        int code = surface_responses.turn_request(exchange, &options, &body, &err);
        CHECK(code == SG_OK || code == SG_E_LIMIT);
        if (code != SG_OK) {
            break;
        }
        check_json(buf_str(&body), arena, &text);
    }
    CHECK(surface_responses.finish(exchange, STR("The end."), &out, &err) == SG_OK);
    if (is_stream) {
        check_stream(buf_str(&out));
    } else {
        check_json(buf_str(&out), arena, &text);
    }
    if (replayed->len > 0) { /* else too large to be kept */
        check_stream(buf_str(replayed));
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bodies[] = {
        "{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\"}]}",
        "{\"stream\":true,\"input\":[{}],\"include\":[\"code_interpreter_call.outputs\"],\"tools\":"
        "[{\"type\":\"code_interpreter\"},{\"type\":\"web_search\"}]}",
        "{\"stream\":true,\"include\":[\"web_search_call.action.sources\"],\"text\":{\"format\":{"
        "\"type\":\"json_object\"}},\"parallel_tool_calls\":"
        "false,\"tools\":[{\"type\":\"code_interpreter\"},{\"type\":\"web_search\"}]}",
        "{\"stream\":true,\"max_output_tokens\":100,\"max_tool_calls\":1,\"tools\":[{\"type\":"
        "\"code_interpreter\"}]}"};
    if (size == 0) {
        return 0;
    }
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf replayed = {0};
    struct json_text body;
    struct sg_error err = {0};
    const struct surface_container_source container = {container_id, container_expires, NULL};
    const struct surface_store store = {store_keep, store_find, &replayed};
    check_json(str_of(bodies[(data[0] >> 1 & 1) | (data[0] >> 2 & 2)]), arena, &body);
    struct surface_input input = {.body = &body,
                                  .offers = offers,
                                  .offers_count = COUNT_OF(offers),
                                  .store = &store,
                                  .container = &container,
                                  .answer_id = "0123"};
    struct surface_exchange *exchange = NULL;
    CHECK(surface_responses.open(&input, arena, &exchange, &err) == SG_OK);
    drive(exchange, data[0], (struct str){(const char *)data + 1, size - 1}, &replayed);
    surface_responses.free(exchange);
    arena_free(arena);
    return 0;
}
