/* What the benches of the surfaces share: driving a surface as the gateway does, with streams in pieces of `piece` bytes
 * (0: whole). The bench that includes this says first
 *   BENCH_SURFACE    the surface that it drives
 *   BENCH_OFFERS     what the interceptors in scope offer: a list of OFFER(…), at most BENCH_OFFERS_MAX
 *   BENCH_CONTAINER  the id of the request's container
 * and writes bench_request(), which asks for a turn as its upstreams are asked, and bench_finish(). */
#ifndef TESTS_SUPPORT_SURFACE_BENCH_H
#define TESTS_SUPPORT_SURFACE_BENCH_H

#include "base/check.h"
#include "cunit_main.h"
#include "surface/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_OFFERS_MAX = 5 };

/* Parameters that are one text. */
#define SCHEMA(property)                                                                          \
    "{\"type\":\"object\",\"properties\":{\"" property "\":{\"type\":\"string\"}},\"required\":[" \
    "\"" property "\"]}"
/* A tool that answers the hosted one of its name. */
#define OFFER(kind, text, property)                                       \
    {                                                                     \
        .hosted = STR(kind), .name = STR(kind), .description = STR(text), \
        .parameters = STR(SCHEMA(property))                               \
    }

/* What a test may set before the request is opened. A bench stays where it is once that is done: the exchange knows it. */
struct bench {
    size_t piece;
    struct arena *arena;
    struct json_text body;
    struct surface_offer offers[BENCH_OFFERS_MAX];
    size_t offers_count;
    const struct surface_memory *memory; /* NULL: none, as of the store */
    const struct surface_store *store;
    const char *container, *answer_id;
    int64_t expires; /* of the container */
    bool usage_last, asks_for_reasoning;
    struct surface_container_source container_source;
    struct surface_exchange *exchange;
    struct surface_turn turn;
    struct buf request, out;
    struct sg_error err;
};

static inline struct bench bench_new(size_t piece)
{
    const struct surface_offer offers[] = {BENCH_OFFERS};
    _Static_assert(COUNT_OF(offers) <= BENCH_OFFERS_MAX, "more offers than a bench holds");
    struct bench b = {.piece = piece,
                      .arena = arena_new(0),
                      .offers_count = COUNT_OF(offers),
                      .container = BENCH_CONTAINER,
                      .answer_id = "0123456789abcdef0123456789abcdef"};
    memcpy(b.offers, offers, sizeof offers);
    return b;
}

static inline void bench_clear(struct bench *b)
{
    BENCH_SURFACE.free(b->exchange);
    buf_clear(&b->request);
    buf_clear(&b->out);
    arena_free(b->arena);
}
#define BENCH_CLEANUP __attribute__((cleanup(bench_clear)))

/* ---- the request ---- */

static inline const char *bench_container_id(void *context)
{
    return ((const struct bench *)context)->container;
}

static inline int64_t bench_container_expires(void *context)
{
    return ((const struct bench *)context)->expires;
}

static inline struct surface_input bench_input(struct bench *b)
{
    b->container_source =
        (struct surface_container_source){bench_container_id, bench_container_expires, b};
    return (struct surface_input){.body = &b->body,
                                  .offers = b->offers,
                                  .offers_count = b->offers_count,
                                  .memory = b->memory,
                                  .store = b->store,
                                  .container = &b->container_source,
                                  .asks_for_reasoning = b->asks_for_reasoning,
                                  .usage_last = b->usage_last,
                                  .answer_id = b->answer_id};
}

static inline void bench_scan(struct bench *b, const char *body)
{
    char *copy = arena_copy(b->arena, str_of(body));
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(copy), b->arena, &b->body, &b->err), SG_OK);
}

static inline bool bench_looks_for(struct bench *b, const char *body)
{
    bool ret = false;
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    CU_ASSERT_EQUAL(BENCH_SURFACE.looks_for(&input, b->arena, &ret, &b->err), SG_OK);
    return ret;
}

static inline int bench_try_open(struct bench *b, const char *body)
{
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    return BENCH_SURFACE.open(&input, b->arena, &b->exchange, &b->err);
}

/* Ends the test where what must go well has not. */
static inline void bench_must(const struct bench *b, int code)
{
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
    CU_ASSERT_EQUAL_FATAL(code, SG_OK);
}

static inline void bench_open(struct bench *b, const char *body)
{
    bench_must(b, bench_try_open(b, body));
}

/* ---- turns ---- */

/* The body of the next turn; checked to be good JSON. */
static inline const char *bench_request_with(struct bench *b, struct surface_turn_options options)
{
    buf_reset(&b->request);
    CU_ASSERT_EQUAL_FATAL(BENCH_SURFACE.turn_request(b->exchange, &options, &b->request, &b->err),
                          SG_OK);
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(json_scan(buf_str(&b->request), scratch, &text, &err), SG_OK);
    arena_free(scratch);
    return b->request.data;
}

static inline int bench_try_turn(struct bench *b, bool is_stream, const char *text)
{
    BENCH_SURFACE.turn_begin(b->exchange, is_stream);
    struct str rest = str_of(text);
    while (rest.len > 0) {
        size_t len = b->piece == 0 || b->piece > rest.len ? rest.len : b->piece;
        char *exact = malloc(len); /* so that reading past a piece is seen */
        memcpy(exact, rest.data, len);
        int code = BENCH_SURFACE.turn_feed(b->exchange, (struct str){exact, len}, &b->out, &b->err);
        free(exact);
        if (code != SG_OK) {
            return code;
        }
        rest = (struct str){rest.data + len, rest.len - len};
    }
    return BENCH_SURFACE.turn_end(b->exchange, &b->out, &b->turn, &b->err);
}

static inline void bench_turn(struct bench *b, const char *sse)
{
    bench_must(b, bench_try_turn(b, true, sse));
}

static inline void bench_plain_turn(struct bench *b, const char *json)
{
    bench_must(b, bench_try_turn(b, false, json));
}

static inline void bench_result_of(struct bench *b, size_t call, struct surface_result result)
{
    BENCH_SURFACE.call_begin(b->exchange, call, result.container_id, &b->out);
    BENCH_SURFACE.call_end(b->exchange, call, &result, &b->out);
}

static inline void bench_result(struct bench *b, size_t call, const char *text)
{
    struct surface_output output = {SG_OUT_LOG_OUT, str_of(text)};
    bench_result_of(b, call,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = str_of(text),
                                            .container_id = str_of(b->container),
                                            .outputs = &output,
                                            .outputs_count = 1});
}

/* ---- what the client has ---- */

/* The answer's end, as it is; bench_finish() is what tests call. */
static inline void bench_end(struct bench *b, const char *closing)
{
    CU_ASSERT_EQUAL(BENCH_SURFACE.finish(b->exchange, str_of(closing), &b->out, &b->err), SG_OK);
}

/* 32 random digits behind a mark of ours as zeros, and times, so that two runs compare. */
static inline void bench_plain_ids(char *text)
{
    for (char *p = text; p != NULL && (p = strstr(p, "_sg")) != NULL;) {
        p += 3;
        for (size_t i = 0; i < 32 && p[i] != '\0' && p[i] != '"'; i++) {
            p[i] = '0';
        }
    }
    for (char *p = text; p != NULL && (p = strstr(p, "ed_at\":")) != NULL;) {
        for (p += 7; *p >= '0' && *p <= '9'; p++) {
            *p = '1';
        }
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
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
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
