/* Requests in another API. What becomes of each thing that can be said stands in data/translate/FROM-TO.txt, a rule in three
 * lines; what becomes of each field at the top in data/wire-fields/API.txt, which has all fields of the API's reference:
 * each is carried, refused by its name, or listed as meaningless in the table of fields, and nothing falls in silence. */
#include "text_file.h"
#include "translate/reading.h"
#include "translate_bench.h"

#include <CUnit/CUnit.h>

/* ---- rules ---- */

struct rule {
    struct str name, given, expected;
    bool is_refused;
    size_t line;
};

/* "param: message", of which the message's advice is left out. */
static void refusal_put(const struct sg_error *err, struct buf *out)
{
    static const char advice[] = " Leave it out, or have the operator list it in 'drop_params'.";
    const char *end = strstr(err->message, advice);
    size_t len = end == NULL ? strlen(err->message) : (size_t)(end - err->message);
    (void)buf_printf(out, "%s: %.*s", err->param, (int)len, err->message);
    CU_ASSERT_EQUAL(error_status(err), 400);
    if (end == NULL) { /* it is wrong for its own API too */
        CU_ASSERT_TRUE(strstr(err->message, "must be") != NULL ||
                       strstr(err->message, "duplicate key") != NULL);
    } else {
        CU_ASSERT_EQUAL(end[sizeof advice - 1], '\0');
    }
}

static void rule_check(struct translate_pair pair, const struct rule *rule)
{
    BUF_CLEANUP struct buf body = {0}, out = {0}, got = {0};
    struct sg_error err = {0};
    (void)buf_puts(&body, "{\"model\":\"m\",");
    (void)buf_append_str(&body, rule->given);
    (void)buf_putc(&body, '}');
    bool is_refused = translate_request(pair, NULL, buf_str(&body), &out, &err) != SG_OK;
    if (is_refused) {
        refusal_put(&err, &got);
    } else {
        size_t head = strlen("{\"model\":\"m\",");
        (void)buf_append(&got, out.data + head, out.len - head - 1);
    }
    if (is_refused != rule->is_refused || !str_eq(buf_str(&got), rule->expected)) {
        fprintf(stderr, "%s-%s.txt:%zu: %.*s: got\n%s\n", pair.from, pair.to, rule->line,
                (int)rule->name.len, rule->name.data, got.data);
        CU_FAIL("a rule does not hold");
    }
}

static void rules_check(struct translate_pair pair, size_t count_min)
{
    BUF_CLEANUP struct buf file = {0}, path = {0};
    (void)buf_printf(&path, TEST_DATA "/translate/%s-%s.txt", pair.from, pair.to);
    text_file_read(path.data, &file);
    struct str rest = buf_str(&file), line;
    struct rule rule = {0};
    size_t count = 0;
    for (size_t number = 1; text_line(&rest, &line); number++) {
        struct str inside = {line.data + 2, line.len < 2 ? 0 : line.len - 2};
        if (str_starts(line, STR("# "))) {
            rule = (struct rule){.name = inside};
        } else if (str_starts(line, STR("> "))) {
            rule.given = inside;
        } else if (str_starts(line, STR("< ")) || str_starts(line, STR("! "))) {
            rule.expected = inside;
            rule.is_refused = line.data[0] == '!';
            rule.line = number;
            rule_check(pair, &rule);
            count++;
        } else {
            CU_ASSERT_EQUAL(line.len, 0);
        }
    }
    CU_ASSERT_TRUE(count >= count_min);
}

static void what_clients_of_chat_ask_goes_to_servers_of_messages(void)
{
    rules_check((struct translate_pair){"chat", "messages"}, 63);
}

static void what_clients_of_messages_ask_goes_to_servers_of_chat(void)
{
    rules_check((struct translate_pair){"messages", "chat"}, 56);
}

static void what_clients_of_responses_ask_goes_to_servers_of_chat(void)
{
    rules_check((struct translate_pair){"responses", "chat"}, 42);
}

static void what_clients_of_responses_ask_goes_to_servers_of_messages(void)
{
    rules_check((struct translate_pair){"responses", "messages"}, 9);
}

/* ---- fields ---- */

