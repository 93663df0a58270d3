/* What a search service answers, as all providers read it. The first byte chooses how the service's hits look. What is emitted
 * must be a hit that is fit to be shown: an object of exactly four members, valid text without control characters, bounded,
 * with an http(s) address; and nothing at all where the answer has a problem. */
#include "search_answer.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sg_host host;
const struct sg_host *sg = &host;

static const struct search_form forms[] = {
    {.service = "plain",
     .hits = "results",
     .failures = "unresponsive_engines",
     .title = "title",
     .url = "url",
     .snippet = {"content", "text", "snippet"},
     .date = {"publishedDate", "pubdate", "date"}},
    {.service = "nested",
     .hits = "web.results",
     .marker = "query",
     .title = "title",
     .url = "url",
     .snippet = {"extra_snippets", "description"},
     .date = {"page_age", "age"},
     .is_html = true},
    {.service = "google",
     .hits = "organic",
     .marker = "searchParameters",
     .title = "title",
     .url = "link",
     .snippet = {"snippet"},
     .date = {"date"}},
};

static void check_text(struct json_value value, size_t max)
{
    char text[SEARCH_URL_MAX * 2];
    CHECK(json_is_string(value));
    struct json_value inside = json_inside(value);
    size_t len = json_decode(&inside, text, sizeof text);
    CHECK(inside.len == 0);
    CHECK(len <= max);
    for (size_t at = 0, character; at < len; at += character) {
        character = text_character(text + at, len - at);
        CHECK(character > 0);
        CHECK((unsigned char)text[at] >= 0x20 && text[at] != 0x7F);
        CHECK(character != 2 || text[at] != '\xC2' || (unsigned char)text[at + 1] > 0x9F);
    }
}

static int check_hit(void *context, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    (void)err;
    static const char *const names[] = {"title", "url", "snippet", "date"};
    struct json_value values[4];
    size_t *count = context;
    ++*count;
    CHECK(kind == SG_OUT_HIT);
    CHECK(json_find(data, len, names, values, 4));
    check_text(values[0], SEARCH_TITLE_MAX);
    check_text(values[1], SEARCH_URL_MAX);
    check_text(values[2], SEARCH_SNIPPET_MAX);
    CHECK(strncasecmp(values[1].data + 1, "http", 4) == 0);
    CHECK(json_is_null(values[3]) || values[3].len == SEARCH_DATE_SIZE + 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const allowed[] = {"a.example", NULL};
    if (size < 1) {
        return 0;
    }
    size_t count = 0;
    /* Exactly as long, but for the NUL that http() adds, so that reading past it is seen. */
    char *text = malloc(size);
    CHECK(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    struct search_result result;
    const struct sg_query query = {.text = "x", .allowed = data[0] & 64 ? allowed : NULL};
    const struct sg_sink sink = {check_hit, &count};
    int code = search_read(&forms[data[0] % 3], text, size - 1, &query, 20, 1767312600, &sink,
                           &result, NULL);
    CHECK(code == 0);
    CHECK(count == result.hits && count <= 20);
    CHECK(result.unusable + result.hits <= result.elements);
    CHECK(result.problem == NULL || count == 0);
    free(text);
    return 0;
}
