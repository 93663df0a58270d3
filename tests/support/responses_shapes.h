/* What the strictest client libraries ask of the objects of responses: of an item wherever it stands, of an annotation, of a
 * response. Each asserts, and says which object was wrong. */
#ifndef TESTS_SUPPORT_RESPONSES_SHAPES_H
#define TESTS_SUPPORT_RESPONSES_SHAPES_H

#include "cunit_main.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says which event was wrong. */
#define CHECK_EVENT(condition, event)                                                      \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            char *text_ = cJSON_PrintUnformatted(event);                                   \
            fprintf(stderr, "%s:%d: %s: %.400s\n", __FILE__, __LINE__, #condition, text_); \
            free(text_);                                                                   \
            CU_FAIL_FATAL(#condition);                                                     \
        }                                                                                  \
    } while (0)

static inline const char *json_str(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static inline int json_num(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valueint : -1;
}

static inline bool json_has(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

/* Code points of a text. */
static inline int checked_characters(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++) {
        count += (*text & 0xC0) != 0x80;
    }
    return count;
}

/* `text`: what of it the client has. */
static inline void check_citation(const cJSON *annotation, const char *text)
{
    CHECK_EVENT(json_str(annotation, "type") != NULL, annotation);
    if (strcmp(json_str(annotation, "type"), "url_citation") != 0) {
        return;
    }
    CHECK_EVENT(cJSON_GetArraySize(annotation) == 5, annotation);
    CHECK_EVENT(json_str(annotation, "title") != NULL, annotation);
    CHECK_EVENT(json_str(annotation, "url") != NULL && json_str(annotation, "url")[0] != '\0',
                annotation);
    int start = json_num(annotation, "start_index"), end = json_num(annotation, "end_index");
    CHECK_EVENT(start >= 0 && start < end && end <= checked_characters(text), annotation);
}

/* A search: without an action while it runs. */
static inline void check_search_shape(const cJSON *item)
{
    const cJSON *action = cJSON_GetObjectItem(item, "action"), *element;
    const char *status = json_str(item, "status");
    CHECK_EVENT(status != NULL, item);
    bool runs = strcmp(status, "in_progress") == 0 || strcmp(status, "searching") == 0;
    bool has_ended = strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0;
    CHECK_EVENT(runs || has_ended, item);
    CHECK_EVENT(cJSON_IsObject(action) ? has_ended : runs && action == NULL, item);
    if (action == NULL || strcmp(json_str(action, "type"), "search") != 0) {
        return;
    }
    CHECK_EVENT(json_str(action, "query") != NULL, item);
    cJSON_ArrayForEach(element, cJSON_GetObjectItem(action, "queries"))
    {
        CHECK_EVENT(cJSON_IsString(element) && element->valuestring[0] != '\0', item);
    }
    cJSON_ArrayForEach(element, cJSON_GetObjectItem(action, "sources"))
    {
        CHECK_EVENT(strcmp(json_str(element, "type"), "url") == 0, item);
        CHECK_EVENT(json_str(element, "url") != NULL, item);
    }
}

/* An item in its place in `output`, in `added` or in `done`: what clients ask of each type. */
static inline void check_item_shape(const cJSON *item)
{
    const char *type = json_str(item, "type");
    CHECK_EVENT(type != NULL, item);
    CHECK_EVENT(json_str(item, "id") != NULL && json_str(item, "id")[0] != '\0', item);
    if (strcmp(type, "reasoning") == 0) {
        CHECK_EVENT(cJSON_IsArray(cJSON_GetObjectItem(item, "summary")), item);
        return; /* the only one whose status may be missing */
    }
    if (strcmp(type, "message") == 0) {
        const cJSON *content = cJSON_GetObjectItem(item, "content"), *part;
        CHECK_EVENT(cJSON_IsArray(content), item);
        CHECK_EVENT(json_str(item, "role") != NULL, item);
        cJSON_ArrayForEach(part, content)
        {
            const char *kind = json_str(part, "type");
            CHECK_EVENT(kind != NULL, item);
            if (strcmp(kind, "output_text") == 0) {
                CHECK_EVENT(json_str(part, "text") != NULL, item);
                const cJSON *list = cJSON_GetObjectItem(part, "annotations"), *annotation;
                CHECK_EVENT(cJSON_IsArray(list), item);
                cJSON_ArrayForEach(annotation, list)
                {
                    check_citation(annotation, json_str(part, "text"));
                }
            }
        }
    } else if (strcmp(type, "function_call") == 0) {
        CHECK_EVENT(json_str(item, "arguments") != NULL, item);
        CHECK_EVENT(json_str(item, "name") != NULL, item);
        CHECK_EVENT(json_str(item, "call_id") != NULL, item);
    } else if (strcmp(type, "web_search_call") == 0) {
        check_search_shape(item);
    } else if (strcmp(type, "code_interpreter_call") == 0) {
        const cJSON *outputs = cJSON_GetObjectItem(item, "outputs"), *output;
        CHECK_EVENT(json_str(item, "code") != NULL, item);
        CHECK_EVENT(json_str(item, "container_id") != NULL, item);
        CHECK_EVENT(cJSON_IsArray(outputs) || cJSON_IsNull(outputs), item);
        CHECK_EVENT(cJSON_GetArraySize(item) == 6, item); /* B15: exactly those keys */
        cJSON_ArrayForEach(output, outputs)
        {
            const char *kind = json_str(output, "type");
            CHECK_EVENT(kind != NULL, item);
            CHECK_EVENT(strcmp(kind, "logs") == 0 ? json_str(output, "logs") != NULL
                                                  : json_str(output, "url") != NULL,
                        item);
        }
    }
    CHECK_EVENT(json_str(item, "status") != NULL, item);
}

static inline void check_response_shape(const cJSON *response)
{
    static const char *const keys[] = {"id",
                                       "object",
                                       "created_at",
                                       "status",
                                       "completed_at",
                                       "error",
                                       "incomplete_details",
                                       "instructions",
                                       "metadata",
                                       "model",
                                       "output",
                                       "parallel_tool_calls",
                                       "temperature",
                                       "tool_choice",
                                       "tools",
                                       "top_p",
                                       "previous_response_id",
                                       "reasoning",
                                       "store",
                                       "text",
                                       "truncation",
                                       "max_output_tokens",
                                       "max_tool_calls",
                                       "user",
                                       "safety_identifier",
                                       "prompt_cache_key",
                                       "service_tier",
                                       "top_logprobs",
                                       "background",
                                       "usage"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        CHECK_EVENT(json_has(response, keys[i]), response);
    }
    CHECK_EVENT((size_t)cJSON_GetArraySize(response) == sizeof keys / sizeof keys[0], response);
    CHECK_EVENT(strcmp(json_str(response, "object"), "response") == 0, response);
    const cJSON *usage = cJSON_GetObjectItem(response, "usage"), *item;
    if (cJSON_IsObject(usage)) {
        CHECK_EVENT(json_num(usage, "input_tokens") >= 0, response);
        CHECK_EVENT(json_num(usage, "output_tokens") >= 0, response);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(response, "output"))
    {
        check_item_shape(item);
    }
}

#endif
