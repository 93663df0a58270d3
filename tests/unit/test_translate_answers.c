/* Answers of servers of another API, as the client's API has them. What is heard of each habit of servers stands in
 * data/translate/answers-API.txt: the events (>) or the whole answer (=), and what clients of each other API get. Each is fed
 * in pieces of 1, 2, 3 and 7 bytes and whole, and must give the same bytes. */
#include "answer_summary.h"
#include "text_file.h"
#include "translate_bench.h"

#include <CUnit/CUnit.h>
#include <dirent.h>

static const size_t pieces[] = {0, 1, 2, 3, 7};

/* In all pieces; the same each time. */
static int answer_in_pieces(struct translate_pair pair, bool is_stream, struct str bytes,
                            struct buf *out, struct sg_error *err)
{
    int code = translate_answer(pair, is_stream, bytes, pieces[0], out, err);
    for (size_t i = 1; i < COUNT_OF(pieces); i++) {
        BUF_CLEANUP struct buf again = {0};
        struct sg_error other = {0};
        CU_ASSERT_EQUAL(translate_answer(pair, is_stream, bytes, pieces[i], &again, &other), code);
        CU_ASSERT_STRING_EQUAL(other.message, err->message);
        CU_ASSERT_TRUE(str_eq(buf_str(&again), buf_str(out)));
    }
    return code;
}

/* ---- habits ---- */

struct habit {
    struct str name;
    struct buf bytes;
    bool is_whole;
    size_t line;
};

/* "API: what a client of it gets", or "API! status message". */
static void habit_check(const struct habit *habit, const char *api, struct str line)
{
    static const char *const clients[] = {"chat", "messages", "responses"};
    BUF_CLEANUP struct buf out = {0}, got = {0};
    struct sg_error err = {0};
    struct translate_pair pair = {NULL, api};
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        pair.from = str_starts(line, str_of(clients[i])) ? clients[i] : pair.from;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(pair.from);
    size_t head = strlen(pair.from);
    int code = answer_in_pieces(pair, !habit->is_whole, buf_str(&habit->bytes), &out, &err);
    (void)buf_printf(&got, "%s%s", pair.from, code == SG_OK ? ": " : "! ");
    if (code == SG_OK) {
        answer_summary(pair.from, !habit->is_whole, buf_str(&out), &got);
    } else {
        (void)buf_printf(&got, "%d %s", error_status(&err), err.message);
    }
    CU_ASSERT_TRUE(line.len > head);
    if (!str_eq(buf_str(&got), line)) {
        fprintf(stderr, "answers-%s.txt:%zu: %.*s: got\n%s\n", api, habit->line,
                (int)habit->name.len, habit->name.data, got.data);
        CU_FAIL("a habit is not understood");
    }
}

static void event_put(struct habit *habit, struct str data)
{
    (void)buf_puts(&habit->bytes, "data: ");
    (void)buf_append_str(&habit->bytes, data);
    (void)buf_puts(&habit->bytes, "\n\n");
}

static void habits_check(const char *api, size_t count_min)
{
    BUF_CLEANUP struct buf file = {0}, path = {0};
    (void)buf_printf(&path, TEST_DATA "/translate/answers-%s.txt", api);
    text_file_read(path.data, &file);
    struct str rest = buf_str(&file), line;
    struct habit habit = {0};
    size_t count = 0;
    for (habit.line = 1; text_line(&rest, &line); habit.line++) {
        struct str inside = {line.data + 2, line.len < 2 ? 0 : line.len - 2};
        if (str_starts(line, STR("# "))) {
            habit.name = inside;
            habit.is_whole = false;
            buf_reset(&habit.bytes);
        } else if (str_starts(line, STR("> "))) {
            event_put(&habit, inside);
        } else if (str_starts(line, STR("= "))) {
            habit.is_whole = true;
            (void)buf_append_str(&habit.bytes, inside);
        } else if (line.len > 0) {
            habit_check(&habit, api, line);
            count++;
        }
    }
    buf_clear(&habit.bytes);
    CU_ASSERT_TRUE(count >= count_min);
}

