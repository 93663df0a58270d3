/* core/session/control_keys: which keys steer a gateway from inside, reading the session id, and cutting them out of a
 * body. Texts are compared byte for byte; the property test compares with what cJSON reads from the same text. */
#include "base/check.h"
#include "cunit_main.h"
#include "session/control_keys.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const table_entries[] = {
    "_code_interpreter_interception",
    "_code_interpreter_interception_converted_stream",
    "_websearch_interception",
    "_websearch_interception_depth",
    "_compression_interception",
    "_compression_interception_x",
    "_headroom_interception",
    "_headroom_interception_x",
    "_agentic_loop",
    "_agentic_loop_depth",
    "_sandgate",
    "_sandgate_container",
    "user_api_key",
    "user_api_key_hash",
    "max_agentic_loops",
    "litellm_metadata",
    "litellm_call_id",
};

static const char *const near_misses[] = {
    "agentic_loop",
    "user_api",
    "_Agentic_loop",
    "USER_API_KEY",
    "_sandgat",
    "sandgate",
    "max_agentic_loop",
    "max_agentic_loops2",
    "litellm",
    "litellm_metadata2",
    "litellm_call_id_x",
    "Litellm_metadata",
    " _sandgate",
    "",
    "metadata",
    "session_id",
    "my_user_api_key",
    "_code_interpreter",
    "model",
};

struct outcome { /* of a cut; holds what it points into */
    struct arena *arena;
    struct buf storage;
    struct json_text before, after;
    struct sg_error err;
    int code;
};

static void outcome_clear(struct outcome *o)
{
    arena_free(o->arena);
    buf_clear(&o->storage);
}
#define OUTCOME_CLEANUP __attribute__((cleanup(outcome_clear)))

/* The members of the result must be those that a scan of its text finds. */
static void members_must_agree(const struct json_text *text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(json_scan(text->raw, arena, &scanned, &err), 0);
    CU_ASSERT_EQUAL_FATAL(scanned.count, text->count);
    CU_ASSERT_TRUE(str_eq(scanned.root.raw, text->root.raw));
    CU_ASSERT_PTR_EQUAL(scanned.root.raw.data, text->root.raw.data);
    for (size_t i = 0; i < text->count; i++) {
        const struct json_member *is = &text->members[i], *should = &scanned.members[i];
        CU_ASSERT_TRUE(str_eq(is->key, should->key));
        CU_ASSERT_PTR_EQUAL(is->key_raw.data, should->key_raw.data);
        CU_ASSERT_EQUAL(is->key_raw.len, should->key_raw.len);
        CU_ASSERT_PTR_EQUAL(is->value.raw.data, should->value.raw.data);
        CU_ASSERT_EQUAL(is->value.raw.len, should->value.raw.len);
        CU_ASSERT_EQUAL(is->value.type, should->value.type);
    }
    arena_free(arena);
}

static struct outcome cut(const char *text, bool take_session_id)
{
    struct outcome o = {.arena = arena_new(0)};
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(text), o.arena, &o.before, &o.err), 0);
    o.code = control_keys_cut(&o.before, take_session_id, o.arena, &o.storage, &o.after, &o.err);
    if (o.code == 0) {
        members_must_agree(&o.after);
    }
    return o;
}

static void expect_cut(const char *before, bool take_session_id, const char *after)
{
    OUTCOME_CLEANUP struct outcome o = cut(before, take_session_id);
    CU_ASSERT_EQUAL(o.code, 0);
    if (!str_is(o.after.raw, after)) {
        printf("\n  before %s\n  wanted %s\n  got    %.*s\n", before, after, (int)o.after.raw.len,
               o.after.raw.data);
    }
    CU_ASSERT_TRUE(str_is(o.after.raw, after));
}

static void b01_every_entry_of_the_table_is_a_control_key(void)
{
    for (size_t i = 0; i < COUNT_OF(table_entries); i++) {
        CU_ASSERT_TRUE(control_key_is(str_of(table_entries[i])));
    }
}

static void b01_near_misses_are_the_clients_own(void)
{
    for (size_t i = 0; i < COUNT_OF(near_misses); i++) {
        CU_ASSERT_FALSE(control_key_is(str_of(near_misses[i])));
    }
    CU_ASSERT_FALSE(control_key_is((struct str){"litellm_call_id\0", 16}));
    CU_ASSERT_FALSE(control_key_is((struct str){0}));
}

