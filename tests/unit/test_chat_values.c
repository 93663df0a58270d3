/* Values survive: whatever JSON a client writes into an intercepted request, all that was not ours to change goes up byte
 * for byte, in the first turn and in those that follow: order, white space, numbers, escapes, depth. Random bodies, but
 * the same in every run. */
#include "base/check.h"
#include "base/limits.h"
#include "chat_bench.h"
#include "random_json.h"

#define ROUNDS 1500

struct part { /* of a body: a text that stays, or a place where something of ours comes */
    enum { STAYS, HOSTED_TOOL, MORE_MESSAGES } kind;
    struct buf text;
};

struct body {
    struct random random;
    struct part parts[8];
    size_t count, members;
};

static struct buf *text_of(struct body *body)
{
    if (body->count == 0 || body->parts[body->count - 1].kind != STAYS) {
        body->parts[body->count++] = (struct part){.kind = STAYS};
    }
    return &body->parts[body->count - 1].text;
}

static void place_put(struct body *body, int kind)
{
    body->parts[body->count++] = (struct part){.kind = kind};
}

/* `key` as it stands, or NULL: one that nobody knows. */
static void key_put(struct body *body, const char *key)
{
    struct buf *out = text_of(body);
    buf_puts(out, body->members++ == 0 ? "" : ",");
    random_space(&body->random, out);
    if (key == NULL) {
        char prefix[24];
        (void)snprintf(prefix, sizeof prefix, "x%zu_", body->members); /* fits */
        random_string(&body->random, out, prefix);
    } else {
        buf_printf(out, "\"%s\"", key);
    }
    random_space(&body->random, out);
    buf_putc(out, ':');
    random_space(&body->random, out);
}

static void values_put(struct body *body)
{
    for (uint32_t count = random_below(&body->random, 4); count > 0; count--) {
        key_put(body, NULL);
        random_value(&body->random, text_of(body), 8);
        random_space(&body->random, text_of(body));
    }
}

static void tool_put(struct body *body, unsigned i)
{
    struct buf *out = text_of(body);
    buf_printf(out, "{\"type\":\"function\",\"function\":{\"name\":\"f%u\",\"parameters\":", i);
    random_value(&body->random, out, 6);
    buf_puts(out, "},\"x\":");
    random_value(&body->random, out, 3);
    buf_putc(out, '}');
}

static void tools_put(struct body *body)
{
    uint32_t before = random_below(&body->random, 3), behind = random_below(&body->random, 3);
    key_put(body, "tools");
    buf_putc(text_of(body), '[');
    random_space(&body->random, text_of(body));
    for (unsigned i = 0; i < before; i++) {
        tool_put(body, i);
        buf_putc(text_of(body), ',');
        random_space(&body->random, text_of(body));
    }
    place_put(body, HOSTED_TOOL);
    for (unsigned i = 0; i < behind; i++) {
        random_space(&body->random, text_of(body));
        buf_putc(text_of(body), ',');
        tool_put(body, before + i);
    }
    random_space(&body->random, text_of(body));
    buf_putc(text_of(body), ']');
}

static void messages_put(struct body *body)
{
    static const char *const roles[] = {"user", "assistant", "tool", "developer"};
    key_put(body, "messages");
    buf_putc(text_of(body), '[');
    for (uint32_t i = 0, count = 1 + random_below(&body->random, 4); i < count; i++) {
        struct buf *out = text_of(body);
        random_space(&body->random, out);
        buf_printf(out, "{\"role\" :\"%s\",\"content\":", roles[random_below(&body->random, 4)]);
        random_value(&body->random, out, 6);
        buf_puts(out, ",\"x\" : ");
        random_value(&body->random, out, 6);
        buf_puts(out, "}");
        random_space(&body->random, out);
        buf_puts(out, i + 1 < count ? "," : "");
    }
    place_put(body, MORE_MESSAGES);
    buf_putc(text_of(body), ']');
}

static struct body body_new(uint64_t seed)
{
    struct body body = {.random = {seed}};
    bool tools_first = random_below(&body.random, 2) == 0;
    random_space(&body.random, text_of(&body));
    buf_putc(text_of(&body), '{');
    values_put(&body);
    (tools_first ? tools_put : messages_put)(&body);
    values_put(&body);
    (tools_first ? messages_put : tools_put)(&body);
    values_put(&body);
    random_space(&body.random, text_of(&body));
    buf_putc(text_of(&body), '}');
    random_space(&body.random, text_of(&body));
    return body;
}

static void body_clear(struct body *body)
{
    for (size_t i = 0; i < body->count; i++) {
        buf_clear(&body->parts[i].text);
    }
}