static void servers_of_chat_are_understood_whatever_their_habits(void)
{
    habits_check("chat", 88);
}

static void servers_of_messages_are_understood_whatever_their_habits(void)
{
    habits_check("messages", 44);
}

/* ---- the examples ---- */

/* All texts of a whole answer, in a row. */
static void texts_of(const char *api, struct str json, struct buf *out)
{
    cJSON *answer = cJSON_ParseWithLength(json.data, json.len);
    const cJSON *block;
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
    if (strcmp(api, "chat") == 0) {
        const cJSON *choice = cJSON_GetArrayItem(summary_at(answer, "choices"), 0);
        (void)buf_puts(out, summary_text(summary_at(choice, "message"), "content"));
    } else if (strcmp(api, "messages") == 0) {
        cJSON_ArrayForEach(block, summary_at(answer, "content"))
        {
            (void)buf_puts(out, summary_text(block, "text"));
        }
    } else {
        cJSON_ArrayForEach(block, summary_at(answer, "output"))
        {
            const cJSON *part = cJSON_GetArrayItem(summary_at(block, "content"), 0);
            (void)buf_puts(out, summary_text(part, "text"));
        }
    }
    cJSON_Delete(answer);
}

static void example_check(struct translate_pair pair, const char *name, struct str bytes)
{
    bool is_stream = strstr(name, ".sse") != NULL, is_error = strstr(name, "error.sse") != NULL;
    BUF_CLEANUP struct buf out = {0}, summary = {0}, given = {0}, got = {0};
    struct sg_error err = {0};
    int code = answer_in_pieces(pair, is_stream, bytes, &out, &err);
    if (code != (is_error ? SG_E_UNAVAILABLE : SG_OK)) {
        fprintf(stderr, "%s for %s: %s\n", name, pair.from, err.message);
        CU_FAIL("an example is not understood");
        return;
    }
    if (is_stream && !is_error) {
        answer_summary(pair.from, true, buf_str(&out), &summary);
        CU_ASSERT_PTR_NOT_NULL(strstr(summary.data, ") end("));
        CU_ASSERT_PTR_NULL(strstr(summary.data, "end()"));
    } else if (!is_error) {
        texts_of(pair.to, bytes, &given);
        texts_of(pair.from, buf_str(&out), &got);
        CU_ASSERT_TRUE(str_eq(buf_str(&given), buf_str(&got)));
    }
}

static size_t examples_check(const char *folder, const char *api)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        bool is_answer = strstr(entry->d_name, "-response-") || strstr(entry->d_name, "-stream-");
        if (!is_answer || strncmp(entry->d_name, api, strlen(api)) != 0) {
            continue;
        }
        BUF_CLEANUP struct buf path = {0}, file = {0};
        (void)buf_printf(&path, "%s/%s", folder, entry->d_name);
        text_file_read(path.data, &file);
        for (size_t i = 0; i < COUNT_OF(translate_pairs); i++) {
            if (strcmp(translate_pairs[i].to, api) == 0) {
                example_check(translate_pairs[i], entry->d_name, buf_str(&file));
                count++;
            }
        }
    }
    (void)closedir(listing);
    return count;
}

static void all_examples_of_chat_are_understood(void)
{
    CU_ASSERT_EQUAL(examples_check(TEST_DATA "/chat", "chat"), 2 * 8);
}

static void all_examples_of_messages_are_understood(void)
{
    CU_ASSERT_EQUAL(examples_check(TEST_DATA "/wire", "messages"), 2 * 19);
}

static const struct test tests[] = {
    TEST(servers_of_chat_are_understood_whatever_their_habits),
    TEST(servers_of_messages_are_understood_whatever_their_habits),
    TEST(all_examples_of_chat_are_understood),
    TEST(all_examples_of_messages_are_understood),
};

int main(int argc, char **argv)
{
    return run_tests("translate_answers", tests, COUNT_OF(tests), argc, argv);
}
