/* Looking at what cJSON has read. */
#ifndef MOCK_JSON_H
#define MOCK_JSON_H

#include "text.h"

#include <cjson/cJSON.h>

bool json_is(const cJSON *string, const char *text);
const cJSON *json_member(const cJSON *object, const char *name); /* exact; NULL is fine */

bool name_is_among(const char *name, const char *const *names); /* ended by NULL */

/* The first member whose name is not among the names, or that comes twice; NULL: none. */
const cJSON *json_unknown(const cJSON *object, const char *const *names);
const cJSON *json_repeated(const cJSON *object);

bool json_text_is_valid(const char *text);
bool json_text_is_object(const char *text);

/* As JSON, without white space; "null" for NULL. */
void text_put_json_value(struct text *, const cJSON *value);

/* A text as a JSON string. */
void text_put_json_string(struct text *, const struct text *string);

#endif