static const struct api {
    const char *name;
    const struct field *fields;
    const char *targets[3];
    const char *base[3]; /* members that each body has, unless they are what is looked at */
} apis[] = {
    {"chat",
     fields_chat,
     {"messages"},
     {"\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]",
      "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"}},
    {"messages",
     fields_messages,
     {"chat"},
     {"\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]", "\"tools\":[{\"name\":\"f\"}]"}},
    {"responses",
     fields_responses,
     {"chat", "messages"},
     {"\"input\":\"q\"", "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]"}},
};

static bool is_listed(const struct field *fields, struct str name, bool as_meaningless)
{
    for (; fields->name != NULL; fields++) {
        if (str_is(name, fields->name)) {
            return !as_meaningless || fields->kind == FIELD_MEANINGLESS ||
                   fields->kind == FIELD_OPTION;
        }
    }
    return false;
}

/* The body with the field, or what it is without. */
static void body_put(const struct api *api, struct str name, struct str value, struct buf *out)
{
    (void)buf_puts(out, "{");
    if (value.len > 0) {
        (void)buf_printf(out, "\"%.*s\":%.*s", (int)name.len, name.data, (int)value.len,
                         value.data);
    }
    for (size_t i = 0; api->base[i] != NULL; i++) {
        bool is_same = strncmp(api->base[i] + 1, name.data, name.len) == 0 &&
                       api->base[i][1 + name.len] == '"';
        if (!is_same) {
            (void)buf_printf(out, "%s%s", out->len > 1 ? "," : "", api->base[i]);
        }
    }
    (void)buf_putc(out, '}');
}

static void refused_check(struct translate_pair pair, struct str name, struct str with,
                          struct str without)
{
    BUF_CLEANUP struct buf out = {0}, dropped = {0};
    struct sg_error err = {0};
    char field[64];
    (void)snprintf(field, sizeof field, "%.*s", (int)name.len, name.data); /* fits */
    const char *const drop[] = {"something_else", field, NULL};
    CU_ASSERT_EQUAL(translate_request(pair, NULL, with, &out, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.param, field);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, field));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.message, "Leave it out, or have the operator list it in 'drop_params'."));
    CU_ASSERT_EQUAL(translate_request(pair, drop, with, &dropped, &err), SG_OK);
    CU_ASSERT_TRUE(str_eq(buf_str(&dropped), without));
}

static void field_check(const struct api *api, const char *target, struct str name,
                        struct str value, struct str expected)
{
    const struct translate_pair pair = {api->name, target};
    BUF_CLEANUP struct buf with = {0}, without = {0}, base = {0}, out = {0};
    struct sg_error err = {0};
    unsigned before = CU_get_number_of_failures();
    body_put(api, name, value, &with);
    body_put(api, name, (struct str){0}, &without);
    CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&without), &base, &err), SG_OK);
    if (str_is(expected, "refused")) {
        refused_check(pair, name, buf_str(&with), buf_str(&base));
    } else {
        CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&with), &out, &err), SG_OK);
        CU_ASSERT_TRUE(is_listed(api->fields, name, false));
    }
    if (str_is(expected, "meaningless")) {
        CU_ASSERT_TRUE(is_listed(api->fields, name, true));
        CU_ASSERT_TRUE(str_eq(buf_str(&out), buf_str(&base)));
    } else if (!str_is(expected, "refused")) {
        CU_ASSERT_PTR_NOT_NULL(memmem(out.data, out.len, expected.data, expected.len));
        CU_ASSERT_PTR_NULL(memmem(base.data, base.len, expected.data, expected.len));
    }
    if (CU_get_number_of_failures() > before) {
        fprintf(stderr, "%s to %s, %.*s: %s %s\n", api->name, target, (int)name.len, name.data,
                out.data, err.message);
    }
}

static struct str column_next(struct str *rest)
{
    static const struct str mark = STR(" | ");
    const char *end = rest->len == 0 ? NULL : memmem(rest->data, rest->len, mark.data, mark.len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    struct str column = {rest->data, len};
    size_t used = end == NULL ? len : len + mark.len;
    *rest = (struct str){rest->data + used, rest->len - used};
    return column;
}

static void each_field_is_carried_or_refused_or_known_to_mean_nothing(void)
{
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        BUF_CLEANUP struct buf file = {0}, path = {0};
        (void)buf_printf(&path, TEST_DATA "/wire-fields/%s.txt", apis[i].name);
        text_file_read(path.data, &file);
        struct str rest = buf_str(&file), line;
        size_t count = 0;
        while (text_line(&rest, &line)) {
            if (str_starts(line, STR("#"))) {
                continue;
            }
            struct str name = column_next(&line), value = column_next(&line);
            for (size_t k = 0; apis[i].targets[k] != NULL; k++, count++) {
                field_check(&apis[i], apis[i].targets[k], name, value, column_next(&line));
            }
            CU_ASSERT_EQUAL(line.len, 0);
        }
        CU_ASSERT_TRUE(count > 20);
    }
}

