/* core/session/kept: the state of one process as text for the next. What was written is read again, whatever bytes names,
 * sessions and handles have; what was cut, changed or is of another form is refused as a whole, with a reason; and nothing
 * that stands in the file is larger than what the gateway itself would make. */
#include "base/check.h"
#include "cunit_main.h"
#include "session/kept.h"

#include <stdio.h>

static const uint8_t secret[KEPT_SECRET_BYTES] = "0123456789abcdef0123456789abcde";

static struct kept_container one_container(void)
{
    return (struct kept_container){
        .identity = STR("team-a\x1f"
                        "ann"),
        .session_id = STR("\xff\"\\ session"),
        .sandbox = STR("box"),
        .handle = STR("a handle \xc3("),
        .id = STR("cntr_sg0123456789abcdef0123456789abcdef"),
        .label = STR("sg-0123456789abcdef0123456789abcdef"),
        .account = "the account's digest, 32 bytes.",
        .created_unix_ms = 1700000000000,
        .used_unix_ms = 1700000001000,
        .expires_unix_ms = 1700000002000,
        .life_unix_ms = 1700000003000,
        .life_latest_unix_ms = 1700000004000,
        .park_ms = 300000,
        .is_used = true,
        .loss = true,
    };
}

static void write_state(const struct kept_container *container, const uint8_t *with,
                        struct buf *out)
{
    struct kept_notice notice = {
        .identity = STR("team-b"), .key = "a key of 32 bytes, as SHA-256 is", .since_unix_ms = 17};
    struct kept_container copy = *container;
    struct kept kept = {
        .containers = &copy, .containers_count = 1, .notices = &notice, .notices_count = 1};
    CU_ASSERT_TRUE_FATAL(kept_write(&kept, with, out));
}

static int read_state(struct str text, struct kept *ret, uint8_t *ret_secret, bool *ret_has,
                      struct sg_error *err)
{
    *ret = (struct kept){.arena = arena_new(0)};
    return kept_read(text, ret, ret_secret, ret_has, err);
}

static void what_was_written_is_read_again(void)
{
    BUF_CLEANUP struct buf text = {0};
    struct kept_container container = one_container();
    struct kept kept;
    uint8_t found[KEPT_SECRET_BYTES];
    bool has_secret = false;
    struct sg_error err = {0};
    write_state(&container, secret, &text);
    CU_ASSERT_EQUAL_FATAL(read_state(buf_str(&text), &kept, found, &has_secret, &err), 0);
    CU_ASSERT_TRUE(has_secret);
    CU_ASSERT_EQUAL(memcmp(found, secret, sizeof secret), 0);
    CU_ASSERT_EQUAL_FATAL(kept.containers_count, 1);
    const struct kept_container *read = &kept.containers[0];
    CU_ASSERT_TRUE(str_eq(read->identity, container.identity));
    CU_ASSERT_TRUE(str_eq(read->session_id, container.session_id));
    CU_ASSERT_TRUE(str_eq(read->sandbox, container.sandbox));
    CU_ASSERT_TRUE(str_eq(read->handle, container.handle));
    CU_ASSERT_TRUE(str_eq(read->id, container.id));
    CU_ASSERT_TRUE(str_eq(read->label, container.label));
    CU_ASSERT_EQUAL(memcmp(read->account, container.account, sizeof read->account), 0);
    CU_ASSERT_EQUAL(read->created_unix_ms, 1700000000000);
    CU_ASSERT_EQUAL(read->used_unix_ms, 1700000001000);
    CU_ASSERT_EQUAL(read->expires_unix_ms, 1700000002000);
    CU_ASSERT_EQUAL(read->life_unix_ms, 1700000003000);
    CU_ASSERT_EQUAL(read->life_latest_unix_ms, 1700000004000);
    CU_ASSERT_EQUAL(read->park_ms, 300000);
    CU_ASSERT_TRUE(read->is_used && read->loss);
    CU_ASSERT_EQUAL_FATAL(kept.notices_count, 1);
    CU_ASSERT_TRUE(str_is(kept.notices[0].identity, "team-b"));
    CU_ASSERT_EQUAL(memcmp(kept.notices[0].key, "a key of 32 bytes, as SHA-256 is", 32), 0);
    CU_ASSERT_EQUAL(kept.notices[0].since_unix_ms, 17);
    arena_free(kept.arena);
}

static void without_a_secret_none_is_read(void)
{
    BUF_CLEANUP struct buf text = {0};
    struct kept_container container = one_container();
    struct kept kept;
    uint8_t found[KEPT_SECRET_BYTES];
    bool has_secret = true;
    struct sg_error err = {0};
    write_state(&container, NULL, &text);
    CU_ASSERT_EQUAL(read_state(buf_str(&text), &kept, found, &has_secret, &err), 0);
    CU_ASSERT_FALSE(has_secret);
    arena_free(kept.arena);
}

static void a_handle_does_not_stand_in_the_text_as_it_is(void)
{
    BUF_CLEANUP struct buf text = {0};
    struct kept_container container = one_container();
    container.handle = STR("plain-handle");
    write_state(&container, secret, &text);
    CU_ASSERT_PTR_NULL(strstr(text.data, "plain-handle"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.data, "706c61696e2d68616e646c65"));
}

static void refused(struct str text, const char *why)
{
    struct kept kept;
    uint8_t found[KEPT_SECRET_BYTES];
    bool has_secret = false;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(read_state(text, &kept, found, &has_secret, &err), SG_E_INVALID);
    if (strstr(err.message, why) == NULL) {
        fprintf(stderr, "\n'%s' is not in: %s\n", why, err.message);
        CU_FAIL("another reason");
    }
    arena_free(kept.arena);
}

