/* What an answer of any API says, as one line: "reasoning(hm) text(hi) call(id name arguments) end(reason) usage(in out …)".
 * Streams are put together as clients do: deltas by their index or item. Needs texts without NUL. */
#ifndef TESTS_SUPPORT_ANSWER_SUMMARY_H
#define TESTS_SUPPORT_ANSWER_SUMMARY_H

#include "base/buf.h"
#include "cunit_main.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_PARTS_MAX = 256 };

struct summary_part {
    char kind[12]; /* "text", "reasoning", "refusal", "call" */
    char head[160];
    struct buf text, seal, cited;
};

struct summary {
    struct summary_part parts[SUMMARY_PARTS_MAX];
    int count, events;
    char end[80];
    struct buf usage, model;
    bool is_over;
};

static inline void summary_clear(struct summary *s)
{
    for (int i = 0; i < SUMMARY_PARTS_MAX; i++) {
        buf_clear(&s->parts[i].text);
        buf_clear(&s->parts[i].seal);
        buf_clear(&s->parts[i].cited);
    }
    buf_clear(&s->usage);
    buf_clear(&s->model);
}
#define SUMMARY_CLEANUP __attribute__((cleanup(summary_clear)))

static inline const cJSON *summary_at(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline const char *summary_text(const cJSON *object, const char *name)
{
    const cJSON *item = summary_at(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static inline struct summary_part *summary_part(struct summary *s, int index, const char *kind)
{
    CU_ASSERT_TRUE_FATAL(index >= 0 && index <= s->count && index < SUMMARY_PARTS_MAX);
    s->count = index == s->count ? index + 1 : s->count;
    struct summary_part *part = &s->parts[index];
    if (kind != NULL) {
        (void)snprintf(part->kind, sizeof part->kind, "%s", kind); /* fits */
    }
    return part;
}

static inline void summary_call(struct summary_part *part, const char *id, const char *name)
{
    (void)snprintf(part->head, sizeof part->head, "%s %s ", id, name); /* fits, in tests */
}

/* "in out", and what is said beside them. */
static inline void summary_usage(struct summary *s, const cJSON *usage, const char *const *names)
{
    buf_reset(&s->usage);
    for (; cJSON_IsObject(usage) && *names != NULL; names++) {
        char path[80];
        (void)snprintf(path, sizeof path, "%s", *names); /* fits */
        char *dot = strchr(path, '.');
        if (dot != NULL) {
            *dot = '\0';
        }
        const cJSON *item = summary_at(usage, path);
        item = dot == NULL ? item : summary_at(item, dot + 1);
        if (cJSON_IsNumber(item)) {
            (void)buf_printf(&s->usage, "%s%.0f", s->usage.len > 0 ? " " : "", item->valuedouble);
        } else {
            (void)buf_puts(&s->usage, s->usage.len > 0 ? " -" : "-");
        }
    }
}

/* The pages that a text cites, and where in it: "url 0-5", or the url alone. */
static inline void summary_cited(struct summary_part *part, const cJSON *citation)
{
    const cJSON *inner = summary_at(citation, "url_citation"),
                *place = inner == NULL ? citation : inner,
                *start = summary_at(place, "start_index");
    (void)buf_printf(&part->cited, "%s%s", part->cited.len > 0 ? ", " : "",
                     summary_text(place, "url"));
    if (cJSON_IsNumber(start)) {
        (void)buf_printf(&part->cited, " %d-%d", start->valueint,
                         summary_at(place, "end_index")->valueint);
    }
}

static inline void summary_cited_all(struct summary_part *part, const cJSON *list)
{
    const cJSON *citation;
    cJSON_ArrayForEach(citation, list)
    {
        summary_cited(part, citation);
    }
}

/* ---- chat: a part for each kind of text, then the calls ---- */

static inline struct summary_part *summary_chat_part(struct summary *s, const char *kind, int call)
{
    for (int i = 0; i < s->count; i++) {
        bool is_of_kind = strcmp(s->parts[i].kind, kind) == 0;
        if (is_of_kind && call-- == 0) {
            return &s->parts[i];
        }
    }
    return summary_part(s, s->count, kind);
}

static inline void summary_chat_calls(struct summary *s, const cJSON *calls, bool is_stream)
{
    const cJSON *call;
    int place = 0;
    cJSON_ArrayForEach(call, calls)
    {
        const cJSON *index = summary_at(call, "index");
        CU_ASSERT_TRUE_FATAL(!is_stream || cJSON_IsNumber(index));
        const cJSON *inside = summary_at(call, "function");
        inside = inside == NULL ? summary_at(call, "custom") : inside;
        struct summary_part *part =
            summary_chat_part(s, "call", is_stream ? index->valueint : place++);
        if (summary_at(call, "id") != NULL) {
            CU_ASSERT_STRING_EQUAL(part->head, "");
            summary_call(part, summary_text(call, "id"), summary_text(inside, "name"));
        }
        (void)buf_puts(&part->text, summary_text(inside, "arguments"));
        (void)buf_puts(&part->text, summary_text(inside, "input"));
    }
}

static inline void summary_chat(struct summary *s, const cJSON *event, bool is_stream)
{
    static const char *const kinds[][2] = {
        {"reasoning_content", "reasoning"}, {"content", "text"}, {"refusal", "refusal"}};
    static const char *const counts[] = {"prompt_tokens", "completion_tokens",
                                         "prompt_tokens_details.cached_tokens",
                                         "completion_tokens_details.reasoning_tokens", NULL};
    const cJSON *choice = cJSON_GetArrayItem(summary_at(event, "choices"), 0);
    const cJSON *delta = summary_at(choice, is_stream ? "delta" : "message");
    for (size_t i = 0; i < 3; i++) {
        const char *text = summary_text(delta, kinds[i][0]);
        if (text[0] != '\0') {
            (void)buf_puts(&summary_chat_part(s, kinds[i][1], 0)->text, text);
        }
    }
    if (summary_at(delta, "annotations") != NULL) {
        summary_cited_all(summary_chat_part(s, "text", 0), summary_at(delta, "annotations"));
    }
    summary_chat_calls(s, summary_at(delta, "tool_calls"), is_stream);
    if (summary_text(choice, "finish_reason")[0] != '\0') {
        (void)snprintf(s->end, sizeof s->end, "%s", summary_text(choice, "finish_reason"));
    }
    if (summary_at(event, "usage") != NULL) {
        summary_usage(s, summary_at(event, "usage"), counts);
    }
}

/* ---- messages: a part for each block ---- */

static inline void summary_block(struct summary *s, int index, const cJSON *block)
{
    const char *type = summary_text(block, "type");
    bool is_call = strcmp(type, "tool_use") == 0;
    struct summary_part *part = summary_part(s, index,
                                             is_call                         ? "call"
                                             : strcmp(type, "thinking") == 0 ? "reasoning"
                                                                             : "text");
    if (is_call) {
        summary_call(part, summary_text(block, "id"), summary_text(block, "name"));
    }
    (void)buf_puts(&part->text, summary_text(block, "text"));
    (void)buf_puts(&part->text, summary_text(block, "thinking"));
    (void)buf_puts(&part->text, summary_text(block, "input"));
    (void)buf_puts(&part->seal, summary_text(block, "signature"));
    summary_cited_all(part, summary_at(block, "citations"));
}

static inline void summary_messages_end(struct summary *s, const cJSON *delta, const cJSON *usage)
{
    static const char *const counts[] = {"input_tokens", "output_tokens", "cache_read_input_tokens",
                                         "cache_creation_input_tokens", NULL};
    (void)snprintf(s->end, sizeof s->end, "%s", summary_text(delta, "stop_reason"));
    summary_usage(s, usage, counts);
}

static inline void summary_messages(struct summary *s, const cJSON *event, bool is_stream)
{
    const char *type = summary_text(event, "type");
    const cJSON *index = summary_at(event, "index"), *delta = summary_at(event, "delta"), *block;
    int place = cJSON_IsNumber(index) ? index->valueint : -1;
    if (!is_stream) {
        cJSON_ArrayForEach(block, summary_at(event, "content"))
        {
            summary_block(s, s->count, block);
        }
        summary_messages_end(s, event, summary_at(event, "usage"));
    } else if (strcmp(type, "content_block_start") == 0) {
        summary_block(s, place, summary_at(event, "content_block"));
    } else if (strcmp(type, "content_block_delta") == 0) {
        struct summary_part *part = summary_part(s, place, NULL);
        (void)buf_puts(&part->text, summary_text(delta, "text"));
        (void)buf_puts(&part->text, summary_text(delta, "thinking"));
        (void)buf_puts(&part->text, summary_text(delta, "partial_json"));
        (void)buf_puts(&part->seal, summary_text(delta, "signature"));
        if (summary_at(delta, "citation") != NULL) {
            summary_cited(part, summary_at(delta, "citation"));
        }
    } else if (strcmp(type, "message_delta") == 0) {
        summary_messages_end(s, delta, summary_at(event, "usage"));
    }
    s->is_over = s->is_over || strcmp(type, "message_stop") == 0;
}

/* ---- responses: the items of the last event; deltas must have told the same ---- */

static inline void summary_item(struct summary *s, const cJSON *item)
{
    const char *type = summary_text(item, "type");
    const cJSON *part;
    if (strcmp(type, "message") == 0) {
        cJSON_ArrayForEach(part, summary_at(item, "content"))
        {
            bool is_refusal = strcmp(summary_text(part, "type"), "refusal") == 0;
            struct summary_part *one = summary_part(s, s->count, is_refusal ? "refusal" : "text");
            (void)buf_puts(&one->text, summary_text(part, is_refusal ? "refusal" : "text"));
            summary_cited_all(one, summary_at(part, "annotations"));
        }
    } else if (strcmp(type, "reasoning") == 0) {
        struct summary_part *one = summary_part(s, s->count, "reasoning");
        cJSON_ArrayForEach(part, summary_at(item, "summary"))
        {
            (void)buf_puts(&one->text, summary_text(part, "text"));
        }
        (void)buf_puts(&one->seal, summary_text(item, "encrypted_content"));
    } else {
        struct summary_part *one = summary_part(s, s->count, "call");
        summary_call(one, summary_text(item, "call_id"), summary_text(item, "name"));
        (void)buf_puts(&one->text, summary_text(item, "arguments"));
        (void)buf_puts(&one->text, summary_text(item, "input"));
    }
}

static inline void summary_responses(struct summary *s, const cJSON *event, bool is_stream)
{
    static const char *const counts[] = {"input_tokens", "output_tokens",
                                         "input_tokens_details.cached_tokens",
                                         "output_tokens_details.reasoning_tokens", NULL};
    const char *type = summary_text(event, "type");
    const cJSON *response = is_stream ? summary_at(event, "response") : event, *item;
    bool is_last =
        strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0;
    if (is_stream) {
        CU_ASSERT_EQUAL(summary_at(event, "sequence_number")->valueint, s->events);
    }
    s->is_over = s->is_over || is_last;
    if (is_stream && !is_last) {
        return;
    }
    cJSON_ArrayForEach(item, summary_at(response, "output"))
    {
        summary_item(s, item);
    }
    const char *reason = summary_text(summary_at(response, "incomplete_details"), "reason");
    (void)snprintf(s->end, sizeof s->end, "%s%s%s", summary_text(response, "status"),
                   reason[0] != '\0' ? " " : "", reason);
    summary_usage(s, summary_at(response, "usage"), counts);
}

/* ---- the whole ---- */

static inline void summary_event(struct summary *s, const char *api, struct str json,
                                 bool is_stream)
{
    cJSON *event = cJSON_ParseWithLength(json.data, json.len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(event);
    if (strcmp(api, "chat") == 0) {
        summary_chat(s, event, is_stream);
    } else if (strcmp(api, "messages") == 0) {
        summary_messages(s, event, is_stream);
    } else {
        summary_responses(s, event, is_stream);
    }
    s->events++;
    cJSON_Delete(event);
}

static inline void summary_print(const struct summary *s, struct buf *out)
{
    for (int i = 0; i < s->count; i++) {
        const struct summary_part *part = &s->parts[i];
        (void)buf_printf(
            out, "%s(%s%s%s%s%s%s) ", part->kind, part->head,
            part->text.len > 0 ? part->text.data : "", part->seal.len > 0 ? " sealed " : "",
            part->seal.len > 0 ? part->seal.data : "", part->cited.len > 0 ? " cites " : "",
            part->cited.len > 0 ? part->cited.data : "");
    }
    (void)buf_printf(out, "end(%s)", s->end);
    if (s->usage.len > 0) {
        (void)buf_printf(out, " usage(%s)", s->usage.data);
    }
}

/* `api`: the one that the answer is in. */
static inline void answer_summary(const char *api, bool is_stream, struct str answer,
                                  struct buf *out)
{
    SUMMARY_CLEANUP struct summary s = {0};
    bool is_chat = strcmp(api, "chat") == 0;
    if (!is_stream) {
        summary_event(&s, api, answer, false);
    }
    while (is_stream && answer.len > 0) {
        const char *end = memmem(answer.data, answer.len, "\n\n", 2);
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        struct str event = {answer.data, (size_t)(end - answer.data)};
        answer = (struct str){end + 2, answer.len - event.len - 2};
        const char *data = is_chat ? event.data : memmem(event.data, event.len, "\ndata: ", 7);
        CU_ASSERT_PTR_NOT_NULL_FATAL(data);
        data += is_chat ? 6 : 7;
        struct str json = {data, event.len - (size_t)(data - event.data)};
        CU_ASSERT_FALSE(s.is_over); /* nothing comes behind the end */
        if (is_chat && str_is(json, "[DONE]")) {
            s.is_over = true;
        } else {
            summary_event(&s, api, json, true);
        }
    }
    CU_ASSERT_TRUE(!is_stream || s.is_over);
    summary_print(&s, out);
}

#endif