/* The whole text with these in the places of ours. */
static void body_write(const struct body *body, const char *tool, const char *messages,
                       struct buf *out)
{
    buf_reset(out);
    for (size_t i = 0; i < body->count; i++) {
        const struct part *part = &body->parts[i];
        buf_append_str(out, part->kind == STAYS         ? buf_str(&part->text)
                            : part->kind == HOSTED_TOOL ? str_of(tool)
                                                        : str_of(messages));
    }
}

static bool expect_up(struct bench *b, const struct buf *wanted, uint64_t seed)
{
    (void)bench_request(b);
    bool same = str_eq(buf_str(&b->request), buf_str(wanted));
    CU_ASSERT_TRUE(same);
    if (!same) {
        fprintf(stderr, "seed %llu\ngot    %s\nwanted %s\n", (unsigned long long)seed,
                b->request.data, wanted->data);
    }
    return same;
}

static const char turn[] = ROLE RUN_42;
static const char more[] =
    ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"up_1\",\"type\":\"function"
    "\",\"function\":{\"name\":\"code_interpreter\",\"arguments\":\"{\\\"code\\\":\\\"40+2\\\"}\"}}"
    "]},{\"role\":\"tool\",\"tool_call_id\":\"up_1\",\"content\":\"42\"}";

static bool round_drive(uint64_t seed)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    struct body body = body_new(seed);
    BUF_CLEANUP struct buf sent = {0}, wanted = {0};
    body_write(&body, CODE_TOOL, "", &sent);
    bench_open(&b, sent.data);
    body_write(&body, CODE_DEFINITION, "", &wanted);
    bool good = expect_up(&b, &wanted, seed);
    bench_turn(&b, turn);
    bench_result(&b, 0, "42");
    body_write(&body, CODE_DEFINITION, more, &wanted);
    good = good && expect_up(&b, &wanted, seed);
    body_clear(&body);
    return good;
}

static void all_that_is_not_ours_goes_up_byte_for_byte_in_every_turn(void)
{
    for (uint64_t seed = 1; seed <= ROUNDS && round_drive(seed); seed++) {
    }
}

static void odd_values_survive(void)
{
    static const char *const values[] = {"12345678901234567890",
                                         "9007199254740993",
                                         "1.0",
                                         "-0",
                                         "-0.0",
                                         "1e400",
                                         "1E-400",
                                         "0.10000000000000000000001",
                                         "\"\\u0000\"",
                                         "\"\\ud800\"",
                                         "\"\\udfff\\ud800\"",
                                         "\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"",
                                         "\"\xF0\x9F\x98\x80\"",
                                         "{\"a\":1,\"a\":2}",
                                         "[ [ ] , { } ]",
                                         "\"\x7F\xC2\x80\xE2\x80\xA8\"",
                                         "null",
                                         "[1 ,\t2\r\n,3]"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf sent = {0}, wanted = {0};
        buf_printf(&sent, "{\"x\":%s,\"tools\":[" CODE_TOOL "],\"messages\":[{\"content\":%s}]}",
                   values[i], values[i]);
        buf_printf(&wanted, "{\"x\":%s,\"tools\":[%s],\"messages\":[{\"content\":%s}]}", values[i],
                   CODE_DEFINITION, values[i]);
        bench_open(&b, sent.data);
        CU_ASSERT_STRING_EQUAL(bench_request(&b), wanted.data);
    }
}

static void the_deepest_body_goes_through(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf sent = {0};
    buf_puts(&sent, "{\"tools\":[" CODE_TOOL "]," USER ",\"x\":");
    for (int i = 1; i < LIMIT_JSON_DEPTH; i++) {
        buf_putc(&sent, '[');
    }
    size_t middle = sent.len;
    for (int i = 1; i < LIMIT_JSON_DEPTH; i++) {
        buf_putc(&sent, ']');
    }
    buf_putc(&sent, '}');
    bench_open(&b, sent.data);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&b), sent.data + middle - 100));
    BUF_CLEANUP struct buf deeper = {0};
    buf_append(&deeper, sent.data, middle);
    buf_puts(&deeper, "[]");
    buf_puts(&deeper, sent.data + middle);
    struct json_text text;
    CU_ASSERT_EQUAL(json_scan(buf_str(&deeper), b.arena, &text, &b.err), SG_E_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.err.message, "128"));
}

static const struct test tests[] = {
    TEST(all_that_is_not_ours_goes_up_byte_for_byte_in_every_turn),
    TEST(odd_values_survive),
    TEST(the_deepest_body_goes_through),
};

int main(int argc, char **argv)
{
    return run_tests("chat_values", tests, COUNT_OF(tests), argc, argv);
}