/* A field that the tables have is one that the lists have. */
static void the_tables_have_no_field_that_the_lists_do_not_have(void)
{
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        BUF_CLEANUP struct buf file = {0}, path = {0}, row = {0};
        (void)buf_printf(&path, TEST_DATA "/wire-fields/%s.txt", apis[i].name);
        text_file_read(path.data, &file);
        for (const struct field *field = apis[i].fields; field->name != NULL; field++) {
            buf_reset(&row);
            (void)buf_printf(&row, "\n%s | ", field->name);
            if (strstr(file.data, row.data) == NULL) {
                fprintf(stderr, "%s: '%s' is not in the list\n", apis[i].name, field->name);
                CU_FAIL("a field is missing");
            }
            CU_ASSERT_TRUE(field->kind != FIELD_MEANINGLESS || field->why != NULL);
        }
    }
}

static void a_field_that_is_null_says_nothing(void)
{
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        BUF_CLEANUP struct buf with = {0}, without = {0}, out = {0}, base = {0};
        struct sg_error err = {0};
        const struct translate_pair pair = {apis[i].name, apis[i].targets[0]};
        body_put(&apis[i], STR("a_field_of_tomorrow"), STR("null"), &with);
        body_put(&apis[i], STR("a_field_of_tomorrow"), (struct str){0}, &without);
        CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&with), &out, &err), SG_OK);
        CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&without), &base, &err), SG_OK);
        CU_ASSERT_TRUE(str_eq(buf_str(&out), buf_str(&base)));
    }
}

static void members_translate(struct translate_pair pair, struct str members, struct buf *out)
{
    BUF_CLEANUP struct buf body = {0};
    struct sg_error err = {0};
    (void)buf_printf(&body, "{%.*s}", (int)members.len, members.data);
    CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&body), out, &err), SG_OK);
    CU_ASSERT_STRING_EQUAL(err.message, "");
}

/* Each of the paths has a line of its own in the table of its API, which says that it is not needed. */
static void described_check(struct str pair, struct str paths, struct str table)
{
    BUF_CLEANUP struct buf head = {0}, row = {0};
    (void)buf_printf(&head, "%.*s:\n", (int)strcspn(pair.data, " "), pair.data);
    const char *start =
        strncmp(table.data, head.data, head.len) == 0 ? table.data : strstr(table.data, head.data);
    CU_ASSERT_PTR_NOT_NULL_FATAL(start);
    while (paths.len > 0) {
        size_t len = 0;
        while (len < paths.len && paths.data[len] != ' ') {
            len++;
        }
        buf_reset(&row);
        (void)buf_printf(&row, "\n  %.*s: over ", (int)len, paths.data);
        const char *line = strstr(start, row.data);
        CU_ASSERT_PTR_NOT_NULL_FATAL(line);
        paths = (struct str){paths.data + len + 1, len < paths.len ? paths.len - len - 1 : 0};
    }
}

/* … and of what stands within a field nothing is said that is not tried. */
static void described_are_tried(struct str table, const struct buf *tried)
{
    struct str line;
    size_t count = 0;
    while (text_line(&table, &line)) {
        size_t len = strcspn(line.data, ":");
        if (!str_starts(line, STR("  ")) || strcspn(line.data, ".[") > len) {
            continue;
        }
        BUF_CLEANUP struct buf among = {0}, alone = {0};
        (void)buf_printf(&among, "%.*s ", (int)len - 1, line.data + 1);
        (void)buf_printf(&alone, " | %.*s | ", (int)len - 2, line.data + 2);
        if (strstr(tried->data, among.data) == NULL && strstr(tried->data, alone.data) == NULL) {
            fprintf(stderr, "%.*s is not tried\n", (int)len, line.data);
            CU_FAIL("something that is described is not tried");
        }
        count++;
    }
    CU_ASSERT_TRUE(count > 20);
}

