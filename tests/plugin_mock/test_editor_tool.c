/* The code_interpreter's text editor: what the model is told, the client's bundle, what is written, and how each failure
 * is told. The host plays the sandbox's files. */
#include "interceptor_fixture.h"

#define BUNDLE(text) "{\"application/vnd.sandgate.edit+json\":{" text "}}"
#define FAILED(reason) "{\"state\":\"failed\",\"reason\":\"" reason "\"}"

static int edit(struct fixture *f, const char *arguments)
{
    return call_tool(f, "text_editor_code_execution", arguments, strlen(arguments));
}

static struct fixture with_files(const struct fake_file *files, size_t count)
{
    struct fixture f = fixture_new(NULL);
    f.call->files = files;
    f.call->files_count = count;
    return f;
}

/* One call that goes well: all of what is told. */
static void expect_edit(const struct fake_file *file, const char *arguments, const char *model,
                        const char *bundle)
{
    struct fixture f = with_files(file, file == NULL ? 0 : 1);
    CU_ASSERT_EQUAL(edit(&f, arguments), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), model);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_RESULT), bundle);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    CU_ASSERT_EQUAL(f.call->outputs_count, 2);
    fixture_free(&f);
}

/* One that does not: nothing for the client, and nothing is written. */
static void expect_failure(const struct fake_file *file, const char *arguments, const char *model,
                           const char *status)
{
    struct fixture f = with_files(file, file == NULL ? 0 : 1);
    CU_ASSERT_EQUAL(edit(&f, arguments), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), model);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS), status);
    CU_ASSERT_EQUAL(f.call->outputs_count, 2);
    CU_ASSERT_EQUAL(f.call->puts, 0);
    fixture_free(&f);
}

/* ---- view ---- */

static void a_view_numbers_the_lines_for_the_model_alone(void)
{
    static const struct fake_file file = {"a.txt", "one\n\ttwo \"x\"\n", 0};
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a.txt\"}",
                "     1\tone\n     2\t\ttwo \"x\"\n",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"one\\n\\ttwo "
                       "\\\"x\\\"\\n\",\"num_lines\":2,\"start_line\":1,\"total_lines\":2"));
}

static void a_range_of_lines_is_kept_to(void)
{
    static const struct fake_file file = {"a", "1\n2\n3\n4", 0};
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[2, 3]}",
                "     2\t2\n     3\t3\n",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"2\\n3\\n\","
                       "\"num_lines\":2,\"start_line\":2,\"total_lines\":4"));
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[ 3 ,-1 ]}",
                "     3\t3\n     4\t4",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"3\\n4\","
                       "\"num_lines\":2,\"start_line\":3,\"total_lines\":4"));
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[4,99]}", "     4\t4",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"4\","
                       "\"num_lines\":1,\"start_line\":4,\"total_lines\":4"));
    expect_failure(&file, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[5,9]}",
                   "[invalid call] 'view_range' begins at line 5, and the file has 4",
                   FAILED("invalid"));
}

static void a_range_that_is_none_is_refused_before_anything_is_read(void)
{
    static const char *const wrong[] = {"[0,1]",   "[2,1]",  "[1]",     "[1,2,3]",   "[]",
                                        "\"1,2\"", "[1,-2]", "[1.0,2]", "{\"a\":1}", "7"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments,
                 "{\"command\":\"view\",\"path\":\"a\",\"view_range\":%s}", wrong[i]);
        struct fixture f = fixture_new(NULL);
        CU_ASSERT_EQUAL(edit(&f, arguments), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_MODEL),
                                      "[invalid call] 'view_range' is not the first and the last "
                                      "line, such as [1, 20] or [10, -1] to the end; nothing"));
        CU_ASSERT_EQUAL(f.call->gets, 0);
        fixture_free(&f);
    }
    static const struct fake_file file = {"a", "1", 0};
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":null}", "     1\t1",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"1\","
                       "\"num_lines\":1,\"start_line\":1,\"total_lines\":1"));
}

