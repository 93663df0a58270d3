/* The interpreter's answer, read by the plugin e2b: E2B's own recorded answers in every chunking against what Python's JSON
 * reader makes of them (tests/data/e2b/derive.py); then its limits, its failures and its ends. */
#include "answer.h"

#include <dirent.h>

#define OUT_MAX (10 * MIB)

/* ---- recordings ---- */

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    char *text = malloc(MIB);
    *ret_len = fread(text, 1, MIB - 1, file);
    text[*ret_len] = '\0';
    fclose(file);
    return text;
}

/* One part of expected.txt; `len` bytes with the heading. */
static void check_recording(const char *expected, size_t len, size_t piece, uint32_t seed)
{
    char name[128], path[512];
    CU_ASSERT_EQUAL(sscanf(expected, "= %127s", name), 1);
    snprintf(path, sizeof path, "%s/recordings/%s", E2B_DATA, name);
    size_t data_len;
    char *data = read_file(path, &data_len);
    struct answer a = {.piece = piece, .seed = seed};
    answer_begin(&a);
    CU_ASSERT_EQUAL(give(&a, data, data_len), 0);
    CU_ASSERT_EQUAL(answer_end(&a), 0);
    char *shown = show(&a, name);
    bool is_same = strlen(shown) == len && memcmp(shown, expected, len) == 0;
    CU_ASSERT(is_same);
    if (!is_same) {
        fprintf(stderr, "piece %zu: got\n%sbut expected\n%.*s\n", piece, shown, (int)len, expected);
    }
    free(shown);
    answer_free(&a);
    free(data);
}

static void check_recordings(size_t piece, uint32_t seed)
{
    size_t len, count = 0;
    char *expected = read_file(E2B_DATA "/expected.txt", &len);
    for (const char *at = expected; *at != '\0'; count++) {
        const char *next = strstr(at, "\n= ");
        size_t part = next == NULL ? strlen(at) : (size_t)(next - at) + 1;
        check_recording(at, part, piece, seed + (uint32_t)count);
        at += part;
    }
    CU_ASSERT_EQUAL(count, 152);
    free(expected);
}

static void every_recording_gives_its_events_when_it_comes_whole(void)
{
    check_recordings(0, 0);
}

static void every_recording_gives_its_events_byte_by_byte(void)
{
    check_recordings(1, 0);
}

static void every_recording_gives_its_events_in_any_chunks(void)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        check_recordings(SIZE_MAX, seed * 7919);
    }
}

static void every_recording_is_among_those_expected(void)
{
    DIR *folder = opendir(E2B_DATA "/recordings");
    size_t len, count = 0;
    char *expected = read_file(E2B_DATA "/expected.txt", &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char heading[300];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "index.json") == 0) {
            continue;
        }
        snprintf(heading, sizeof heading, "= %s", entry->d_name);
        CU_ASSERT_PTR_NOT_NULL(strstr(expected, heading));
        count++;
    }
    CU_ASSERT_EQUAL(count, 152);
    closedir(folder);
    free(expected);
}

/* ---- limits ---- */

static void expect_output_ended(struct answer *a, int result)
{
    CU_ASSERT_EQUAL(result, SG_E_LIMIT);
    CU_ASSERT_EQUAL(a->stream.code, SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(call_text(a->call, SG_OUT_STATUS), "{\"state\":\"output\"}");
    CU_ASSERT_EQUAL(a->call->outputs[a->call->outputs_count - 1].kind, SG_OUT_STATUS);
    CU_ASSERT_STRING_EQUAL(a->call->error.message,
                           "the code put out more than 10MiB and was interrupted; variables are "
                           "kept: print less, or write to a file");
    size_t count = a->call->outputs_count; /* and nothing more is taken */
    CU_ASSERT_EQUAL(give(a, "{\"type\":\"stdout\",\"text\":\"z\"}\n", 30), SG_E_LIMIT);
    CU_ASSERT_EQUAL(answer_end(a), SG_E_LIMIT);
    CU_ASSERT_EQUAL(a->call->outputs_count, count);
}

static void give_text(struct answer *a, size_t len, char c, int expected)
{
    char *text = malloc(len);
    memset(text, c, len);
    CU_ASSERT_EQUAL(give(a, text, len), expected);
    free(text);
}

#define BEGIN_TEXT "{\"type\": \"stdout\", \"text\": \""

static void ten_mebibytes_of_output_are_taken_and_not_a_byte_more(void)
{
    struct answer a = {.piece = 0};
    answer_begin(&a);
    for (int i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT, strlen(BEGIN_TEXT)), 0);
        give_text(&a, MIB, 'y', 0);
        CU_ASSERT_EQUAL(give(&a, "\"}\n", 3), 0);
    }
    CU_ASSERT_EQUAL(a.stream.emitted, OUT_MAX);
    expect_output_ended(&a, give(&a, "{\"type\":\"stderr\",\"text\":\"1\"}\n", 30));
    CU_ASSERT_EQUAL(strlen(call_text(a.call, SG_OUT_LOG_OUT)), OUT_MAX);
    CU_ASSERT_EQUAL(call_count(a.call, SG_OUT_LOG_ERR), 0);
    answer_free(&a);
}