static void what_says_nothing_to_another_model_changes_nothing(void)
{
    BUF_CLEANUP struct buf file = {0}, table = {0};
    translation_describe(&table);
    text_file_read(TEST_DATA "/translate/meaningless.txt", &file);
    struct str rest = buf_str(&file), line;
    size_t count = 0;
    while (text_line(&rest, &line)) {
        if (str_starts(line, STR("#"))) {
            continue;
        }
        struct str from = column_next(&line), paths = column_next(&line), with = column_next(&line);
        described_check(from, paths, buf_str(&table));
        for (size_t i = 0; i < COUNT_OF(translate_pairs); i++) {
            char names[32];
            BUF_CLEANUP struct buf one = {0}, other = {0};
            (void)snprintf(names, sizeof names, "%s %s", translate_pairs[i].from,
                           translate_pairs[i].to); /* fits */
            if (!str_is(from, names)) {
                continue;
            }
            members_translate(translate_pairs[i], with, &one);
            members_translate(translate_pairs[i], line, &other);
            if (!str_eq(buf_str(&one), buf_str(&other))) {
                fprintf(stderr, "%.*s: %s\n", (int)with.len, with.data, one.data);
                CU_FAIL("something is said");
            }
            count++;
        }
    }
    CU_ASSERT_EQUAL(count, 22);
    described_are_tried(buf_str(&table), &file);
}

/* ---- what the operator lets go ---- */

static void let_go(const char *given, const char *path, const char *expected)
{
    const struct translate_pair pair = {"chat", "messages"};
    const char *const drop[] = {"top", path, NULL};
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(translate_request(pair, NULL, str_of(given), &out, &err), SG_E_INVALID);
    buf_reset(&out);
    int code = translate_request(pair, drop, str_of(given), &out, &err);
    if (expected == NULL) {
        CU_ASSERT_EQUAL(code, SG_E_INVALID);
        return;
    }
    CU_ASSERT_EQUAL(code, SG_OK);
    CU_ASSERT_STRING_EQUAL(out.data, expected);
}

#define HEAD "{\"model\":\"\",\"max_tokens\":8192,\"messages\":"
#define NAMED "{\"messages\":[{\"role\":\"user\",\"name\":\"ann\",\"content\":\"x\"}]}"
#define NOT_NAMED HEAD "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}]}"

static void a_path_with_empty_brackets_lets_go_at_any_index(void)
{
    let_go(NAMED, "messages[].name", NOT_NAMED);
    let_go(NAMED, "messages[0].name", NOT_NAMED);
    let_go(NAMED, "messages[1].name", NULL);
    let_go(NAMED, "messages[].nam", NULL);
    let_go(NAMED, "messages[]", NOT_NAMED);
    let_go(NAMED, "message", NULL);
    let_go(NAMED, "[]", NULL);
}

static void a_part_that_is_let_go_leaves_nothing_behind(void)
{
    let_go(
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{\"file_id\":"
        "\"file-1\"}},{\"type\":\"text\",\"text\":\"x\"}]}]}",
        "messages[].content[].file.file_id", NOT_NAMED);
    let_go(
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":"
        "{\"data\":\"AA\",\"format\":\"wav\"}},{\"type\":\"text\",\"text\":\"x\"}]}]}",
        "messages[].content[]", NOT_NAMED);
    let_go(
        "{\"messages\":[],\"tools\":[{\"type\":\"retrieval\"},{\"type\":\"function\",\"function\":{"
        "\"name\":\"f\",\"parameters\":{}}}]}",
        "tools[].type",
        HEAD "[],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}]}");
}

/* ---- what is hostile ---- */

/* Most messages have one part: room for more would take a multiple of what the client sent, in a request of very many. */
static void a_message_takes_less_than_one_and_a_half_kilobytes(void)
{
    static const struct {
        int (*read)(struct reading *, const struct json_text *, struct sg_error *);
        const char *member, *message;
    } rows[] = {
        {read_chat, "messages", "{\"role\":\"user\",\"content\":\"\"}"},
        {read_messages, "messages", "{\"role\":\"user\",\"content\":\"\"}"},
        {read_messages, "messages",
         "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\"}]}"},
        {read_responses, "input", "{\"role\":\"user\",\"content\":\"\"}"}};
    enum { COUNT = 4096 };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_CLEANUP struct buf body = {0};
        struct sg_error err = {0};
        struct arena *text_arena = arena_new(0), *arena = arena_new(0);
        struct conversation conversation = {0};
        struct reading reading = {.arena = arena, .to = &conversation};
        struct json_text text;
        (void)buf_printf(&body, "{\"%s\":[%s", rows[i].member, rows[i].message);
        for (size_t k = 1; k < COUNT; k++) {
            (void)buf_printf(&body, ",%s", rows[i].message);
        }
        (void)buf_puts(&body, "]}");
        CU_ASSERT_EQUAL(json_scan(buf_str(&body), text_arena, &text, &err), SG_OK);
        CU_ASSERT_EQUAL(rows[i].read(&reading, &text, &err), SG_OK);
        CU_ASSERT_TRUE(conversation.messages_count > 0);
        CU_ASSERT_TRUE(arena_bytes(arena) < (size_t)COUNT * 1536);
        arena_free(arena);
        arena_free(text_arena);
    }
}