static void an_empty_file_says_so(void)
{
    static const struct fake_file file = {"a", "", 0};
    expect_edit(&file, "{\"command\":\"view\",\"path\":\"a\"}", "[empty file: a]",
                BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"\","
                       "\"num_lines\":0,\"start_line\":1,\"total_lines\":0"));
}

static void what_is_not_utf8_is_replaced_in_a_view(void)
{
    static const struct fake_file file = {"a", "caf\xE9\n", 0};
    expect_edit(
        &file, "{\"command\":\"view\",\"path\":\"a\"}", "     1\tcaf\xEF\xBF\xBD\n",
        BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":"
               "\"caf\xEF\xBF\xBD\\n\",\"num_lines\":1,\"start_line\":1,\"total_lines\":1"));
}

static void pictures_and_pdfs_are_told_by_their_first_bytes(void)
{
    static const struct fake_file png = {"x.txt", "\x89PNG\r\n\x1A\n\0", 9};
    static const struct fake_file pdf = {"x", "%PDF-1", 0};
    static const struct fake_file webp = {"x", "RIFF....WEBP", 0};
    expect_edit(&png, "{\"command\":\"view\",\"path\":\"x.txt\"}", "[image: x.txt, 9 B, not shown]",
                BUNDLE("\"command\":\"view\",\"file_type\":\"image\",\"content\":\"iVBORw0KGgoA\","
                       "\"num_lines\":null,\"start_line\":null,\"total_lines\":null"));
    expect_edit(&pdf, "{\"command\":\"view\",\"path\":\"x\"}", "[pdf: x, 6 B, not shown]",
                BUNDLE("\"command\":\"view\",\"file_type\":\"pdf\",\"content\":\"JVBERi0x\","
                       "\"num_lines\":null,\"start_line\":null,\"total_lines\":null"));
    expect_edit(&webp, "{\"command\":\"view\",\"path\":\"x\"}", "[image: x, 12 B, not shown]",
                BUNDLE("\"command\":\"view\",\"file_type\":\"image\",\"content\":"
                       "\"UklGRi4uLi5XRUJQ\",\"num_lines\":null,\"start_line\":null,"
                       "\"total_lines\":null"));
}

static void other_binary_files_are_not_shown(void)
{
    static const struct fake_file file = {"x", "a\0b", 3};
    expect_failure(
        &file, "{\"command\":\"view\",\"path\":\"x\"}",
        "[invalid call] the file is binary: look at it with a shell command or with code",
        FAILED("invalid"));
}

static void a_view_longer_than_shown_keeps_head_and_tail(void)
{
    static char lines[20001];
    for (size_t i = 0; i < 20000; i += 10) {
        memcpy(lines + i, "123456789\n", 10);
    }
    struct fake_file file = {"x", lines, 20000};
    struct fixture f = with_files(&file, 1);
    config_set(plugin, f.config, "shown", "1KiB");
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"x\"}"), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_TRUE(strlen(text) <= 1024);
    CU_ASSERT_EQUAL(strncmp(text, "     1\t123456789\n     2\t", 24), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " of 34000 bytes cut ...]\n"));
    CU_ASSERT_STRING_EQUAL(text + strlen(text) - 17, "  2000\t123456789\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_RESULT), "\"total_lines\":2000"));
    fixture_free(&f);
}

static void a_file_over_the_bound_is_refused_and_one_at_it_is_not(void)
{
    char *large = malloc(((size_t)1 << 20) + 1);
    memset(large, 'x', ((size_t)1 << 20) + 1);
    struct fake_file file = {"x", large, ((size_t)1 << 20) + 1};
    expect_failure(
        &file, "{\"command\":\"view\",\"path\":\"x\"}",
        "[limit] the file is larger than 1 MiB: look at parts of it with a shell command "
        "or code",
        FAILED("limit"));
    file.len--;
    struct fixture f = with_files(&file, 1);
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"x\"}"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_RESULT), 1);
    fixture_free(&f);
    free(large);
}