static void of_one_text_that_is_too_long_what_fits_is_kept(void)
{
    struct answer a = {.piece = 65521};
    answer_begin(&a);
    CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT "ab", strlen(BEGIN_TEXT) + 2), 0);
    size_t len = (OUT_MAX / 3 + 10) * 3;
    char *text = malloc(len);
    for (size_t i = 0; i < len; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 3);
    }
    CU_ASSERT_EQUAL(give(&a, text, len), 0);
    free(text);
    expect_output_ended(&a, give(&a, "\"}\n", 3));
    /* After "ab" the limit, one byte behind a multiple of three, falls within a character. */
    CU_ASSERT_EQUAL(strlen(call_text(a.call, SG_OUT_LOG_OUT)), 2 + (OUT_MAX - 2) / 3 * 3);
    answer_free(&a);
}

static void a_line_without_end_is_held_up_to_a_limit_and_its_text_kept(void)
{
    struct answer a = {.piece = 1000003};
    answer_begin(&a);
    CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT, strlen(BEGIN_TEXT)), 0);
    give_text(&a, 11 * MIB - 100, 'x', 0);
    CU_ASSERT(a.stream.line_size <= 11 * MIB + 2);
    expect_output_ended(
        &a, give(&a,
                 "0123456789012345678901234567890123456789012345678901234567890123456789"
                 "0123456789\\u00e90123456789",
                 96));
    CU_ASSERT_EQUAL(strlen(call_text(a.call, SG_OUT_LOG_OUT)), OUT_MAX);
    answer_free(&a);
}

static void a_result_that_is_too_large_ends_the_run(void)
{
    struct answer a = {.piece = 0};
    answer_begin(&a);
    static const char begin[] = "{\"type\":\"result\",\"text\":\"t\",\"png\":\"";
    CU_ASSERT_EQUAL(give(&a, begin, strlen(begin)), 0);
    give_text(&a, OUT_MAX, 'A', 0);
    expect_output_ended(&a, give(&a, "\"}\n", 3));
    CU_ASSERT_EQUAL(call_count(a.call, SG_OUT_RESULT), 0);
    answer_free(&a);
}

static void the_memory_of_a_long_line_is_given_back_once_it_was_read(void)
{
    struct answer a = {.piece = 70001};
    answer_begin(&a);
    CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT, strlen(BEGIN_TEXT)), 0);
    give_text(&a, 3 * MIB, 'y', 0);
    CU_ASSERT(a.stream.line_size >= 3 * MIB);
    CU_ASSERT_EQUAL(give(&a, "\"}\n{", 4), 0);
    CU_ASSERT(a.stream.line_size <= 64 << 10);
    CU_ASSERT_EQUAL(strlen(call_text(a.call, SG_OUT_LOG_OUT)), 3 * MIB);
    CU_ASSERT_EQUAL(give(&a, "\"type\":\"stdout\",\"text\":\"z\"}\n", 28), 0);
    CU_ASSERT_EQUAL(a.stream.emitted, 3 * MIB + 1);
    answer_free(&a);
}

static void others_have_a_turn_between_lines_that_are_long_together(void)
{
    struct answer a = {.piece = 0};
    answer_begin(&a);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(a.call->sleeps, (size_t)(i > 0 ? i - 1 : 0));
        CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT, strlen(BEGIN_TEXT)), 0);
        give_text(&a, MIB / 4, 'y', 0);
        CU_ASSERT_EQUAL(give(&a, "\"}\n", 3), 0);
    }
    CU_ASSERT_EQUAL(a.call->sleeps, 3);
    CU_ASSERT_EQUAL(a.call->slept_ms, 0);
    a.call->sleeps_max = 3; /* and nobody waits any more after it */
    a.call->sleep_code = SG_E_CANCELLED;
    static const char last[] = "{\"type\":\"stdout\",\"text\":\"z\"}\n";
    CU_ASSERT_EQUAL(give(&a, last, strlen(last)), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(a.stream.code, SG_E_CANCELLED);
    CU_ASSERT_EQUAL(strlen(call_text(a.call, SG_OUT_LOG_OUT)), MIB);
    answer_free(&a);
}

