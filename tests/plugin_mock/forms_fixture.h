/* What the tests of the mock upstream's other two forms share: whole answers as JSON, streams as lists of events. */
#ifndef TESTS_FORMS_FIXTURE_H
#define TESTS_FORMS_FIXTURE_H

#include "upstream_fixture.h"

struct form { /* how a surface writes what the tests ask for: members, types, and paths for at() */
    const char *surface;
    const char *parts, *end; /* of an answer: the list of what it says, and why it ended */
    const char *call, *arguments;
    const char *message, *text, *reasoning;
    const char *delta_index, *delta_type; /* of an event */
};

static const struct form *form; /* of the file's tests */

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
    CU_ASSERT_EQUAL_FATAL(turn_with(f, form->surface, request, false), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f->call, SG_OUT_HEAD),
                           "{\"status\": 200, \"headers\": {\"content-type\": "
                           "\"application/json\"}}");
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
    return answer;
}

static inline void stream_of(struct fixture *f, const char *request)
{
    CU_ASSERT_EQUAL_FATAL(turn_with(f, form->surface, request, true), 0);
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

/* An answer in short: "type: text|name(arguments)|…|end". Until it is asked again. */
static inline const char *outline_of(const cJSON *answer)
{
    static char text[4096];
    const cJSON *part;
    text[0] = '\0';
    cJSON_ArrayForEach(part, cJSON_GetObjectItem(answer, form->parts))
    {
        bool is_call = strcmp(at(part, "type"), form->call) == 0;
        bool is_message = strcmp(at(part, "type"), form->message) == 0;
        append(text, sizeof text, at(part, is_call ? "name" : "type"));
        append(text, sizeof text, is_call ? "(" : ": ");
        append(text, sizeof text,
               at(part, is_call      ? form->arguments
                        : is_message ? form->text
                                     : form->reasoning));
        append(text, sizeof text, is_call ? ")|" : "|");
    }
    append(text, sizeof text, at(answer, form->end));
    return text;
}

static inline void expect(struct fixture *f, const char *request, const char *expected)
{
    cJSON *answer = json_of(f, request);
    CU_ASSERT_STRING_EQUAL(outline_of(answer), expected);
    cJSON_Delete(answer);
}

static inline void expect_new(const char *request, const char *expected)
{
    struct fixture f = fixture_new();
    expect(&f, request, expected);
    fixture_free(&f);
}

/* A turn that thinks, speaks, and calls twice, once with arguments that are no JSON. */
static inline struct fixture scripted(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "reasoning", "hm, well", "text", "\xC3\xA4 so", "call",
               "a", "arguments", "{not json", "calls", "b {\"x\": 1}", NULL);
    return f;
}

/* What all deltas of a type come to in the part of this index; `path` leads to the text of one. */
static inline const char *deltas_of(struct fixture *f, int index, const char *type,
                                    const char *path)
{
    static char text[4096];
    text[0] = '\0';
    cJSON *event;
    for (size_t i = 0; (event = event_at(f, i)) != NULL; i++) {
        if (strcmp(at(event, form->delta_type), type) == 0 &&
            atoi(at(event, form->delta_index)) == index) {
            append(text, sizeof text, at(event, path));
        }
        cJSON_Delete(event);
    }
    return text;
}

/* A stream without end, which the client leaves after 20 pieces. */
static inline struct fixture flood_of(const char *request)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "fault", "flood", NULL);
    f.call->emits_max = 20;
    f.call->emit_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(turn_with(&f, form->surface, request, true), SG_E_CANCELLED);
    return f;
}

static inline void expect_refusal(struct fixture *f, const char *request, const char *param,
                                  const char *message)
{
    CU_ASSERT_EQUAL(turn_with(f, form->surface, request, false), 0);
    CU_ASSERT_EQUAL(strncmp(call_text(f->call, SG_OUT_HEAD), "{\"status\": 400,", 15), 0);
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    CU_ASSERT_STRING_EQUAL(at(answer, "error.type"), "invalid_request_error");
    CU_ASSERT_STRING_EQUAL(at(answer, "error.param"), param);
    CU_ASSERT_STRING_EQUAL(at(answer, "error.message"), message);
    cJSON_Delete(answer);
}

#endif
