/* Patterns of paths: what is one, for which paths it stands, and whether two stand for the same path. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/path_pattern.h"

#include <stdio.h>
#include <string.h>

static void a_pattern_is_a_path_with_stars_for_segments(void)
{
    static const struct {
        const char *text, *pattern;
    } good[] = {{"/v1/files", "/files"},
                {"/files/*", "/files/*"},
                {"/v1/threads/*/runs", "/threads/*/runs"},
                {"/v1beta/files", "/v1beta/files"},
                {"/v1x", "/v1x"},
                {"/a.b/~c_d-e/f:g@h", "/a.b/~c_d-e/f:g@h"}};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        const char *problem = "none was told";
        const char *pattern = path_pattern_read(good[i].text, &problem);
        CU_ASSERT_PTR_NULL(problem);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pattern);
        CU_ASSERT_STRING_EQUAL(pattern, good[i].pattern);
    }
}

static void what_is_no_pattern_is_told(void)
{
    static const char slash[] = "does not begin with '/'";
    static const char empty[] = "has an empty segment: '//', or '/' at its end";
    static const char dots[] = "has a segment of dots";
    static const char star[] = "has a '*' beside other characters: it stands for a whole segment";
    static const char plain[] =
        "may hold letters, digits, '-', '.', '_', '~', ':', '@' and '*' between its "
        "slashes, and no query";
    static const char version[] =
        "must name something behind /v1, which may be left out and stands once";
    static const struct {
        const char *text, *problem;
    } bad[] = {
        {"", slash},        {"files", slash},         {"*", slash},         {"/", empty},
        {"/files/", empty}, {"//files", empty},       {"/a//b", empty},     {"/v1/", empty},
        {"/a/./b", dots},   {"/a/..", dots},          {"/fil*", star},      {"/a/**", star},
        {"/a?b=c", plain},  {"/a%2fb", plain},        {"/a b", plain},      {"/a;b", plain},
        {"/a\\b", plain},   {"/a#b", plain},          {"/\xc3\xa4", plain}, {"GET /files", slash},
        {"/v1", version},   {"/v1/v1/files", version}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *problem = NULL;
        CU_ASSERT_PTR_NULL(path_pattern_read(bad[i].text, &problem));
        CU_ASSERT_PTR_NOT_NULL_FATAL(problem);
        CU_ASSERT_STRING_EQUAL(problem, bad[i].problem);
    }
    char text[PATH_PATTERN_BYTES_MAX + 2];
    const char *problem = NULL;
    memset(text, 'a', sizeof text);
    text[0] = '/';
    text[PATH_PATTERN_BYTES_MAX + 1] = '\0';
    CU_ASSERT_PTR_NULL(path_pattern_read(text, &problem));
    CU_ASSERT_STRING_EQUAL(problem, "is longer than 256 bytes");
    text[PATH_PATTERN_BYTES_MAX] = '\0';
    CU_ASSERT_PTR_EQUAL(path_pattern_read(text, &problem), text);
}

static void a_star_is_one_segment_and_at_the_end_all_below(void)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {{"/files", "/files", true},
                 {"/files", "/files/", false},
                 {"/files", "/files/a", false},
                 {"/files", "/file", false},
                 {"/files", "/Files", false},
                 {"/files/*", "/files", false},
                 {"/files/*", "/files/", false},
                 {"/files/*", "/files/a", true},
                 {"/files/*", "/files/a/content", true},
                 {"/files/*", "/files/*", true},
                 {"/files/*", "/filesa/a", false},
                 {"/threads/*/runs", "/threads/t/runs", true},
                 {"/threads/*/runs", "/threads/t/u/runs", false},
                 {"/threads/*/runs", "/threads//runs", false},
                 {"/threads/*/runs", "/threads/t/runs/r", false},
                 {"/threads/*/runs/*", "/threads/t/runs/r/steps", true},
                 {"/files", "", false},
                 {"/files", "files", false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool matches = path_pattern_matches(cases[i].pattern, str_of(cases[i].path));
        if (matches != cases[i].matches) {
            printf("\n%s and %s\n", cases[i].pattern, cases[i].path);
        }
        CU_ASSERT_EQUAL(matches, cases[i].matches);
    }
}

static void two_patterns_meet_where_a_path_is_of_both(void)
{
    static const struct {
        const char *a, *b;
        bool meet;
    } cases[] = {{"/files", "/files", true},
                 {"/files", "/files/*", false},
                 {"/files/*", "/files/a", true},
                 {"/files/*", "/files/a/b/c", true},
                 {"/files/*", "/*/content", true},
                 {"/files/*/content", "/files/*/content", true},
                 {"/files/*/content", "/files/*/text", false},
                 {"/a/*/b", "/a/c", false},
                 {"/a/*/b", "/a/*", true},
                 {"/*", "/chat/completions", true},
                 {"/*/completions", "/chat/*", true},
                 {"/*/x/*", "/a/x", false},
                 {"/audio/*", "/audio/speech", true},
                 {"/messages/batches/*", "/messages/count_tokens", false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CU_ASSERT_EQUAL(path_patterns_meet(cases[i].a, cases[i].b), cases[i].meet);
        CU_ASSERT_EQUAL(path_patterns_meet(cases[i].b, cases[i].a), cases[i].meet);
    }
}

static const struct test tests[] = {
    TEST(a_pattern_is_a_path_with_stars_for_segments),
    TEST(what_is_no_pattern_is_told),
    TEST(a_star_is_one_segment_and_at_the_end_all_below),
    TEST(two_patterns_meet_where_a_path_is_of_both),
};

int main(int argc, char **argv)
{
    return run_tests("path_pattern", tests, COUNT_OF(tests), argc, argv);
}