static void a_text_of_which_any_byte_was_changed_or_cut_is_refused(void)
{
    BUF_CLEANUP struct buf text = {0};
    struct kept_container container = one_container();
    struct kept kept;
    uint8_t found[KEPT_SECRET_BYTES];
    bool has_secret;
    write_state(&container, secret, &text);
    for (size_t i = 0; i + 1 < text.len; i++) { /* behind the last byte stands a line break only */
        struct sg_error err = {0};
        char was = text.data[i];
        text.data[i] = was == '7' ? '8' : '7';
        int code = read_state(buf_str(&text), &kept, found, &has_secret, &err);
        CU_ASSERT_EQUAL(code, SG_E_INVALID);
        CU_ASSERT_NOT_EQUAL(err.message[0], '\0');
        arena_free(kept.arena);
        text.data[i] = was;
        CU_ASSERT_NOT_EQUAL(read_state((struct str){text.data, i}, &kept, found, &has_secret, &err),
                            0);
        arena_free(kept.arena);
    }
}

static void other_forms_are_refused_with_a_reason(void)
{
    refused(STR(""), "byte");
    refused(STR("[]"), "'sandgate_state' is missing or wrong");
    refused(STR("{}"), "'sandgate_state' is missing or wrong");
    refused(STR("{\"sandgate_state\":\"1\"}"), "'sandgate_state' is missing or wrong");
    refused(STR("{\"sandgate_state\":2}"), "it is of version 2, and this gateway reads 1");
    refused(STR("{\"sandgate_state\":1}"), "'sha256' is missing or wrong");
    refused(STR("{\"sandgate_state\":1,\"sandgate_state\":1}"), "duplicate key");
}

/* With a digest that fits: such a file can only be made by whoever may write it, and yet nothing in it is believed. */
static void refused_member(struct kept_container container, const char *member)
{
    BUF_CLEANUP struct buf text = {0};
    char why[96];
    write_state(&container, secret, &text);
    (void)snprintf(why, sizeof why, "'%s' of containers is not as it was written", member);
    refused(buf_str(&text), why);
}

static void values_that_the_gateway_never_makes_are_refused(void)
{
    static char many[LIMIT_HANDLE_BYTES + 1];
    memset(many, 'a', sizeof many);
    struct kept_container container = one_container();
#define REFUSED(member, json, ...)               \
    do {                                         \
        struct kept_container wrong = container; \
        wrong.member = __VA_ARGS__;              \
        refused_member(wrong, json);             \
    } while (0)
    REFUSED(identity, "identity", STR(""));
    REFUSED(identity, "identity", STR("a\0b"));
    REFUSED(identity, "identity", (struct str){many, 1025});
    REFUSED(session_id, "session", (struct str){many, LIMIT_SESSION_ID_BYTES + 1});
    REFUSED(session_id, "session", STR("a\0b"));
    REFUSED(sandbox, "sandbox", STR(""));
    REFUSED(sandbox, "sandbox", (struct str){many, 65});
    REFUSED(handle, "handle", STR(""));
    REFUSED(handle, "handle", STR("a\0b"));
    REFUSED(handle, "handle", (struct str){many, LIMIT_HANDLE_BYTES + 1});
    REFUSED(id, "id", STR("cntr_sg"));
    REFUSED(id, "id", STR("cntr_of_another"));
    REFUSED(id, "id", STR("cntr_sg0123 "));
    REFUSED(id, "id", (struct str){many, CONTAINER_ID_BYTES});
    REFUSED(label, "label", STR(""));
    REFUSED(label, "label", STR("a b"));
    REFUSED(label, "label", (struct str){many, 200});
    REFUSED(park_ms, "park_ms", LIMIT_KEEP_MS + 1);
    REFUSED(used_unix_ms, "used", INT64_MAX);
#undef REFUSED
}

static void values_at_their_bounds_are_read(void)
{
    static char many[LIMIT_HANDLE_BYTES];
    BUF_CLEANUP struct buf text = {0};
    struct kept_container container = one_container();
    struct kept kept;
    uint8_t found[KEPT_SECRET_BYTES];
    bool has_secret;
    struct sg_error err = {0};
    memset(many, 'a', sizeof many);
    container.identity = (struct str){many, 1024};
    container.session_id = (struct str){many, LIMIT_SESSION_ID_BYTES};
    container.handle = (struct str){many, LIMIT_HANDLE_BYTES};
    container.sandbox = (struct str){many, 64};
    container.park_ms = LIMIT_KEEP_MS;
    write_state(&container, secret, &text);
    CU_ASSERT_EQUAL(read_state(buf_str(&text), &kept, found, &has_secret, &err), 0);
    CU_ASSERT_EQUAL(kept.containers[0].handle.len, LIMIT_HANDLE_BYTES);
    arena_free(kept.arena);
}

static const struct test tests[] = {
    TEST(what_was_written_is_read_again),
    TEST(without_a_secret_none_is_read),
    TEST(a_handle_does_not_stand_in_the_text_as_it_is),
    TEST(a_text_of_which_any_byte_was_changed_or_cut_is_refused),
    TEST(other_forms_are_refused_with_a_reason),
    TEST(values_that_the_gateway_never_makes_are_refused),
    TEST(values_at_their_bounds_are_read),
};

int main(int argc, char **argv)
{
    return run_tests("kept", tests, COUNT_OF(tests), argc, argv);
}