static void a_folder_is_listed_two_levels_deep(void)
{
    static const char *const top[] = {
        "{\"path\": \"/home/user/w/z.txt\", \"size\": 1, \"type\": \"file\"}",
        "{\"path\": \"/home/user/w/sub\", \"size\": 0, \"type\": \"directory\"}",
        "{\"path\": \"/home/user/w/.git\", \"size\": 0, \"type\": \"directory\"}",
        "{\"path\": \"/home/user/w/node_modules\", \"size\": 0, \"type\": \"directory\"}",
        "{\"path\": \"/home/user/w/a\\nb\", \"size\": 0, \"type\": \"file\"}",
        "not JSON",
        NULL};
    static const char *const sub[] = {
        "{\"path\": \"/home/user/w/sub/deep\", \"size\": 0, \"type\": \"directory\"}", NULL};
    static const struct fake_folder folders[] = {{"w", top}, {"w/sub", sub}};
    struct fixture f = fixture_new(NULL);
    f.call->folders = folders;
    f.call->folders_count = COUNT_OF(folders);
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"w\"}"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL),
                           "[folder: w, two levels deep, without hidden files]\n"
                           "a?b\nsub/\nsub/deep/\nz.txt\n");
    CU_ASSERT_STRING_EQUAL(
        call_text(f.call, SG_OUT_RESULT),
        BUNDLE("\"command\":\"view\",\"file_type\":\"text\",\"content\":\"a?b\\nsub/\\nsub/deep/\\n"
               "z.txt\\n\",\"num_lines\":4,\"start_line\":1,\"total_lines\":4"));
    CU_ASSERT_EQUAL(f.call->lists, 2);
    fixture_free(&f);
}

static void a_folder_without_end_is_cut(void)
{
    static const char *entries[5001];
    for (size_t i = 0; i < 5000; i++) {
        entries[i] = "{\"path\": \"d\", \"type\": \"directory\"}";
    }
    static const struct fake_folder folders[] = {{"w", entries}};
    struct fixture f = fixture_new(NULL);
    f.call->folders = folders;
    f.call->folders_count = 1;
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"w\"}"), 0);
    CU_ASSERT_EQUAL(f.call->lists, 51); /* the folder, and 50 of those in it */
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_RESULT),
                                  "[... more entries left out ...]\\n\",\"num_lines\":501"));
    fixture_free(&f);
}

static void a_folder_of_too_many_is_told_as_that(void)
{
    static const char *const entries[] = {"{\"path\": \"w/a\", \"type\": \"directory\"}", NULL};
    static const struct fake_folder folders[] = {{"w", entries}};
    struct fixture f = fixture_new(NULL);
    f.call->folders = folders;
    f.call->folders_count = 1;
    f.call->list_result = SG_E_LIMIT;
    f.call->file_message = "'w' has more than 10000 entries";
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"w\"}"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL),
                           "[limit] 'w' has more than 10000 entries");
    CU_ASSERT_EQUAL(f.call->lists, 1);
    fixture_free(&f);
}

/* ---- create ---- */

static void a_file_is_created_or_replaced(void)
{
    static const struct fake_file old = {"a.py", "old", 0};
    expect_edit(NULL, "{\"command\":\"create\",\"path\":\"a.py\",\"file_text\":\"\"}",
                "[created: a.py, 0 B]", BUNDLE("\"command\":\"create\",\"is_file_update\":false"));
    struct fixture f = with_files(&old, 1);
    CU_ASSERT_EQUAL(
        edit(&f, "{\"command\":\"create\",\"path\":\"a.py\",\"file_text\":\"x\\u00e4\\u0000\\n\"}"),
        0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), "[replaced: a.py, 5 B]");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_RESULT),
                           BUNDLE("\"command\":\"create\",\"is_file_update\":true"));
    CU_ASSERT_STRING_EQUAL(f.call->put_path, "a.py");
    CU_ASSERT_EQUAL(f.call->put_len, 5);
    CU_ASSERT_EQUAL(memcmp(f.call->put_data, "x\xC3\xA4\0\n", 5), 0);
    fixture_free(&f);
}