static void b24_every_entry_is_cut_at_the_top_level_and_in_metadata(void)
{
    for (size_t i = 0; i < COUNT_OF(table_entries); i++) {
        char before[256];
        snprintf(before, sizeof before, "{\"model\":\"m\",\"%s\":{\"a\":[1,2]}}", table_entries[i]);
        expect_cut(before, false, "{\"model\":\"m\"}");
        snprintf(before, sizeof before, "{\"metadata\":{\"%s\":7,\"a\":1.0},\"n\":2}",
                 table_entries[i]);
        expect_cut(before, false, "{\"metadata\":{\"a\":1.0},\"n\":2}");
    }
}

static void near_misses_stay_and_the_text_is_the_same_memory(void)
{
    for (size_t i = 0; i < COUNT_OF(near_misses); i++) {
        char before[256];
        if (strcmp(near_misses[i], "metadata") == 0) {
            continue;
        }
        snprintf(before, sizeof before, "{ \"%s\" : 1 , \"metadata\":{\"%s\":2} }", near_misses[i],
                 near_misses[i]);
        OUTCOME_CLEANUP struct outcome o = cut(before, false);
        CU_ASSERT_PTR_EQUAL(o.after.raw.data, before);
        CU_ASSERT_EQUAL(o.after.raw.len, strlen(before));
        CU_ASSERT_PTR_EQUAL(o.after.members, o.before.members);
        CU_ASSERT_PTR_NULL(o.storage.data);
    }
}

/* Each character of the key as an escape, and all of them. */
static void b01_escapes_hide_no_key(void)
{
    for (size_t i = 0; i < COUNT_OF(table_entries); i++) {
        const char *key = table_entries[i];
        for (size_t hidden = 0; hidden <= strlen(key); hidden++) {
            BUF_CLEANUP struct buf b = {0};
            buf_puts(&b, "{\"keep\":1,\"");
            for (size_t at = 0; at < strlen(key); at++) {
                bool escape = at == hidden || hidden == strlen(key);
                buf_printf(&b, escape ? "\\u%04x" : "%c", (unsigned char)key[at]);
            }
            buf_puts(&b, "\":2}");
            expect_cut(b.data, false, "{\"keep\":1}");
        }
    }
}

static void commas_and_spaces_around_a_cut_are_exact(void)
{
    expect_cut("{\"_sandgate\":1}", false, "{}");
    expect_cut(" { \"_sandgate\" : 1 } ", false, " {  } ");
    expect_cut("{\"_sandgate\":1,\"a\":2}", false, "{\"a\":2}");
    expect_cut("{\"a\":1,\"_sandgate\":2,\"b\":3}", false, "{\"a\":1,\"b\":3}");
    expect_cut("{\"a\":1 ,\n\"_sandgate\":2}", false, "{\"a\":1}");
    expect_cut("{\"_sandgate1\":1,\"_sandgate2\":2,\"a\":1e400,\"_sandgate3\":3}", false,
               "{\"a\":1e400}");
}

static void what_stays_is_byte_for_byte(void)
{
    expect_cut("{\"n\":12345678901234567890123,\"f\":1.0,\"_agentic_loop\":{\"x\":\"}\"},"
               "\"s\":\"\\u00e4\\/\",\"metadata\":{ \"k\" : 1.50 ,\"user_api_key\":\"x\", "
               "\"l\":[ ] },\"z\":-0}",
               false,
               "{\"n\":12345678901234567890123,\"f\":1.0,\"s\":\"\\u00e4\\/\","
               "\"metadata\":{ \"k\" : 1.50 ,\"l\":[ ] },\"z\":-0}");
}

static void b24_litellm_metadata_goes_whole(void)
{
    expect_cut("{\"litellm_metadata\":{\"session_id\":\"s\",\"a\":1},\"model\":\"m\"}", false,
               "{\"model\":\"m\"}");
}

static void a_metadata_that_becomes_empty_goes(void)
{
    expect_cut("{\"metadata\":{\"_sandgate\":1},\"a\":1}", false, "{\"a\":1}");
    expect_cut("{\"a\":1,\"metadata\":{\"_sandgate\":1,\"litellm_call_id\":2}}", false,
               "{\"a\":1}");
    expect_cut("{\"_sandgate\":0,\"metadata\":{\"session_id\":\"s\"},\"_sandgate2\":0}", true,
               "{}");
    expect_cut("{\"metadata\":{}}", true, "{\"metadata\":{}}"); /* was empty: the client's */
}

static void the_session_id_goes_only_when_an_interceptor_takes_part(void)
{
    const char *body = "{\"metadata\":{\"session_id\":\"s\",\"user\":\"u\"},\"a\":1}";
    expect_cut(body, false, body);
    expect_cut(body, true, "{\"metadata\":{\"user\":\"u\"},\"a\":1}");
    expect_cut("{\"session_id\":\"s\"}", true, "{\"session_id\":\"s\"}"); /* not of metadata */
}

