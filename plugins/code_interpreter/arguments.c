/* Arguments of a call: checked whole before anything runs. Models write wrong ones often enough that each kind gets
 * words of its own, so that the next try is a better one. */
#include "arguments.h"

#include <string.h>

struct arguments arguments_read(const char *json, size_t len)
{
    struct json_reader reader = json_reader_of(json, len);
    struct json_value key, value, code = {0};
    unsigned found = 0;
    while (json_next(&reader, &key, &value)) {
        if (json_string_is(key, "code")) {
            code = value;
            found++;
        }
    }
    if (reader.problem != NULL) {
        return (struct arguments){.problem = "the arguments are not a JSON object",
                                  .problem_at = (size_t)(reader.at - reader.start),
                                  .problem_why = reader.problem};
    }
    if (found == 0) {
        return (struct arguments){.problem = "'code' is missing"};
    }
    if (found > 1) {
        return (struct arguments){.problem = "'code' is given more than once"};
    }
    if (!json_is_string(code)) {
        return (struct arguments){.problem = "'code' is not a string"};
    }
    return (struct arguments){.code = code};
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
