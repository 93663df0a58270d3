/* Arguments of a call: checked whole before anything runs. Models write wrong ones often enough that each kind gets
 * words of its own, so that the next try is a better one. */
#include "arguments.h"

#include <stdio.h>
#include <string.h>

static bool wrong(struct problem *problem, const char *name, const char *what)
{
    snprintf(problem->text, sizeof problem->text, "'%s' %s", name, what);
    return false;
}

/* Notes the value; false if the object has the name twice. */
static bool note(struct argument *wanted, size_t count, struct json_value key,
                 struct json_value value, struct problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        if (!json_string_is(key, wanted[i].name)) {
            continue;
        }
        if (wanted[i].value.data != NULL) {
            return wrong(problem, wanted[i].name, "is given more than once");
        }
        wanted[i].value = value;
    }
    return true;
}

static bool check(struct argument *one, struct problem *problem)
{
    static const struct json_value absent = {0};
    if (!one->is_required && json_is_null(one->value)) {
        one->value = absent;
    }
    if (one->value.data == NULL) {
        return !one->is_required || wrong(problem, one->name, "is missing");
    }
    return one->is_any || json_is_string(one->value) ||
           wrong(problem, one->name, "is not a string");
}

bool arguments_read(const char *json, size_t len, struct argument *wanted, size_t count,
                    struct problem *ret_problem)
{
    struct json_reader reader = json_reader_of(json, len);
    struct json_value key, value;
    struct problem repeated = {""};
    *ret_problem = repeated;
    while (json_next(&reader, &key, &value)) {
        (void)note(wanted, count, key, value, &repeated); /* first of all it must be an object */
    }
    if (reader.problem != NULL) {
        snprintf(ret_problem->text, sizeof ret_problem->text,
                 "the arguments are not a JSON object (at byte %zu: %s)",
                 (size_t)(reader.at - reader.start), reader.problem);
        return false;
    }
    *ret_problem = repeated;
    bool is_good = repeated.text[0] == '\0';
    for (size_t i = 0; is_good && i < count; i++) {
        is_good = check(&wanted[i], ret_problem);
    }
    return is_good;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Bytes of the opening line with its line break, 0 if it is none: ``` and at most a word such as python. */
static size_t opening_length(const char *text, size_t len)
{
    if (len < 3 || memcmp(text, "```", 3) != 0) {
        return 0;
    }
    for (size_t i = 3; i < len && i < 40; i++) {
        if (text[i] == '\n') {
            return i + 1;
        }
        char lower = (char)(text[i] | 0x20);
        bool word = (lower >= 'a' && lower <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                    strchr("+-_. \t\r", text[i]) != NULL;
        if (!word || text[i] == '\0') {
            return 0;
        }
    }
    return 0;
}

struct json_value code_without_fence(const char *code, size_t len)
{
    const struct json_value whole = {code, len};
    while (len > 0 && is_space(code[0])) {
        code++;
        len--;
    }
    while (len > 0 && is_space(code[len - 1])) {
        len--;
    }
    size_t opening = opening_length(code, len);
    if (opening == 0 || len < opening + 3 || memcmp(code + len - 3, "```", 3) != 0) {
        return whole;
    }
    size_t inner = len - opening - 3;
    code += opening;
    if (inner > 0 && code[inner - 1] != '\n') {
        return whole; /* the closing fence has a line of its own */
    }
    return (struct json_value){code, inner};
}