static void deeper_levels_and_other_types_are_left_alone(void)
{
    const char *bodies[] = {
        "{\"metadata\":{\"a\":{\"_sandgate\":1}},\"messages\":[{\"_sandgate\":1}]}",
        "{\"metadata\":null}",
        "{\"metadata\":\"_sandgate\"}",
        "[{\"_sandgate\":1}]",
        "\"_sandgate\"",
    };
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        expect_cut(bodies[i], true, bodies[i]);
    }
}

static void duplicates_in_metadata_are_refused(void)
{
    OUTCOME_CLEANUP struct outcome o = cut("{\"metadata\":{\"a\":1,\"\\u0061\":2}}", false);
    CU_ASSERT_EQUAL(o.code, SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(o.err.param, "metadata");
    CU_ASSERT_STRING_EQUAL(o.err.message, "duplicate key 'a' in metadata");
    CU_ASSERT_PTR_NULL(o.after.raw.data);
}

/* ---- property: against cJSON ---- */

static const char *const pool[] = {
    "\"model\":\"m\"",
    "\"_sandgate\":{\"x\":[1,2]}",
    "\"\\u005fagentic_loop\" : null",
    "\"metadata\":{\"a\":1,\"_sandgate\":2,\"b\":[3]}",
    "\"n\" :1.0",
    "\"user_api_key\":\"}\"",
    "\"ke\\u0079\":[{}]",
};
#define POOL COUNT_OF(pool)

static bool cjson_must_go(const cJSON *item, bool take_session_id)
{
    return control_key_is(str_of(item->string)) ||
           (take_session_id && strcmp(item->string, "session_id") == 0);
}

static void cjson_cut(cJSON *object, bool take_session_id)
{
    cJSON *next;
    for (cJSON *item = object->child; item != NULL; item = next) {
        next = item->next;
        if (cjson_must_go(item, take_session_id)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
        }
    }
}

static void expect_like_cjson(const char *text, bool take_session_id)
{
    cJSON *wanted = cJSON_Parse(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(wanted);
    cjson_cut(wanted, false);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(wanted, "metadata");
    if (metadata != NULL && metadata->child != NULL) {
        cjson_cut(metadata, take_session_id);
        if (metadata->child == NULL) {
            cJSON_Delete(cJSON_DetachItemViaPointer(wanted, metadata));
        }
    }
    OUTCOME_CLEANUP struct outcome o = cut(text, take_session_id);
    CU_ASSERT_EQUAL_FATAL(o.code, 0);
    cJSON *got = cJSON_ParseWithLength(o.after.raw.data, o.after.raw.len);
    CU_ASSERT_TRUE(cJSON_Compare(wanted, got, true));
    cJSON_Delete(wanted);
    cJSON_Delete(got);
}

/* All 2^7 subsets in two orders, so that every member is first, in the middle, last and alone. */
static void every_combination_of_positions_reads_as_cjson_would_cut_it(void)
{
    for (unsigned set = 0; set < 1u << POOL; set++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            BUF_CLEANUP struct buf b = {0};
            buf_puts(&b, set % 3 == 0 ? "{" : " {\n");
            const char *comma = "";
            for (size_t i = 0; i < POOL; i++) {
                size_t which = backwards ? POOL - 1 - i : i;
                if (set & 1u << which) {
                    buf_printf(&b, "%s%s", comma, pool[which]);
                    comma = set % 2 == 0 ? "," : " ,\t";
                }
            }
            buf_puts(&b, "}");
            expect_like_cjson(b.data, false);
        }
    }
}

static void random_metadata_reads_as_cjson_would_cut_it(void)
{
    uint32_t state = 12345;
    static const char *const keys[] = {"a", "_sandgate", "session_id", "user_api_key", "b", "c"};
    for (int round = 0; round < 2000; round++) {
        BUF_CLEANUP struct buf b = {0};
        buf_puts(&b, round % 2 == 0 ? "{\"x\":1,\"metadata\": {" : "{\"metadata\":{");
        const char *comma = "";
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            state = state * 1664525u + 1013904223u;
            if (state >> 31 == 0) {
                buf_printf(&b, "%s\"%s\":%s", comma, keys[i], state >> 30 & 1 ? "[\"}\"]" : "0");
                comma = ",";
            }
        }
        buf_puts(&b, round % 3 == 0 ? "} }" : "},\"_agentic_loop\":{}}");
        expect_like_cjson(b.data, round % 5 != 0);
    }
}