static void a_file_too_large_to_be_read_is_replaced_all_the_same(void)
{
    struct fixture f = fixture_new(NULL);
    f.call->get_result = SG_E_LIMIT;
    f.call->file_message = "the file is larger than 10 MiB";
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"x\"}"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_RESULT),
                           BUNDLE("\"command\":\"create\",\"is_file_update\":true"));
    CU_ASSERT_STRING_EQUAL(f.call->put_data, "x");
    fixture_free(&f);
}

static void a_folder_is_not_written_over(void)
{
    struct fixture f = fixture_new(NULL);
    f.call->get_result = SG_E_INVALID;
    f.call->file_message = "'a' is a folder";
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"x\"}"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), "[invalid call] 'a' is a folder");
    CU_ASSERT_EQUAL(f.call->puts, 0);
    fixture_free(&f);
}

/* ---- str_replace ---- */

static void expect_change(const char *content, const char *arguments, const char *changed,
                          const char *diff, const char *bundle)
{
    struct fake_file file = {"a", content, 0};
    char model[512];
    struct fixture f = with_files(&file, 1);
    CU_ASSERT_EQUAL(edit(&f, arguments), 0);
    CU_ASSERT_STRING_EQUAL(f.call->put_data, changed);
    snprintf(model, sizeof model, "[changed: a]\n%s", diff);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), model);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_RESULT), bundle);
    fixture_free(&f);
}

#define CHANGE(old, new) \
    "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"" old "\",\"new_str\":\"" new "\"}"
