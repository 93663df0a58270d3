/* What the tests of the mock upstream's other two forms share: whole answers as JSON, streams as lists of events. */
#ifndef TESTS_FORMS_FIXTURE_H
#define TESTS_FORMS_FIXTURE_H

#include "upstream_fixture.h"

static const char *surface; /* of the file's tests */

/* As much as fits. */
static inline void append(char *text, size_t size, const char *more)
{
    size_t len = strlen(text), more_len = strlen(more);
    more_len = more_len < size - len ? more_len : size - len - 1;
    memcpy(text + len, more, more_len);
    text[len + more_len] = '\0';
}

/* The i-th event's data, to be deleted; it must have both lines, and the same type in both. NULL: no more. */
static inline cJSON *event_at(struct fixture *f, size_t i)
{
    for (size_t k = 0; k < f->call->outputs_count; k++) {
        const struct output *output = &f->call->outputs[k];
        if (output->kind != SG_OUT_DATA || i-- > 0) {
            continue;
        }
        const char *data = strstr(output->data, "\ndata: ");
        CU_ASSERT_EQUAL_FATAL(strncmp(output->data, "event: ", 7), 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(data);
        CU_ASSERT_STRING_EQUAL(output->data + output->len - 2, "\n\n");
        cJSON *event = cJSON_Parse(data + 7);
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(event, "type"));
        CU_ASSERT_PTR_NOT_NULL_FATAL(type);
        CU_ASSERT_EQUAL(strlen(type), (size_t)(data - output->data) - 7);
        CU_ASSERT_EQUAL(strncmp(output->data + 7, type, strlen(type)), 0);
        return event;
    }
    return NULL;
}

/* The types of a stream's events, each once for a run of the same, separated by spaces. */
static inline const char *event_types(struct fixture *f)
{
    static char types[4096];
    char last[64] = "";
    types[0] = '\0';
    cJSON *event;
    for (size_t i = 0; (event = event_at(f, i)) != NULL; i++) {
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(event, "type"));
        if (strcmp(type, last) != 0) {
            append(types, sizeof types, types[0] == '\0' ? "" : " ");
            append(types, sizeof types, type);
            snprintf(last, sizeof last, "%s", type);
        }
        cJSON_Delete(event);
    }
    return types;
}

/* Expects a plain answer; to be deleted. */
static inline cJSON *json_of(struct fixture *f, const char *request)
{
    CU_ASSERT_EQUAL_FATAL(turn_with(f, surface, request, false), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f->call, SG_OUT_HEAD),
                           "{\"status\": 200, \"headers\": {\"content-type\": "
                           "\"application/json\"}}");
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
    return answer;
}

static inline void stream_of(struct fixture *f, const char *request)
{
    CU_ASSERT_EQUAL_FATAL(turn_with(f, surface, request, true), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f->call, SG_OUT_HEAD),
                           "{\"status\": 200, \"headers\": {\"content-type\": "
                           "\"text/event-stream\"}}");
}

/* "a.b.0.c" in a tree: text as it is, anything else as JSON; "(absent)". Until it is asked again. */
static inline const char *at(const cJSON *tree, const char *path)
{
    static char found[8192];
    char name[64];
    while (tree != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        tree = cJSON_IsArray(tree) ? cJSON_GetArrayItem(tree, atoi(name))
                                   : cJSON_GetObjectItem(tree, name);
        path += len + (path[len] == '.');
    }
    if (tree == NULL) {
        return "(absent)";
    }
    if (cJSON_IsString(tree)) {
        snprintf(found, sizeof found, "%s", tree->valuestring);
    } else {
        char *printed = cJSON_PrintUnformatted(tree);
        snprintf(found, sizeof found, "%s", printed);
        cJSON_free(printed);
    }
    return found;
}

static inline void expect_refusal(struct fixture *f, const char *request, const char *param,
                                  const char *message)
{
    CU_ASSERT_EQUAL(turn_with(f, surface, request, false), 0);
    CU_ASSERT_EQUAL(strncmp(call_text(f->call, SG_OUT_HEAD), "{\"status\": 400,", 15), 0);
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    CU_ASSERT_STRING_EQUAL(at(answer, "error.type"), "invalid_request_error");
    CU_ASSERT_STRING_EQUAL(at(answer, "error.param"), param);
    CU_ASSERT_STRING_EQUAL(at(answer, "error.message"), message);
    cJSON_Delete(answer);
}

#endif