/* Linear: a body with very many cuts, in the metadata too, is done in one pass. Its result is checked, not its time. */
static void very_many_cuts_are_exact(void)
{
    BUF_CLEANUP struct buf b = {0}, wanted = {0};
    buf_puts(&b, "{\"metadata\":{\"a\":1");
    buf_puts(&wanted, "{\"metadata\":{\"a\":1");
    for (int i = 0; i < 1500; i++) {
        buf_printf(&b, ",\"_sandgate%d\":0,\"m%d\":0", i, i);
        buf_printf(&wanted, ",\"m%d\":0", i);
    }
    buf_puts(&b, "}");
    buf_puts(&wanted, "}");
    for (int i = 0; i < 1500; i++) {
        buf_printf(&b, ",\"_sandgate%d\":0,\"t%d\":0", i, i);
        buf_printf(&wanted, ",\"t%d\":0", i);
    }
    buf_puts(&b, "}");
    buf_puts(&wanted, "}");
    expect_cut(b.data, false, wanted.data);
}

/* ---- the session id ---- */

static const char *const sources[] = {"metadata.session_id", "litellm_metadata.session_id", NULL};

static void expect_id_from(const char *const *from, const char *text, const char *wanted)
{
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    struct str id = STR("unset");
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(text), arena, &body, &err), 0);
    CU_ASSERT_EQUAL(session_id_read(&body, from, arena, &id, &err), 0);
    CU_ASSERT_TRUE(str_is(id, wanted));
    arena_free(arena);
}

static void expect_id(const char *text, const char *wanted)
{
    expect_id_from(sources, text, wanted);
}

static void expect_id_from_refused(const char *const *from, const char *text, const char *param,
                                   const char *message)
{
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    struct str id = STR("unset");
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(text), arena, &body, &err), 0);
    CU_ASSERT_EQUAL(session_id_read(&body, from, arena, &id, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.param, param);
    CU_ASSERT_STRING_EQUAL(err.message, message);
    CU_ASSERT_TRUE(str_is(id, "unset"));
    arena_free(arena);
}

static void expect_id_refused(const char *text, const char *param, const char *message)
{
    expect_id_from_refused(sources, text, param, message);
}

static void b47_b48_the_session_id_comes_from_either_metadata(void)
{
    expect_id("{\"metadata\":{\"session_id\":\"s1\"}}", "s1");
    expect_id("{\"litellm_metadata\":{\"session_id\":\"s2\"}}", "s2");
    expect_id("{\"litellm_metadata\":{\"session_id\":\"s2\"},\"metadata\":{\"session_id\":\"s1\"}}",
              "s1");
    expect_id("{\"litellm_metadata\":{\"session_id\":\"s2\"},\"metadata\":{\"session_id\":\"\"}}",
              "s2");
    expect_id("{\"metadata\":{\"session\\u005fid\":\"a\\u003ab \\ud83d\\ude00\"}}",
              "a:b \xF0\x9F\x98\x80");
}

static void b49_absent_null_and_empty_mean_none(void)
{
    expect_id("{}", "");
    expect_id("{\"metadata\":null}", "");
    expect_id("{\"metadata\":{}}", "");
    expect_id("{\"metadata\":{\"session_id\":null}}", "");
    expect_id("{\"metadata\":{\"session_id\":\"\"},\"litellm_metadata\":{}}", "");
    expect_id("{\"session_id\":\"top\",\"metadata\":{\"Session_id\":\"x\"}}", "");
    expect_id("[]", "");
}

static void the_places_of_front_ends_are_read_where_they_are_listed(void)
{
    static const char *const key[] = {"prompt_cache_key", NULL};
    static const char *const user[] = {"metadata.user_id", NULL};
    static const char *const all[] = {"metadata.user_id", "prompt_cache_key", "metadata.session_id",
                                      NULL};
    static const char text[] = "{\"prompt_cache_key\":\"k\",\"metadata\":{\"session_id\":\"s\","
                               "\"user_id\":\"user_1_account__session_2\"}}";
    expect_id(text, "s");
    expect_id_from(key, text, "k");
    expect_id_from(user, text, "user_1_account__session_2");
    expect_id_from(all, text, "user_1_account__session_2");
    expect_id_from(all, "{\"prompt_cache_key\":\"k\",\"metadata\":{\"user_id\":null}}", "k");
    expect_id_from(key, "{\"prompt_cache_key\":\"\"}", "");
    expect_id_from(key, "{\"metadata\":{\"prompt_cache_key\":\"k\"}}", "");
    expect_id_from(user, "{\"user_id\":\"u\",\"metadata\":{}}", "");
    expect_id_from_refused(key, "{\"prompt_cache_key\":[\"k\"]}", "prompt_cache_key",
                           "prompt_cache_key must be a string");
    expect_id_from_refused(user, "{\"metadata\":{\"user_id\":7}}", "metadata.user_id",
                           "metadata.user_id must be a string");
}

