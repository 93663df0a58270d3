/* Looking at what cJSON has read. */
#include "json.h"

#include <string.h>

bool json_is(const cJSON *string, const char *text)
{
    return cJSON_IsString(string) && strcmp(string->valuestring, text) == 0;
}

const cJSON *json_member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

bool name_is_among(const char *name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

const cJSON *json_unknown(const cJSON *object, const char *const *names)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        if (!name_is_among(member->string, names)) {
            return member;
        }
    }
    return NULL;
}

const cJSON *json_repeated(const cJSON *object)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        if (json_member(object, member->string) != member) {
            return member;
        }
    }
    return NULL;
}

bool json_text_is_valid(const char *text)
{
    cJSON *parsed = cJSON_ParseWithOpts(text, NULL, 1);
    cJSON_Delete(parsed);
    return parsed != NULL;
}

bool json_text_is_object(const char *text)
{
    cJSON *parsed = cJSON_ParseWithOpts(text, NULL, 1);
    bool is_object = cJSON_IsObject(parsed);
    cJSON_Delete(parsed);
    return is_object;
}

void text_put_json_value(struct text *out, const cJSON *value)
{
    char *printed = value == NULL ? NULL : cJSON_PrintUnformatted(value);
    text_puts(out, printed == NULL ? "null" : printed);
    cJSON_free(printed);
}

void text_put_json_string(struct text *out, const struct text *string)
{
    text_json(out, string->len == 0 ? "" : string->data, string->len);
}
