/* What those that hear share. */
#include "translate/said.h"

#include "base/utf8.h"
#include "surface/reported.h"

/* Some servers write numbers as text. */
static struct json_value number_in(struct json_value string, struct arena *arena)
{
    struct str text = json_text_of(string, arena);
    bool is_number = text.len > 0 && text.len < 19;
    for (size_t i = 0; i < text.len; i++) {
        is_number = is_number && text.data[i] >= '0' && text.data[i] <= '9';
    }
    return (struct json_value){is_number ? JSON_NUMBER : JSON_NULL, text};
}

void said_number_read(struct arena *arena, const struct json_member *members, size_t count,
                      const char *name, int64_t *ret)
{
    const struct json_member *member = json_find(members, count, name);
    int64_t number;
    if (member == NULL) {
        return;
    }
    struct json_value value =
        member->value.type == JSON_STRING ? number_in(member->value, arena) : member->value;
    if (value.type == JSON_NUMBER && json_int_of(value, &number) && number >= 0) {
        *ret = number;
    }
}

/* One that is too large to be added to others is no count. */
void said_count_read(struct arena *arena, const struct json_member *members, size_t count,
                     const char *name, int64_t *ret)
{
    int64_t number = -1;
    said_number_read(arena, members, count, name, &number);
    if (number >= 0 && number <= INT64_MAX / 8) {
        *ret = number;
    }
}

size_t said_characters(struct str text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; count++) {
        size_t len = utf8_length(text.data + at, text.len - at);
        at += len == 0 ? 1 : len;
    }
    return count;
}

int said_scan(struct str json, struct arena *arena, struct json_text *ret, struct sg_error *err)
{
    int code = json_scan(json, arena, ret, err);
    if (code == SG_OK && ret->root.type != JSON_OBJECT) {
        code = error_set(err, SG_E_INVALID, "it is no JSON object");
    }
    return code == SG_OK ? SG_OK : not_understood(err);
}
