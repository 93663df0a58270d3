/* Conversations made at random, translated there and back, or by two ways to one place: the same texts, pictures, calls,
 * results, tools and options in the same order. Each is made of a number, and a failure names it. */
#include "cunit_main.h"
#include "random_json.h"
#include "translate/reading.h"
#include "translate_bench.h"

enum { ROUNDS = 400 };

/* ---- a conversation as text ---- */

struct flat {
    struct buf out;
    int last; /* role of the text that goes on; -1: none */
};

/* `call_` and `toolu_` are the APIs' ways of writing an id. */
static void id_put(struct buf *out, struct str id)
{
    static const struct str marks[] = {STR("toolu_"), STR("call_")};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (str_starts(id, marks[i])) {
            id = (struct str){id.data + marks[i].len, id.len - marks[i].len};
        }
    }
    (void)buf_append_str(out, id);
}

static void media_put(struct buf *out, const struct part *part)
{
    (void)buf_puts(out, part->kind == PART_IMAGE ? " image " : " document ");
    (void)buf_put_json(out, part->name);
    if (part->url.len > 0) {
        (void)buf_append_str(out, part->url);
    } else {
        (void)buf_printf(out, "data:%.*s;base64,%.*s", (int)part->media_type.len,
                         part->media_type.data, (int)part->data.len, part->data.data);
    }
}

static void result_put(struct buf *out, const struct part *result)
{
    (void)buf_puts(out, " result ");
    id_put(out, result->id);
    (void)buf_puts(out, result->is_error ? " error " : " ");
    for (size_t i = 0; i < result->count; i++) {
        (void)buf_puts(out, i > 0 ? "\\n" : "");
        (void)buf_put_json_inner(out, result->parts[i].text);
    }
}

/* Texts of one speaker in a row are one; reasoning is not carried by all APIs. */
static void part_put(struct flat *flat, enum role role, const struct part *part)
{
    if (part->kind == PART_REASONING || (part->kind == PART_TEXT && part->text.len == 0)) {
        return;
    }
    if (part->kind == PART_TEXT) {
        (void)buf_printf(&flat->out, flat->last == (int)role ? "%.0s" : "\n%s text ",
                         role == ROLE_USER ? "user" : "assistant");
        (void)buf_put_json_inner(&flat->out, part->text);
        flat->last = (int)role;
        return;
    }
    flat->last = -1;
    (void)buf_puts(&flat->out, role == ROLE_USER ? "\nuser" : "\nassistant");
    if (part->kind == PART_CALL) {
        (void)buf_puts(&flat->out, " call ");
        id_put(&flat->out, part->id);
        (void)buf_putc(&flat->out, ' ');
        (void)buf_put_json(&flat->out, part->name);
        (void)buf_append_str(&flat->out, part->arguments);
    } else if (part->kind == PART_RESULT) {
        result_put(&flat->out, part);
    } else {
        media_put(&flat->out, part);
    }
}

static void system_put(struct flat *flat, const struct conversation *conversation)
{
    (void)buf_puts(&flat->out, "system ");
    bool is_first = true;
    for (size_t i = 0; i < conversation->messages_count; i++) {
        const struct message *message = &conversation->messages[i];
        for (size_t k = 0; message->role == ROLE_SYSTEM && k < message->count; k++) {
            (void)buf_puts(&flat->out, is_first ? "" : "\\n\\n");
            (void)buf_put_json_inner(&flat->out, message->parts[k].text);
            is_first = false;
        }
    }
}

static void tools_put(struct buf *out, const struct conversation *conversation)
{
    for (size_t i = 0; i < conversation->functions_count; i++) {
        const struct function *function = &conversation->functions[i];
        (void)buf_puts(out, "\ntool ");
        (void)buf_put_json(out, function->name);
        (void)buf_put_json(out, function->description);
        (void)buf_append_str(out, function->schema);
        (void)buf_puts(out, str_is(function->strict, "true") ? " strict" : "");
    }
    if (conversation->functions_count > 0) {
        bool is_alone = conversation->options[OPTION_PARALLEL].value.type == JSON_FALSE &&
                        conversation->options[OPTION_PARALLEL].is_said;
        enum choice_kind kind = conversation->choice.kind;
        kind = kind == CHOICE_UNSAID ? CHOICE_AUTO : kind;
        (void)buf_printf(out, "\nchoice %d%s ", (int)kind, is_alone ? " alone" : "");
        (void)buf_append_str(out, conversation->choice.name);
    }
}

