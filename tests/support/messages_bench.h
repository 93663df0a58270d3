/* Drives the messages surface as the gateway does; what a streaming client gets goes through the strict checker. Streams
 * are fed in pieces of `piece` bytes (0: whole). */
#ifndef TESTS_SUPPORT_MESSAGES_BENCH_H
#define TESTS_SUPPORT_MESSAGES_BENCH_H

#include "cunit_main.h"
#include "messages_checker.h"
#include "surface/surface.h"

#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define START_OF(id, usage)                                                                       \
    EVENT("message_start", ",\"message\":{\"id\":\"" id "\",\"type\":\"message\",\"role\":"       \
                           "\"assistant\",\"model\":\"m-1\",\"content\":[],\"stop_reason\":null," \
                           "\"stop_sequence\":null,\"usage\":" usage "}")
#define START START_OF("msg_1", "{\"input_tokens\":10,\"output_tokens\":1}")
#define BLOCK(index, block) \
    EVENT("content_block_start", ",\"index\":" index ",\"content_block\":" block)
#define DELTA(index, delta) EVENT("content_block_delta", ",\"index\":" index ",\"delta\":" delta)
#define STOP(index) EVENT("content_block_stop", ",\"index\":" index)
#define TEXT_DELTA(index, text) DELTA(index, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define TEXT(index, text) \
    BLOCK(index, "{\"type\":\"text\",\"text\":\"\"}") TEXT_DELTA(index, text) STOP(index)
#define INPUT(index, json) \
    DELTA(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}")
#define CALL_START(index, id, name) \
    BLOCK(index, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}")
#define CALL(index, id, name, json) CALL_START(index, id, name) INPUT(index, json) STOP(index)
#define END(reason)                                                                              \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null}," \
                           "\"usage\":{\"output_tokens\":5}")                                    \
    EVENT("message_stop", "")
#define RUN_42 \
    CALL("0", "toolu_1", "code_interpreter", "{\\\"code\\\":\\\"40+2\\\"}") END("tool_use")

#define PYTHON_TOOL "{\"type\":\"code_execution_20250522\",\"name\":\"code_execution\"}"
#define SHELL_TOOL "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define SEARCH_TOOL "{\"type\":\"web_search_20250305\",\"name\":\"web_search\",\"max_uses\":3}"
#define OWN_TOOL "{\"name\":\"get_stock\",\"input_schema\":{\"type\":\"object\"}}"
#define SCHEMA(property)                                                                          \
    "{\"type\":\"object\",\"properties\":{\"" property "\":{\"type\":\"string\"}},\"required\":[" \
    "\"" property "\"]}"
#define DEFINITION(name, text, property) \
    "{\"name\":\"" name "\",\"description\":\"" text "\",\"input_schema\":" SCHEMA(property) "}"
#define PYTHON_DEFINITION DEFINITION("code_interpreter", "Runs Python.", "code")
#define SHELL_DEFINITION DEFINITION("bash_code_execution", "Runs a command.", "command")
#define EDITOR_DEFINITION DEFINITION("text_editor_code_execution", "Edits files.", "command")
#define SEARCH_DEFINITION DEFINITION("web_search", "Searches the web.", "query")
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define HEAD "{\"model\":\"m\",\"max_tokens\":1000,"

struct bench {
    size_t piece;
    struct arena *arena;
    struct json_text body;
    struct surface_offer offers[4];
    size_t offers_count;
    bool usage_last;
    int64_t expires; /* of the container */
    struct surface_container_source container;
    struct surface_exchange *exchange;
    struct surface_turn turn;
    struct buf request, out;
    struct sg_error err;
};

static inline struct surface_offer bench_offer(const char *kind, const char *name, const char *text,
                                               const char *schema)
{
    return (struct surface_offer){.hosted = str_of(kind),
                                  .name = str_of(name),
                                  .description = str_of(text),
                                  .parameters = str_of(schema)};
}

static inline struct bench bench_new(size_t piece)
{
    struct bench b = {.piece = piece, .arena = arena_new(0), .offers_count = 4};
    b.offers[0] =
        bench_offer("code_interpreter", "code_interpreter", "Runs Python.", SCHEMA("code"));
    b.offers[1] = bench_offer("bash_code_execution", "bash_code_execution", "Runs a command.",
                              SCHEMA("command"));
    b.offers[2] = bench_offer("text_editor_code_execution", "text_editor_code_execution",
                              "Edits files.", SCHEMA("command"));
    b.offers[3] = bench_offer("web_search", "web_search", "Searches the web.", SCHEMA("query"));
    return b;
}

static inline void bench_clear(struct bench *b)
{
    surface_messages.free(b->exchange);
    buf_clear(&b->request);
    buf_clear(&b->out);
    arena_free(b->arena);
}
#define BENCH_CLEANUP __attribute__((cleanup(bench_clear)))

static inline const char *bench_container_id(void *context)
{
    (void)context;
    return "cntr_42";
}

static inline int64_t bench_container_expires(void *context)
{
    return ((const struct bench *)context)->expires;
}

static inline void bench_scan(struct bench *b, const char *body)
{
    char *copy = arena_copy(b->arena, str_of(body));
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(copy), b->arena, &b->body, &b->err), SG_OK);
}

static inline struct surface_input bench_input(struct bench *b)
{
    b->container =
        (struct surface_container_source){bench_container_id, bench_container_expires, b};
    return (struct surface_input){.body = &b->body,
                                  .offers = b->offers,
                                  .offers_count = b->offers_count,
                                  .container = &b->container,
                                  .usage_last = b->usage_last,
                                  .answer_id = "0123456789abcdef0123456789abcdef"};
}