static void a_request_of_very_many_parts_is_refused(void)
{
    const struct translate_pair pair = {"messages", "chat"};
    BUF_CLEANUP struct buf body = {0}, out = {0};
    struct sg_error err = {0};
    (void)buf_puts(&body, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}");
    for (size_t i = 0; i < 131072; i++) {
        (void)buf_puts(&body, ",{\"type\":\"text\"}");
    }
    (void)buf_puts(&body, "]}]}");
    CU_ASSERT_EQUAL(translate_request(pair, NULL, buf_str(&body), &out, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "The request has more than 131072 messages, parts and tools, which is "
                           "too many for another API. Send fewer.");
}

static void a_request_that_grows_too_large_is_refused(void)
{
    const struct translate_pair pair = {"chat", "messages"};
    BUF_CLEANUP struct buf out = {.max = 40};
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(translate_request(pair, NULL, STR("{\"messages\":[]}"), &out, &err),
                    SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "The request is larger than 32 MiB in the API of its model's server.");
}

/* Texts with NUL are whole wherever several become one. */
static void texts_are_joined_whole(void)
{
    static const struct {
        struct translate_pair pair;
        const char *given, *expected;
    } rows[] = {
        {{"messages", "chat"},
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"title\":"
         "\"a\\u0000b\","
         "\"source\":{\"type\":\"text\",\"data\":\"c\\u0000d\"}}]}]}",
         "[a\\u0000b]\\nc\\u0000d"},
        {{"messages", "chat"},
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"search_result\",\"title\":"
         "\"a\\u0000b\",\"source\":\"c\\u0000d\",\"content\":[]}]}]}",
         "[a\\u0000b, c\\u0000d]"},
        {{"responses", "chat"},
         "{\"input\":[{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"reasoning\",\"summary\":[{"
         "\"type\":\"summary_text\",\"text\":\"a\\u0000b\"},{\"type\":\"summary_text\",\"text\":"
         "\"c\\ud800\"}]},{\"role\":\"assistant\",\"content\":\"x\"}]}",
         "a\\u0000b\\n\\nc\xEF\xBF\xBD"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_CLEANUP struct buf out = {0};
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(translate_request(rows[i].pair, NULL, str_of(rows[i].given), &out, &err),
                        SG_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(out.data, rows[i].expected));
    }
}

static const struct test tests[] = {
    TEST(what_clients_of_chat_ask_goes_to_servers_of_messages),
    TEST(what_clients_of_messages_ask_goes_to_servers_of_chat),
    TEST(what_clients_of_responses_ask_goes_to_servers_of_chat),
    TEST(what_clients_of_responses_ask_goes_to_servers_of_messages),
    TEST(each_field_is_carried_or_refused_or_known_to_mean_nothing),
    TEST(the_tables_have_no_field_that_the_lists_do_not_have),
    TEST(a_field_that_is_null_says_nothing),
    TEST(what_says_nothing_to_another_model_changes_nothing),
    TEST(a_path_with_empty_brackets_lets_go_at_any_index),
    TEST(a_part_that_is_let_go_leaves_nothing_behind),
    TEST(a_message_takes_less_than_one_and_a_half_kilobytes),
    TEST(a_request_of_very_many_parts_is_refused),
    TEST(a_request_that_grows_too_large_is_refused),
    TEST(texts_are_joined_whole),
};

int main(int argc, char **argv)
{
    return run_tests("translate_requests", tests, COUNT_OF(tests), argc, argv);
}