static void options_put(struct buf *out, const struct conversation *conversation)
{
    static const enum option_kind kinds[] = {OPTION_TEMPERATURE, OPTION_TOP_P, OPTION_MAX_TOKENS,
                                             OPTION_STOP, OPTION_USER};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct option *option = &conversation->options[kinds[i]];
        (void)buf_printf(out, "\noption %d ", (int)kinds[i]);
        (void)buf_append_str(out, option->is_said ? option->value.raw : STR("-"));
    }
    (void)buf_puts(out, conversation->stream ? "\nstream" : "");
}

typedef int read_function(struct reading *, const struct json_text *, struct sg_error *);

static void flat_put(read_function *read, struct str body, struct buf *ret)
{
    struct arena *arena = arena_new(0);
    struct conversation conversation = {0};
    struct reading reading = {.arena = arena, .to = &conversation};
    struct json_text text;
    struct sg_error err = {0};
    struct flat flat = {.last = -1};
    CU_ASSERT_EQUAL_FATAL(json_scan(body, arena, &text, &err), SG_OK);
    CU_ASSERT_EQUAL(read(&reading, &text, &err), SG_OK);
    CU_ASSERT_STRING_EQUAL(err.message, "");
    system_put(&flat, &conversation);
    for (size_t i = 0; i < conversation.messages_count; i++) {
        const struct message *message = &conversation.messages[i];
        for (size_t k = 0; message->role != ROLE_SYSTEM && k < message->count; k++) {
            part_put(&flat, message->role, &message->parts[k]);
        }
    }
    tools_put(&flat.out, &conversation);
    options_put(&flat.out, &conversation);
    *ret = flat.out;
    arena_free(arena);
}

static void translated(const char *from, const char *to, struct str body, struct buf *ret)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(
        translate_request((struct translate_pair){from, to}, NULL, body, ret, &err), SG_OK);
}

static void expect_same(const struct buf *a, const struct buf *b, uint64_t number)
{
    if (!str_eq(buf_str(a), buf_str(b))) {
        fprintf(stderr, "conversation %llu:\n%s\n---- is not\n%s\n", (unsigned long long)number,
                a->data, b->data);
        CU_FAIL("a conversation is another one");
    }
}

/* ---- conversations at random ---- */

struct making {
    struct random r;
    struct buf out;
    unsigned calls; /* ids so far */
};

static bool chance(struct making *m, uint32_t of)
{
    return random_below(&m->r, of) == 0;
}

static void comma(struct making *m)
{
    char last = m->out.data[m->out.len - 1];
    (void)buf_puts(&m->out, last == '[' || last == '{' ? "" : ",");
}

static void text_block(struct making *m, const char *type, const char *prefix)
{
    comma(m);
    (void)buf_printf(&m->out, "{\"type\":\"%s\",\"text\":", type);
    random_string(&m->r, &m->out, prefix);
    (void)buf_putc(&m->out, '}');
}

static void media_block(struct making *m)
{
    static const char *const blocks[] = {
        "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://e/x?a=b&c\"}}",
        "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":"
        "\"iVBORw0KGgo=\"}}",
        "{\"type\":\"document\",\"title\":\"a \\\"b\\\".pdf\",\"source\":{\"type\":\"base64\","
        "\"media_type\":\"application/pdf\",\"data\":\"JVBERi0=\"}}"};
    comma(m);
    (void)buf_puts(&m->out, blocks[random_below(&m->r, COUNT_OF(blocks))]);
}

static void user_blocks(struct making *m)
{
    for (uint32_t i = 1 + random_below(&m->r, 3); i > 0; i--) {
        if (chance(m, 3)) {
            media_block(m);
        } else {
            text_block(m, "text", "q"); /* never white space alone, which is left out */
        }
    }
}

/* The assistant's message, and the user's with the results. */
static void turn_with_calls(struct making *m, unsigned calls)
{
    unsigned first = m->calls;
    for (; m->calls < first + calls; m->calls++) {
        comma(m);
        (void)buf_printf(&m->out, "{\"type\":\"tool_use\",\"id\":\"toolu_%u\",\"name\":", m->calls);
        random_string(&m->r, &m->out, "f");
        (void)buf_puts(&m->out, ",\"input\":");
        random_nested(&m->r, &m->out, 3, true);
        (void)buf_putc(&m->out, '}');
    }
    (void)buf_puts(&m->out, "]},{\"role\":\"user\",\"content\":[");
    for (unsigned i = first; i < m->calls; i++) {
        comma(m);
        (void)buf_printf(&m->out, "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_%u\"", i);
        if (chance(m, 2)) {
            (void)buf_puts(&m->out, ",\"content\":[");
            for (uint32_t k = random_below(&m->r, 3); k > 0; k--) {
                text_block(m, "text", "r");
            }
            (void)buf_putc(&m->out, ']');
        } else if (chance(m, 2)) {
            (void)buf_puts(&m->out, ",\"content\":");
            random_string(&m->r, &m->out, "r");
        }
        (void)buf_putc(&m->out, '}');
    }
    if (chance(m, 2)) {
        user_blocks(m);
    }
    (void)buf_puts(&m->out, "]}");
}

