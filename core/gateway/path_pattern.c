/* Patterns of paths, compared segment by segment: see path_pattern.h. */
#include "gateway/path_pattern.h"

#include <string.h>

/* Where the segment at the start of the text ends. */
static size_t segment_len(struct str text)
{
    const char *slash = text.len > 0 ? memchr(text.data, '/', text.len) : NULL;
    return slash == NULL ? text.len : (size_t)(slash - text.data);
}

/* Takes "/segment" off the front; false where there is no more. */
static bool segment_take(struct str *text, struct str *ret)
{
    if (text->len == 0 || text->data[0] != '/') {
        return false;
    }
    struct str rest = {text->data + 1, text->len - 1};
    *ret = (struct str){rest.data, segment_len(rest)};
    *text = (struct str){rest.data + ret->len, rest.len - ret->len};
    return true;
}

/* Letters, digits and what names of paths have beside them. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-._~:@", c) != NULL;
}

static const char *segment_problem(struct str segment)
{
    if (segment.len == 0) {
        return "has an empty segment: '//', or '/' at its end";
    }
    if (str_is(segment, ".") || str_is(segment, "..")) {
        return "has a segment of dots";
    }
    if (str_is(segment, "*")) {
        return NULL;
    }
    for (size_t i = 0; i < segment.len; i++) {
        if (segment.data[i] == '*') {
            return "has a '*' beside other characters: it stands for a whole segment";
        }
        if (!is_plain(segment.data[i])) {
            return "may hold letters, digits, '-', '.', '_', '~', ':', '@' and '*' between its "
                   "slashes, and no query";
        }
    }
    return NULL;
}

const char *path_pattern_read(const char *text, const char **ret_problem)
{
    struct str rest = str_of(text), segment;
    *ret_problem = text[0] != '/'                      ? "does not begin with '/'"
                   : rest.len > PATH_PATTERN_BYTES_MAX ? "is longer than 256 bytes"
                                                       : NULL;
    while (*ret_problem == NULL && segment_take(&rest, &segment)) {
        *ret_problem = segment_problem(segment);
    }
    if (*ret_problem != NULL) {
        return NULL;
    }
    const char *pattern = strncmp(text, "/v1/", 4) == 0 ? text + 3 : text;
    if (strcmp(text, "/v1") == 0 || strncmp(pattern, "/v1/", 4) == 0) {
        *ret_problem = "must name something behind /v1, which may be left out and stands once";
        return NULL;
    }
    return pattern;
}

bool path_pattern_matches(const char *pattern, struct str path)
{
    struct str left = str_of(pattern), wanted, found;
    while (segment_take(&left, &wanted)) {
        if (!segment_take(&path, &found) || found.len == 0) {
            return false;
        }
        bool is_any = str_is(wanted, "*");
        if (is_any && left.len == 0) {
            return true; /* and all below */
        }
        if (!is_any && !str_eq(wanted, found)) {
            return false;
        }
    }
    return path.len == 0;
}

bool path_patterns_meet(const char *a, const char *b)
{
    struct str left_a = str_of(a), left_b = str_of(b), one, other;
    for (;;) {
        bool has_a = segment_take(&left_a, &one), has_b = segment_take(&left_b, &other);
        if (!has_a || !has_b) {
            return has_a == has_b;
        }
        bool any_a = str_is(one, "*"), any_b = str_is(other, "*");
        if ((any_a && left_a.len == 0) || (any_b && left_b.len == 0)) {
            return true; /* whatever the other one has behind it */
        }
        if (!any_a && !any_b && !str_eq(one, other)) {
            return false;
        }
    }
}