#define HUNK(a, b, c, d, lines)                                                 \
    BUNDLE("\"command\":\"str_replace\",\"old_start\":" #a ",\"old_lines\":" #b \
           ",\"new_start\":" #c ",\"new_lines\":" #d ",\"lines\":[" lines "]")

static void one_passage_is_replaced_and_the_lines_that_changed_are_told(void)
{
    expect_change("x\nprint(13)\ny\n", CHANGE("13", "14"), "x\nprint(14)\ny\n",
                  "@@ -2,1 +2,1 @@\n-print(13)\n+print(14)\n",
                  HUNK(2, 1, 2, 1, "\"-print(13)\",\"+print(14)\""));
    /* Lines of the passage that stay are no change. */
    expect_change("a\nb\nc\nd\n", CHANGE("a\\nb\\nc", "a\\nB1\\nB2\\nc"), "a\nB1\nB2\nc\nd\n",
                  "@@ -2,1 +2,2 @@\n-b\n+B1\n+B2\n", HUNK(2, 1, 2, 2, "\"-b\",\"+B1\",\"+B2\""));
    /* Without lines of its own a part stands behind the line before. */
    expect_change("a\nb\nc\n", CHANGE("b\\n", ""), "a\nc\n", "@@ -2,1 +1,0 @@\n-b\n",
                  HUNK(2, 1, 1, 0, "\"-b\""));
    expect_change("a\nc\n", CHANGE("a\\n", "a\\nb\\n"), "a\nb\nc\n", "@@ -1,0 +2,1 @@\n+b\n",
                  HUNK(1, 0, 2, 1, "\"+b\""));
    expect_change("x", CHANGE("x", "y\\n"), "y\n",
                  "@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+y\n",
                  HUNK(1, 1, 1, 1, "\"-x\",\"\\\\ No newline at end of file\",\"+y\""));
    expect_change("aaa\naaa\n", CHANGE("a\\na", "aa"), "aaaaaa\n",
                  "@@ -1,2 +1,1 @@\n-aaa\n-aaa\n+aaaaaa\n",
                  HUNK(1, 2, 1, 1, "\"-aaa\",\"-aaa\",\"+aaaaaa\""));
}

static void without_new_text_the_old_is_taken_out(void)
{
    expect_change("ab", "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"b\"}", "a",
                  "@@ -1,1 +1,1 @@\n-ab\n\\ No newline at end of file\n+a\n"
                  "\\ No newline at end of file\n",
                  HUNK(1, 1, 1, 1,
                       "\"-ab\",\"\\\\ No newline at end of file\",\"+a\",\"\\\\ No newline at end "
                       "of file\""));
}

static void a_passage_that_is_not_there_once_changes_nothing(void)
{
    static const struct fake_file file = {"a", "aaa b", 0};
    expect_failure(&file, CHANGE("c", "d"),
                   "[invalid call] 'old_str' is not in the file: it must stand there exactly so, "
                   "with the same spaces and line breaks; nothing was changed",
                   FAILED("invalid"));
    expect_failure(
        &file, CHANGE("aa", "d"),
        "[invalid call] 'old_str' is in the file more than once: take in lines around it "
        "so that it is there once; nothing was changed",
        FAILED("invalid"));
    expect_failure(&file, CHANGE("", "d"), "[invalid call] 'old_str' is empty", FAILED("invalid"));
    expect_failure(&file, CHANGE("b", "b"), "[invalid call] 'old_str' and 'new_str' are the same",
                   FAILED("invalid"));
}

static void bytes_that_are_no_text_stay_as_they_are(void)
{
    static const struct fake_file file = {"a", "\xFF\0x\xC3", 4};
    struct fixture f = with_files(&file, 1);
    CU_ASSERT_EQUAL(edit(&f, CHANGE("x", "yz")), 0);
    CU_ASSERT_EQUAL(f.call->put_len, 5);
    CU_ASSERT_EQUAL(memcmp(f.call->put_data, "\xFF\0yz\xC3", 5), 0);
    fixture_free(&f);
}

/* ---- failures ---- */

static void a_missing_file_has_its_reason(void)
{
    expect_failure(NULL, "{\"command\":\"view\",\"path\":\"b\"}",
                   "[not found] there is no file 'b'", FAILED("not_found"));
    expect_failure(NULL, CHANGE("x", "y"), "[not found] there is no file 'a'", FAILED("not_found"));
}

static void each_failure_of_the_sandbox_has_its_label_and_reason(void)
{
    static const struct {
        int code;
        const char *label, *reason;
    } cases[] = {
        {SG_E_UNAVAILABLE, "[sandbox unavailable]", "unavailable"},
        {SG_E_TIMEOUT, "[timed out]", "timeout"},
        {SG_E_LIMIT, "[limit]", "limit"},
        {SG_E_GONE, "[sandbox failed]", "unavailable"},
        {SG_E_INTERNAL, "[sandbox unavailable]", "unavailable"},
        {SG_E_DENIED, "[sandbox unavailable]", "unavailable"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char model[128], status[64];
        snprintf(model, sizeof model, "%s why", cases[i].label);
        snprintf(status, sizeof status, FAILED("%s"), cases[i].reason);
        struct fixture f = fixture_new(NULL);
        f.call->get_result = f.call->put_result = cases[i].code;
        f.call->file_message = "why";
        CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"b\"}"), 0);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), model);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS), status);
        CU_ASSERT_EQUAL(f.call->lists, 0);
        f.call->get_result = SG_E_NOT_FOUND;
        CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"create\",\"path\":\"b\",\"file_text\":\"\"}"), 0);
        CU_ASSERT_STRING_EQUAL(f.call->outputs[3].data, model);
        CU_ASSERT_STRING_EQUAL(f.call->outputs[2].data, status);
        fixture_free(&f);
    }
}

static void a_cancelled_call_is_handed_back_and_tells_nothing(void)
{
    struct fixture f = fixture_new(NULL);
    f.call->get_result = f.call->put_result = SG_E_CANCELLED;
    f.call->file_message = "gone";
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"b\"}"), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(edit(&f, CHANGE("x", "y")), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"create\",\"path\":\"b\",\"file_text\":\"\"}"),
                    SG_E_CANCELLED);
    f.call->get_result = SG_E_NOT_FOUND;
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"create\",\"path\":\"b\",\"file_text\":\"\"}"),
                    SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->outputs_count, 0);
    fixture_free(&f);
}