static inline bool bench_looks_for(struct bench *b, const char *body)
{
    bool ret = false;
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    CU_ASSERT_EQUAL(surface_messages.looks_for(&input, b->arena, &ret, &b->err), SG_OK);
    return ret;
}

static inline int bench_try_open(struct bench *b, const char *body)
{
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    return surface_messages.open(&input, b->arena, &b->exchange, &b->err);
}

static inline void bench_open(struct bench *b, const char *body)
{
    CU_ASSERT_EQUAL_FATAL(bench_try_open(b, body), SG_OK);
}

/* The body of the next turn; checked to be good JSON. */
static inline const char *bench_request_with(struct bench *b, struct surface_turn_options options)
{
    buf_reset(&b->request);
    CU_ASSERT_EQUAL_FATAL(
        surface_messages.turn_request(b->exchange, &options, &b->request, &b->err), SG_OK);
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(json_scan(buf_str(&b->request), scratch, &text, &err), SG_OK);
    arena_free(scratch);
    return b->request.data;
}

static inline const char *bench_request(struct bench *b)
{
    return bench_request_with(
        b, (struct surface_turn_options){.stream = surface_messages.wants_stream(b->exchange)});
}

static inline int bench_try_turn(struct bench *b, bool is_stream, const char *text)
{
    surface_messages.turn_begin(b->exchange, is_stream);
    struct str rest = str_of(text);
    while (rest.len > 0) {
        size_t len = b->piece == 0 || b->piece > rest.len ? rest.len : b->piece;
        char *exact = malloc(len); /* so that reading past a piece is seen */
        memcpy(exact, rest.data, len);
        int code =
            surface_messages.turn_feed(b->exchange, (struct str){exact, len}, &b->out, &b->err);
        free(exact);
        if (code != SG_OK) {
            return code;
        }
        rest = (struct str){rest.data + len, rest.len - len};
    }
    return surface_messages.turn_end(b->exchange, &b->out, &b->turn, &b->err);
}

static inline void bench_turn(struct bench *b, const char *sse)
{
    int code = bench_try_turn(b, true, sse);
    CU_ASSERT_EQUAL(code, SG_OK);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
}

static inline void bench_plain_turn(struct bench *b, const char *json)
{
    int code = bench_try_turn(b, false, json);
    CU_ASSERT_EQUAL(code, SG_OK);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
}

static inline void bench_result_of(struct bench *b, size_t call, struct surface_result result)
{
    surface_messages.call_begin(b->exchange, call, result.container_id, &b->out);
    surface_messages.call_end(b->exchange, call, &result, &b->out);
}

static inline void bench_result(struct bench *b, size_t call, const char *text)
{
    struct surface_output output = {SG_OUT_LOG_OUT, str_of(text)};
    bench_result_of(b, call,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = str_of(text),
                                            .container_id = STR("cntr_42"),
                                            .outputs = &output,
                                            .outputs_count = 1});
}

/* 32 random digits behind a mark of ours as zeros, so that two runs compare. */
static inline void bench_plain_ids(char *text)
{
    for (char *p = text; p != NULL && (p = strstr(p, "_sg")) != NULL;) {
        p += 3;
        for (size_t i = 0; i < 32 && p[i] != '\0' && p[i] != '"'; i++) {
            p[i] = '0';
        }
    }
}

/* What the client has is right as far as it goes. */
static inline void bench_check(struct bench *b, bool may_end_early)
{
    CHECKER_CLEANUP struct checker checker = {.trusts_upstream = true};
    const char *problem = surface_messages.wants_stream(b->exchange)
                              ? check_stream(&checker, buf_str(&b->out), may_end_early)
                              : check_message(&checker, buf_str(&b->out));
    CU_ASSERT_PTR_NULL(problem);
    if (problem != NULL) {
        fprintf(stderr, "%s in:\n%s\n", problem, b->out.data);
    }
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    CU_ASSERT_EQUAL(surface_messages.finish(b->exchange, str_of(closing), &b->out, &b->err), SG_OK);
    bench_check(b, false);
    bench_plain_ids(b->out.data);
    return b->out.data;
}

static inline void expect_text(const char *got, const char *wanted)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_STRING_EQUAL(got, wanted);
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "got    %s\nwanted %s\n", got, wanted);
    }
}

static inline void expect_part(const char *got, const char *part)
{
    bool found = got != NULL && strstr(got, part) != NULL;
    CU_ASSERT_TRUE(found);
    if (!found) {
        fprintf(stderr, "no     %s\nin     %s\n", part, got == NULL ? "" : got);
    }
}

static inline void expect_no_part(const char *got, const char *part)
{
    bool found = got != NULL && strstr(got, part) != NULL;
    CU_ASSERT_FALSE(found);
    if (found) {
        fprintf(stderr, "found  %s\nin     %s\n", part, got);
    }
}

/* Runs a scenario with whole events, single bytes and odd pieces: what goes down is the same. */
static inline void in_any_pieces(void (*scenario)(struct bench *))
{
    static const size_t pieces[] = {0, 1, 7, 64};
    struct buf first = {0};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct bench b = bench_new(pieces[i]);
        scenario(&b);
        bench_plain_ids(b.out.data);
        if (i == 0) {
            buf_append_str(&first, buf_str(&b.out));
        } else {
            CU_ASSERT_TRUE(str_eq(buf_str(&first), buf_str(&b.out)));
        }
        bench_clear(&b);
    }
    buf_clear(&first);
}

#endif