static void long_texts_are_emitted_in_pieces_between_characters(void)
{
    struct answer a = {.piece = 0};
    answer_begin(&a);
    CU_ASSERT_EQUAL(give(&a, BEGIN_TEXT "a", strlen(BEGIN_TEXT) + 1), 0);
    for (int i = 0; i < 40000; i++) {
        CU_ASSERT_EQUAL(give(&a, "\xC3\xA9", 2), 0);
    }
    CU_ASSERT_EQUAL(give(&a, "\"}\n", 3), 0);
    CU_ASSERT_EQUAL(a.call->outputs_count, 2);
    CU_ASSERT_EQUAL(a.call->outputs[0].len, 65535);
    CU_ASSERT_EQUAL(a.call->outputs[1].len, 80001 - 65535);
    answer_free(&a);
}

static void a_failure_to_emit_ends_the_stream_with_its_code(void)
{
    struct answer a = {.piece = 0};
    answer_begin(&a);
    a.call->emits_max = 1;
    a.call->emit_code = SG_E_CANCELLED;
    static const char lines[] =
        "{\"type\":\"stdout\",\"text\":\"1\"}\n{\"type\":\"stdout\",\"text\":\"2\"}\n"
        "{\"type\":\"end_of_execution\"}\n";
    CU_ASSERT_EQUAL(give(&a, lines, strlen(lines)), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(answer_end(&a), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(a.stream.code, SG_E_CANCELLED);
    expect_events(&a, "out 1\n");
    CU_ASSERT_FALSE(a.stream.has_ended);
    answer_free(&a);
}

/* ---- ends ---- */

static void behind_the_end_nothing_counts(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(
        take_all(&a,
                 "{\"type\":\"end_of_execution\"}\n{\"type\":\"stdout\",\"text\":\"x\"}\nrubbish\n"
                 "{\"type\":\"stdout\",\"text\":\"y\"}"),
        0);
    expect_events(&a, "");
    CU_ASSERT_EQUAL(a.stream.unreadable_count, 0);
    answer_free(&a);
}

static void of_a_text_that_is_cut_off_what_came_is_kept(void)
{
    static const char *const ends[] = {"", "\\", "\\u", "\\u00e", "\\ud83d\\ude0", "\\\\\\"};
    static const char *const shown[] = {"", "", "", "", "\\xef\\xbf\\xbd", "\\\\"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char line[128], expected[128];
        snprintf(line, sizeof line, BEGIN_TEXT "begun%s", ends[i]);
        snprintf(expected, sizeof expected, "out begun%s\n", shown[i]);
        expect(line, expected);
    }
    expect("{\"type\": \"result\", \"text\": \"begun", "");
    expect("{\"type\": \"stdout\", \"te", "");
    expect("{\"ty", "");
}

static void an_answer_says_whether_the_code_ran(void)
{
    static const struct {
        const char *line;
        bool has_begun;
    } cases[] = {{"", false},
                 {"{\"type\":\"keepalive\"}", false},
                 {"{\"type\":\"end_of_execution\"}", false},
                 {"{\"type\":\"number_of_executions\",\"execution_count\":1}", true},
                 {"{\"type\":\"stderr\",\"text\":\"x\"}", true},
                 {"{\"type\":\"result\",\"text\":\"x\"}", true},
                 {"{\"type\":\"error\",\"name\":\"x\"}", true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct answer a;
        CU_ASSERT_EQUAL(take_all(&a, cases[i].line), 0);
        CU_ASSERT_EQUAL(a.stream.has_begun, cases[i].has_begun);
        answer_free(&a);
    }
}
static const struct test tests[] = {
    TEST(every_recording_gives_its_events_when_it_comes_whole),
    TEST(every_recording_gives_its_events_byte_by_byte),
    TEST(every_recording_gives_its_events_in_any_chunks),
    TEST(every_recording_is_among_those_expected),
    TEST(ten_mebibytes_of_output_are_taken_and_not_a_byte_more),
    TEST(of_one_text_that_is_too_long_what_fits_is_kept),
    TEST(a_line_without_end_is_held_up_to_a_limit_and_its_text_kept),
    TEST(a_result_that_is_too_large_ends_the_run),
    TEST(the_memory_of_a_long_line_is_given_back_once_it_was_read),
    TEST(others_have_a_turn_between_lines_that_are_long_together),
    TEST(long_texts_are_emitted_in_pieces_between_characters),
    TEST(a_failure_to_emit_ends_the_stream_with_its_code),
    TEST(behind_the_end_nothing_counts),
    TEST(of_a_text_that_is_cut_off_what_came_is_kept),
    TEST(an_answer_says_whether_the_code_ran),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_stream", tests, COUNT_OF(tests), argc, argv);
}