static void that_earlier_files_are_gone_stands_first(void)
{
    struct fixture f = fixture_new(NULL);
    f.call->file_note = "{\"state\":\"lost\",\"note\":\"earlier files are gone\"}";
    CU_ASSERT_EQUAL(edit(&f, "{\"command\":\"view\",\"path\":\"b\"}"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL),
                           "[earlier files are gone]\n[not found] there is no file 'b'");
    fixture_free(&f);
}

static void wrong_arguments_touch_no_file(void)
{
    static const char *const wrong[][2] = {
        {"{}", "'command' is missing"},
        {"{\"command\":\"view\"}", "'path' is missing"},
        {"{\"command\":\"view\",\"path\":7}", "'path' is not a string"},
        {"{\"command\":\"view\",\"path\":\"\"}",
         "'path' is not a path of 1 to 4096 bytes without NUL"},
        {"{\"command\":\"view\",\"path\":\"a\\u0000b\"}",
         "'path' is not a path of 1 to 4096 bytes without NUL"},
        {"{\"command\":\"insert\",\"path\":\"a\"}",
         "'command' is not 'view', 'create' or 'str_replace'"},
        {"{\"command\":\"create\",\"path\":\"a\"}", "'file_text' is missing"},
        {"{\"command\":\"create\",\"path\":\"a\",\"file_text\":null}", "'file_text' is missing"},
        {"{\"command\":\"str_replace\",\"path\":\"a\",\"new_str\":\"x\"}", "'old_str' is missing"},
        {"{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":[]}",
         "'old_str' is not a string"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "[invalid call] %s; nothing was run. Expected a JSON ",
                 wrong[i][1]);
        struct fixture f = fixture_new(NULL);
        CU_ASSERT_EQUAL(edit(&f, wrong[i][0]), 0);
        CU_ASSERT_EQUAL(strncmp(call_text(f.call, SG_OUT_MODEL), expected, strlen(expected)), 0);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                               "{\"state\":\"invalid\",\"reason\":\"invalid\"}");
        CU_ASSERT_EQUAL(f.call->gets + f.call->puts + f.call->lists, 0);
        fixture_free(&f);
    }
}

static const struct test tests[] = {
    TEST(a_view_numbers_the_lines_for_the_model_alone),
    TEST(a_range_of_lines_is_kept_to),
    TEST(a_range_that_is_none_is_refused_before_anything_is_read),
    TEST(an_empty_file_says_so),
    TEST(what_is_not_utf8_is_replaced_in_a_view),
    TEST(pictures_and_pdfs_are_told_by_their_first_bytes),
    TEST(other_binary_files_are_not_shown),
    TEST(a_view_longer_than_shown_keeps_head_and_tail),
    TEST(a_file_over_the_bound_is_refused_and_one_at_it_is_not),
    TEST(a_folder_is_listed_two_levels_deep),
    TEST(a_folder_of_too_many_is_told_as_that),
    TEST(a_folder_without_end_is_cut),
    TEST(a_file_is_created_or_replaced),
    TEST(a_file_too_large_to_be_read_is_replaced_all_the_same),
    TEST(a_folder_is_not_written_over),
    TEST(one_passage_is_replaced_and_the_lines_that_changed_are_told),
    TEST(without_new_text_the_old_is_taken_out),
    TEST(a_passage_that_is_not_there_once_changes_nothing),
    TEST(bytes_that_are_no_text_stay_as_they_are),
    TEST(a_missing_file_has_its_reason),
    TEST(each_failure_of_the_sandbox_has_its_label_and_reason),
    TEST(a_cancelled_call_is_handed_back_and_tells_nothing),
    TEST(that_earlier_files_are_gone_stands_first),
    TEST(wrong_arguments_touch_no_file),
};

int main(int argc, char **argv)
{
    plugin = host_load("code_interpreter")->plugins[0];
    return run_tests("editor_tool", tests, COUNT_OF(tests), argc, argv);
}