static void assistant_turn(struct making *m)
{
    (void)buf_puts(&m->out, ",{\"role\":\"assistant\",\"content\":[");
    if (chance(m, 3)) {
        (void)buf_puts(&m->out, "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}");
    }
    for (uint32_t i = random_below(&m->r, 3); i > 0; i--) {
        text_block(m, "text", "t");
    }
    if (chance(m, 2)) {
        turn_with_calls(m, 1 + random_below(&m->r, 3));
    } else {
        text_block(m, "text", "t");
        (void)buf_puts(&m->out, "]}");
    }
}

static void options_make(struct making *m, bool is_responses)
{
    static const char *const options[] = {",\"temperature\":0.70", ",\"top_p\":1e-1",
                                          ",\"stream\":true"};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        (void)buf_puts(&m->out, chance(m, 2) ? options[i] : "");
    }
    (void)buf_printf(&m->out, ",\"%s\":%u", is_responses ? "max_output_tokens" : "max_tokens",
                     1 + random_below(&m->r, 9999));
    if (!is_responses && chance(m, 2)) {
        (void)buf_puts(&m->out, ",\"stop_sequences\":[");
        random_string(&m->r, &m->out, "s");
        (void)buf_putc(&m->out, ']');
    }
}

static void tools_make(struct making *m, bool is_responses)
{
    uint32_t count = random_below(&m->r, 4);
    (void)buf_puts(&m->out, ",\"tools\":[");
    for (uint32_t i = 0; i < count; i++) {
        comma(m);
        (void)buf_printf(&m->out, "{%s\"name\":\"f%u\",\"%s\":{\"type\":\"object\",\"properties\":",
                         is_responses ? "\"type\":\"function\"," : "", i,
                         is_responses ? "parameters" : "input_schema");
        random_nested(&m->r, &m->out, 2, true);
        (void)buf_puts(&m->out, "},\"description\":");
        random_string(&m->r, &m->out, "");
        (void)buf_puts(&m->out, chance(m, 2) ? ",\"strict\":true}" : "}");
    }
    (void)buf_putc(&m->out, ']');
}

static void choice_make(struct making *m)
{
    static const char *const choices[] = {
        "{\"type\":\"auto\"}", "{\"type\":\"any\",\"disable_parallel_tool_use\":true}",
        "{\"type\":\"auto\",\"disable_parallel_tool_use\":true}", "{\"type\":\"none\"}",
        "{\"type\":\"tool\",\"name\":\"f0\"}"};
    if (chance(m, 2)) {
        (void)buf_printf(&m->out, ",\"tool_choice\":%s",
                         choices[random_below(&m->r, COUNT_OF(choices))]);
    }
}

static void messages_make(struct making *m)
{
    (void)buf_puts(&m->out, "{\"model\":\"m\",\"system\":[");
    for (uint32_t i = random_below(&m->r, 3); i > 0; i--) {
        text_block(m, "text", "s");
    }
    (void)buf_puts(&m->out, "],\"messages\":[{\"role\":\"user\",\"content\":[");
    user_blocks(m);
    (void)buf_puts(&m->out, "]}");
    for (uint32_t i = random_below(&m->r, 6); i > 0; i--) {
        assistant_turn(m);
        (void)buf_puts(&m->out, ",{\"role\":\"user\",\"content\":");
        random_string(&m->r, &m->out, "u");
        (void)buf_putc(&m->out, '}');
    }
    (void)buf_putc(&m->out, ']');
    options_make(m, false);
    tools_make(m, false);
    choice_make(m);
    (void)buf_putc(&m->out, '}');
}

/* ---- Responses ---- */

