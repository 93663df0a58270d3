/* From what the model wrote and the client asked to a query. */
#include "search.h"

#include <stdio.h>
#include <string.h>

/* ---- the model's arguments ---- */

static int wrong(struct problem *problem, const char *what)
{
    snprintf(problem->text, sizeof problem->text, "%s", what);
    return WISH_WRONG;
}

/* One line without control characters: a query is passed on as a C string. */
static size_t flatten(char *text, size_t len)
{
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        bool is_space = (unsigned char)text[i] <= ' ' || text[i] == 0x7F;
        if (!is_space) {
            text[used++] = text[i];
        } else if (used > 0 && text[used - 1] != ' ') {
            text[used++] = ' ';
        }
    }
    used -= used > 0 && text[used - 1] == ' ';
    text[used] = '\0';
    return used;
}

static int read_text(struct sg_call *call, struct json_value value, struct wish *ret,
                     struct problem *problem)
{
    struct json_value rest = json_inside(value);
    size_t room = rest.len + 4;
    char *text = sg->alloc(call, room + 1);
    size_t len = text == NULL ? SIZE_MAX : flatten(text, json_decode(&rest, text, room));
    if (len > QUERY_BYTES_MAX) {
        (void)wrong(problem, "'query' is longer than 1024 bytes");
        return WISH_TOO_LONG;
    }
    ret->query.text = text;
    return len == 0 ? wrong(problem, "'query' is empty") : 0;
}

static int read_count(struct json_value value, int64_t most, struct wish *ret,
                      struct problem *problem)
{
    int64_t count;
    if (value.data == NULL) {
        return 0;
    }
    if (!json_int(value, &count) || count < 1) {
        return wrong(problem, "'count' is not a whole number from 1 on");
    }
    ret->query.count_max = count < most ? count : most;
    return 0;
}

static int read_freshness(struct json_value value, struct wish *ret, struct problem *problem)
{
    static const char *const ages[] = {"day", "week", "month", "year"};
    for (size_t i = 0; value.data != NULL && i < sizeof ages / sizeof *ages; i++) {
        if (json_string_is(value, ages[i])) {
            ret->query.freshness = ages[i];
            return 0;
        }
    }
    return value.data == NULL ? 0 : wrong(problem, "'freshness' is not day, week, month or year");
}

/* ---- the client's options ---- */

enum option { OPTION_ALLOWED, OPTION_BLOCKED, OPTION_COUNTRY, OPTION_SIZE, OPTION_COUNT };

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

/* Behind the string that begins here, in JSON that is known to be well-formed; NULL if none does. */
static const char *string_end(const char *at, const char *end)
{
    if (at == end || *at != '"') {
        return NULL;
    }
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : NULL;
}

/* The strings of an array, ended by NULL. False where it is none of strings alone: a filter that cannot be read must not be
 * no filter. */
static bool read_list(struct sg_call *call, struct json_value array, const char *const **ret)
{
    if (array.data == NULL || json_is_null(array)) {
        return true;
    }
    const char *at = array.data + 1, *end = array.data + array.len - 1, *behind;
    const char **list = sg->alloc(call, (array.len / 2 + 2) * sizeof *list);
    size_t count = 0, ignored;
    if (list == NULL || array.data[0] != '[') {
        return false;
    }
    while ((at = skip_space(at, end)) < end && (behind = string_end(at, end)) != NULL) {
        list[count] = tool_decode(call, (struct json_value){at, (size_t)(behind - at)}, &ignored);
        if (list[count++] == NULL) {
            return false;
        }
        at = skip_space(behind, end);
        at += at < end && *at == ',';
    }
    *ret = list;
    return at == end;
}

static bool has_entries(const char *const *list)
{
    return list != NULL && list[0] != NULL;
}

/* The context size: so many hits, and so much of each. Few where the client wants little said, many where it wants much. */
static int64_t apply_size(const struct config *config, struct json_value size, struct wish *ret)
{
    int64_t many = config->hits * 2 < QUERY_COUNT_MAX ? config->hits * 2 : QUERY_COUNT_MAX;
    ret->query.count_max = config->hits;
    ret->snippet_bytes = (size_t)config->snippet;
    if (json_is_string(size) && json_string_is(size, "low")) {
        ret->query.count_max = (config->hits + 1) / 2;
        ret->snippet_bytes /= 2;
    } else if (json_is_string(size) && json_string_is(size, "high")) {
        ret->query.count_max = many;
        ret->snippet_bytes *= 2;
    }
    return json_is_string(size) ? ret->query.count_max : many;
}

/* As services have it, in capitals; NULL: it is no code of a country. */
static const char *read_country(struct sg_call *call, struct json_value value)
{
    char *code = json_is_string(value) && value.len == 4 ? sg->alloc(call, 3) : NULL;
    for (size_t i = 0; code != NULL && i < 2; i++) {
        code[i] = (char)(value.data[i + 1] & ~0x20);
        if (code[i] < 'A' || code[i] > 'Z') {
            return NULL;
        }
    }
    return code;
}

/* *ret_most: hits that the model may ask for. */
static int read_options(const struct config *config, struct sg_call *call, struct wish *ret,
                        int64_t *ret_most, struct sg_error *err)
{
    static const char *const names[] = {[OPTION_ALLOWED] = "allowed_domains",
                                        [OPTION_BLOCKED] = "blocked_domains",
                                        [OPTION_COUNTRY] = "country",
                                        [OPTION_SIZE] = "context_size"};
    struct json_value found[OPTION_COUNT] = {{0}};
    const char *json = sg->tool_options(call);
    bool is_good = json == NULL || json_find(json, strlen(json), names, found, OPTION_COUNT);
    is_good = is_good && read_list(call, found[OPTION_ALLOWED], &ret->query.allowed) &&
              read_list(call, found[OPTION_BLOCKED], &ret->query.blocked);
    if (!is_good) {
        return sg->fail(err, SG_E_INTERNAL, "The options of the search cannot be read.");
    }
    ret->query.country = read_country(call, found[OPTION_COUNTRY]);
    ret->has_domains = has_entries(ret->query.allowed) || has_entries(ret->query.blocked);
    *ret_most = apply_size(config, found[OPTION_SIZE], ret);
    return 0;
}

int wish_read(const struct config *config, struct sg_call *call, const char *json, size_t len,
              struct wish *ret, struct problem *ret_problem, struct sg_error *err)
{
    struct argument wanted[] = {{.name = "query", .is_required = true},
                                {.name = "count", .is_any = true},
                                {.name = "freshness"}};
    int64_t most = 0;
    *ret = (struct wish){0};
    if (!arguments_read(json, len, wanted, sizeof wanted / sizeof *wanted, ret_problem)) {
        return WISH_WRONG;
    }
    int code = read_options(config, call, ret, &most, err);
    code = code != 0 ? code : read_text(call, wanted[0].value, ret, ret_problem);
    code = code != 0 ? code : read_count(wanted[1].value, most, ret, ret_problem);
    return code != 0 ? code : read_freshness(wanted[2].value, ret, ret_problem);
}