static void only_known_places_may_hold_the_session_id(void)
{
    CU_ASSERT_TRUE(session_id_source_valid("metadata.session_id"));
    CU_ASSERT_TRUE(session_id_source_valid("litellm_metadata.session_id"));
    CU_ASSERT_TRUE(session_id_source_valid("metadata.user_id"));
    CU_ASSERT_TRUE(session_id_source_valid("prompt_cache_key"));
    CU_ASSERT_FALSE(session_id_source_valid("metadata"));
    CU_ASSERT_FALSE(session_id_source_valid("metadata.user"));
    CU_ASSERT_FALSE(session_id_source_valid("user"));
    CU_ASSERT_FALSE(session_id_source_valid(""));
}

static void a_session_id_of_another_kind_is_refused(void)
{
    const char *message = "metadata.session_id must be a string";
    expect_id_refused("{\"metadata\":{\"session_id\":7}}", "metadata.session_id", message);
    expect_id_refused("{\"metadata\":{\"session_id\":true}}", "metadata.session_id", message);
    expect_id_refused("{\"metadata\":{\"session_id\":[\"s\"]}}", "metadata.session_id", message);
    expect_id_refused("{\"litellm_metadata\":{\"session_id\":{}}}", "litellm_metadata.session_id",
                      "litellm_metadata.session_id must be a string");
    expect_id_refused("{\"metadata\":{\"session_id\":\"a\\u0000b\"}}", "metadata.session_id",
                      "metadata.session_id must not hold a NUL");
    static const char *const unread[] = {"\\ud800", "a\\uDFFFb", "\\ufffd", "\xEF\xBF\xBD"};
    for (size_t i = 0; i < COUNT_OF(unread); i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "{\"metadata\":{\"session_id\":\"%s\"}}", unread[i]);
        expect_id_refused(text, "metadata.session_id",
                          "metadata.session_id must not hold U+FFFD, which stands for what could "
                          "not be read");
    }
    expect_id_refused("{\"metadata\":[]}", "metadata", "metadata must be an object");
    expect_id_refused("{\"metadata\":{\"x\":1,\"x\":2}}", "metadata",
                      "duplicate key 'x' in metadata");
}

static void a_session_id_may_have_256_bytes_and_no_more(void)
{
    char id[258], text[400];
    memset(id, 'i', 257);
    id[257] = '\0';
    snprintf(text, sizeof text, "{\"metadata\":{\"session_id\":\"%s\"}}", id);
    expect_id_refused(text, "metadata.session_id",
                      "metadata.session_id is 257 bytes long; it may have 1 to 256");
    id[256] = '\0';
    snprintf(text, sizeof text, "{\"metadata\":{\"session_id\":\"%s\"}}", id);
    expect_id(text, id);
}

static const struct test tests[] = {
    TEST(b01_every_entry_of_the_table_is_a_control_key),
    TEST(b01_near_misses_are_the_clients_own),
    TEST(b24_every_entry_is_cut_at_the_top_level_and_in_metadata),
    TEST(near_misses_stay_and_the_text_is_the_same_memory),
    TEST(b01_escapes_hide_no_key),
    TEST(commas_and_spaces_around_a_cut_are_exact),
    TEST(what_stays_is_byte_for_byte),
    TEST(b24_litellm_metadata_goes_whole),
    TEST(a_metadata_that_becomes_empty_goes),
    TEST(the_session_id_goes_only_when_an_interceptor_takes_part),
    TEST(deeper_levels_and_other_types_are_left_alone),
    TEST(duplicates_in_metadata_are_refused),
    TEST(every_combination_of_positions_reads_as_cjson_would_cut_it),
    TEST(random_metadata_reads_as_cjson_would_cut_it),
    TEST(very_many_cuts_are_exact),
    TEST(b47_b48_the_session_id_comes_from_either_metadata),
    TEST(b49_absent_null_and_empty_mean_none),
    TEST(the_places_of_front_ends_are_read_where_they_are_listed),
    TEST(only_known_places_may_hold_the_session_id),
    TEST(a_session_id_of_another_kind_is_refused),
    TEST(a_session_id_may_have_256_bytes_and_no_more),
};

int main(int argc, char **argv)
{
    return run_tests("control_keys", tests, COUNT_OF(tests), argc, argv);
}