static void message_item(struct making *m, const char *role)
{
    bool is_assistant = strcmp(role, "assistant") == 0;
    comma(m);
    (void)buf_printf(&m->out, "{\"role\":\"%s\",\"content\":", role);
    if (chance(m, 2)) {
        random_string(&m->r, &m->out, "m");
    } else {
        (void)buf_putc(&m->out, '[');
        for (uint32_t i = 1 + random_below(&m->r, 2); i > 0; i--) {
            text_block(m, is_assistant ? "output_text" : "input_text", "m");
        }
        if (strcmp(role, "user") == 0 && chance(m, 2)) {
            (void)buf_puts(&m->out,
                           ",{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,"
                           "iVBORw0KGgo=\",\"detail\":\"auto\"}");
        }
        (void)buf_putc(&m->out, ']');
    }
    (void)buf_putc(&m->out, '}');
}

static void calls_items(struct making *m)
{
    unsigned first = m->calls, count = 1 + random_below(&m->r, 3);
    for (; m->calls < first + count; m->calls++) {
        BUF_CLEANUP struct buf arguments = {0};
        random_nested(&m->r, &arguments, 2, true);
        comma(m);
        (void)buf_printf(&m->out,
                         "{\"type\":\"function_call\",\"call_id\":\"call_%u\",\"name\":\"f\","
                         "\"arguments\":",
                         m->calls);
        (void)buf_put_json(&m->out, buf_str(&arguments));
        (void)buf_putc(&m->out, '}');
    }
    for (unsigned i = first; i < m->calls; i++) {
        (void)buf_printf(
            &m->out, ",{\"type\":\"function_call_output\",\"call_id\":\"call_%u\",\"output\":", i);
        random_string(&m->r, &m->out, "r");
        (void)buf_putc(&m->out, '}');
    }
}

static void responses_make(struct making *m)
{
    (void)buf_puts(&m->out, "{\"model\":\"m\",\"instructions\":");
    random_string(&m->r, &m->out, "i");
    (void)buf_puts(&m->out, ",\"input\":[");
    for (uint32_t i = 1 + random_below(&m->r, 5); i > 0; i--) {
        if (chance(m, 3)) {
            message_item(m, chance(m, 2) ? "system" : "developer");
        }
        message_item(m, "user");
        if (chance(m, 3)) {
            comma(m);
            (void)buf_puts(&m->out, "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}");
        }
        if (chance(m, 2)) {
            message_item(m, "assistant");
        }
        if (chance(m, 2)) {
            calls_items(m);
        }
    }
    (void)buf_putc(&m->out, ']');
    options_make(m, true);
    tools_make(m, true);
    (void)buf_puts(&m->out, chance(m, 2) ? ",\"tool_choice\":\"required\"" : "");
    (void)buf_puts(&m->out, chance(m, 2) ? ",\"parallel_tool_calls\":false" : "");
    (void)buf_putc(&m->out, '}');
}

/* ---- the properties ---- */

static void messages_there_and_back_are_the_same_conversation(void)
{
    for (uint64_t number = 0; number < ROUNDS; number++) {
        struct making m = {.r = {number}};
        BUF_CLEANUP struct buf there = {0}, back = {0}, before = {0}, after = {0};
        messages_make(&m);
        translated("messages", "chat", buf_str(&m.out), &there);
        translated("chat", "messages", buf_str(&there), &back);
        flat_put(read_messages, buf_str(&m.out), &before);
        flat_put(read_messages, buf_str(&back), &after);
        expect_same(&before, &after, number);
        buf_clear(&m.out);
    }
}

/* Responses go one way only: to messages straight, or by chat. */
static void responses_are_the_same_conversation_by_either_way(void)
{
    for (uint64_t number = 0; number < ROUNDS; number++) {
        struct making m = {.r = {number}};
        BUF_CLEANUP struct buf straight = {0}, chat = {0}, by_chat = {0};
        BUF_CLEANUP struct buf before = {0}, at_chat = {0}, one = {0}, other = {0};
        responses_make(&m);
        translated("responses", "messages", buf_str(&m.out), &straight);
        translated("responses", "chat", buf_str(&m.out), &chat);
        translated("chat", "messages", buf_str(&chat), &by_chat);
        flat_put(read_responses, buf_str(&m.out), &before);
        flat_put(read_chat, buf_str(&chat), &at_chat);
        flat_put(read_messages, buf_str(&straight), &one);
        flat_put(read_messages, buf_str(&by_chat), &other);
        expect_same(&before, &at_chat, number);
        expect_same(&before, &one, number);
        expect_same(&before, &other, number);
        buf_clear(&m.out);
    }
}

static const struct test tests[] = {
    TEST(messages_there_and_back_are_the_same_conversation),
    TEST(responses_are_the_same_conversation_by_either_way),
};

int main(int argc, char **argv)
{
    return run_tests("translate_properties", tests, COUNT_OF(tests), argc, argv);
}
