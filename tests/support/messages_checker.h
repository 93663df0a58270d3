/* Reads a client's stream of the messages surface as strictly as the strictest client libraries do, and puts its message
 * together as they do. Says what is wrong with it in words; NULL: nothing. Without CUnit, so that fuzzers use it too. */
#ifndef TESTS_SUPPORT_MESSAGES_CHECKER_H
#define TESTS_SUPPORT_MESSAGES_CHECKER_H

#include "base/buf.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checker {
    bool trusts_upstream; /* blocks that are not ours have all that they should have */
    const char *pending;  /* the call of an earlier answer whose result begins this one, or NULL */
    char problem[200];
    bool started, ended, stopped, failed;
    cJSON *message, *content;
    size_t blocks;
    cJSON *open;       /* the block that goes on */
    struct buf input;  /* of it */
    bool input_is_bad; /* of a block that has ended */
    int pings, errors;
};

static inline bool check_that(struct checker *c, bool good, const char *problem)
{
    if (!good && c->problem[0] == '\0') {
        (void)snprintf(c->problem, sizeof c->problem, "%s", problem);
    }
    return good;
}

static inline const char *check_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static inline bool check_has_text(const cJSON *object, const char *name)
{
    const char *text = check_text(object, name);
    return text != NULL && text[0] != '\0';
}

static inline const cJSON *check_item(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline bool check_number(const cJSON *object, const char *name)
{
    return cJSON_IsNumber(check_item(object, name));
}

static inline bool check_is(const char *text, const char *other)
{
    return text != NULL && strcmp(text, other) == 0;
}

/* A mark of ours and 32 digits: upstreams that say "srvtoolu_sg" do not count. */
static inline bool check_is_our_id(const char *id)
{
    return id != NULL && strncmp(id, "srvtoolu_sg", 11) == 0 && strlen(id) == 43 &&
           strspn(id + 11, "0123456789abcdef") == 32;
}

static inline bool check_is_ours(const cJSON *block)
{
    return check_is_our_id(check_text(block, "id")) ||
           check_is_our_id(check_text(block, "tool_use_id"));
}

/* ---- results: wire.md 5.4 ---- */

static inline void check_run(struct checker *c, const cJSON *content)
{
    check_that(c, check_text(content, "stdout") != NULL, "a result without stdout");
    check_that(c, check_text(content, "stderr") != NULL, "a result without stderr");
    check_that(c, check_number(content, "return_code"), "a result without return_code");
    check_that(c, cJSON_IsArray(check_item(content, "content")), "a result without content");
}

static inline bool check_number_or_null(const cJSON *object, const char *name)
{
    const cJSON *item = check_item(object, name);
    return cJSON_IsNumber(item) || cJSON_IsNull(item);
}

static inline void check_edit(struct checker *c, const char *type, const cJSON *content)
{
    if (strstr(type, "_view_result") != NULL) {
        const char *file = check_text(content, "file_type");
        check_that(c, check_is(file, "text") || check_is(file, "image") || check_is(file, "pdf"),
                   "a view without its file_type");
        check_that(c, check_text(content, "content") != NULL, "a view without content");
        check_that(c,
                   check_number_or_null(content, "num_lines") &&
                       check_number_or_null(content, "start_line") &&
                       check_number_or_null(content, "total_lines"),
                   "a view without its lines");
    } else if (strstr(type, "_create_result") != NULL) {
        check_that(c, cJSON_IsBool(check_item(content, "is_file_update")),
                   "a create without is_file_update");
    } else {
        const cJSON *lines = check_item(content, "lines");
        check_that(c, strstr(type, "_str_replace_result") != NULL, "an unknown edit");
        check_that(c,
                   check_number_or_null(content, "old_start") &&
                       check_number_or_null(content, "old_lines") &&
                       check_number_or_null(content, "new_start") &&
                       check_number_or_null(content, "new_lines"),
                   "a replacement without its places");
        check_that(c, cJSON_IsArray(lines) || cJSON_IsNull(lines), "a replacement without lines");
    }
}

static inline void check_hits(struct checker *c, const cJSON *content)
{
    const cJSON *hit;
    cJSON_ArrayForEach(hit, content)
    {
        const cJSON *age = check_item(hit, "page_age");
        check_that(c,
                   check_is(check_text(hit, "type"), "web_search_result") &&
                       check_text(hit, "title") != NULL && check_text(hit, "url") != NULL &&
                       check_text(hit, "encrypted_content") != NULL &&
                       (cJSON_IsString(age) || cJSON_IsNull(age)),
                   "a hit that lacks something");
    }
}

/* The codes that each of the web's tools has. */
static inline void check_web_code(struct checker *c, const char *type, const char *code)
{
    static const char *const common[] = {"invalid_tool_input", "unavailable", "max_uses_exceeded",
                                         "too_many_requests"};
    bool is_search = strcmp(type, "web_search_tool_result") == 0;
    bool is_known = check_is(code, is_search ? "query_too_long" : "url_too_long") ||
                    check_is(code, is_search ? "request_too_large" : "url_not_accessible");
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        is_known = is_known || check_is(code, common[i]);
    }
    check_that(c, is_known, "an error_code that the web's tools do not have");
}

/* Of ours: an upstream's own are its affair. */
static inline void check_citation(struct checker *c, const cJSON *citation)
{
    const char *text = check_text(citation, "cited_text");
    size_t characters = 0;
    if (!check_is(check_text(citation, "encrypted_index"), "")) {
        return;
    }
    for (; text != NULL && *text != '\0'; text++) {
        characters += ((unsigned char)*text & 0xC0) != 0x80;
    }
    check_that(c,
               check_is(check_text(citation, "type"), "web_search_result_location") &&
                   check_has_text(citation, "url") && check_text(citation, "title") != NULL &&
                   text != NULL && characters <= 150,
               "a citation that lacks something");
}

/* The call that a result is of stands before it, and has no other. */
static inline void check_pair(struct checker *c, const char *id)
{
    const cJSON *block;
    size_t calls = check_is(c->pending, id), results = 0;
    cJSON_ArrayForEach(block, c->content)
    {
        calls += check_is(check_text(block, "type"), "server_tool_use") &&
                 check_is(check_text(block, "id"), id);
        results += check_is(check_text(block, "tool_use_id"), id);
    }
    check_that(c, calls == 1, "a result whose call does not stand before it");
    check_that(c, results == 0, "a second result of a call");
}

static inline void check_result(struct checker *c, const char *type, const cJSON *block)
{
    static const char *const known[] = {"code_execution_tool_result",
                                        "bash_code_execution_tool_result",
                                        "text_editor_code_execution_tool_result",
                                        "web_search_tool_result", "web_fetch_tool_result"};
    const cJSON *content = check_item(block, "content");
    const char *inner = check_text(content, "type");
    char error[80];
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        is_known = is_known || strcmp(known[i], type) == 0;
    }
    check_that(c, is_known, "a result of an unknown type");
    check_that(c, check_has_text(block, "tool_use_id"), "a result without tool_use_id");
    (void)snprintf(error, sizeof error, "%s_error", type);
    if (check_is(inner, error)) {
        check_that(c, check_has_text(content, "error_code"), "an error without error_code");
        if (check_is_ours(block) && strncmp(type, "web_", 4) == 0) {
            check_web_code(c, type, check_text(content, "error_code"));
            check_that(c, check_has_text(check_item(block, "caller"), "type"),
                       "an error of the web without caller");
        }
        check_that(c,
                   strncmp(type, "text_editor", 11) != 0 ||
                       check_item(content, "error_message") != NULL,
                   "an editor's error without error_message");
    } else if (strcmp(type, "web_search_tool_result") == 0) {
        check_that(c, cJSON_IsArray(content), "search results that are no array");
        check_hits(c, content);
        check_that(c, check_has_text(check_item(block, "caller"), "type"), "hits without caller");
    } else if (!check_that(c, inner != NULL, "a result whose content has no type")) {
        return;
    } else if (strncmp(type, "text_editor", 11) == 0) {
        check_edit(c, inner, content);
    } else {
        check_that(c,
                   strcmp(inner, type[0] == 'b' ? "bash_code_execution_result"
                                                : "code_execution_result") == 0,
                   "a result whose content is of another tool");
        check_run(c, content);
    }
}

/* ---- blocks ---- */

static inline bool check_is_empty_object(const cJSON *item)
{
    return cJSON_IsObject(item) && item->child == NULL;
}

static inline bool check_is_call(const char *type)
{
    return strcmp(type, "tool_use") == 0 || strcmp(type, "server_tool_use") == 0;
}

/* `streamed`: as it begins, with nothing in what grows. */
static inline void check_block(struct checker *c, const cJSON *block, bool streamed)
{
    const char *type = check_text(block, "type");
    const cJSON *input = check_item(block, "input"), *caller = check_item(block, "caller");
    if (!check_that(c, type != NULL || !c->trusts_upstream, "a block without a type") ||
        type == NULL) {
        return;
    }
    if (strcmp(type, "text") == 0) {
        const char *text = check_text(block, "text");
        check_that(c, text != NULL, "a text block without text");
        check_that(c, !streamed || check_is(text, ""), "text in the start of its block");
        const cJSON *citation;
        cJSON_ArrayForEach(citation, check_item(block, "citations"))
        {
            check_that(c, !streamed, "citations in the start of their block");
            check_citation(c, citation);
        }
    } else if (strcmp(type, "thinking") == 0) {
        const char *text = check_text(block, "thinking");
        check_that(c, text != NULL, "a thinking block without thinking");
        check_that(c, !streamed || check_is(text, ""), "thinking in the start of its block");
    } else if (check_is_call(type)) {
        bool whole = c->trusts_upstream || check_is_ours(block);
        bool strict = whole || type[0] == 't';
        check_that(c, !strict || check_has_text(block, "id"), "a call without id");
        check_that(c, !strict || check_has_text(block, "name"), "a call without name");
        check_that(c, streamed ? check_is_empty_object(input) : cJSON_IsObject(input),
                   "a call whose input does not begin as {}");
        check_that(c, !whole || caller == NULL || check_has_text(caller, "type"),
                   "a caller without type");
    } else if (strstr(type, "_tool_result") != NULL &&
               (c->trusts_upstream || check_is_ours(block))) {
        check_result(c, type, block);
        if (check_has_text(block, "tool_use_id")) {
            check_pair(c, check_text(block, "tool_use_id"));
        }
    }
}

static inline void check_start_block(struct checker *c, const cJSON *event)
{
    const cJSON *block = check_item(event, "content_block");
    check_that(c, c->open == NULL, "a block begins while another goes on");
    if (!check_that(c, cJSON_IsObject(block), "a start without content_block")) {
        return;
    }
    check_that(c, check_number(event, "index"), "a start without index");
    check_that(c, check_item(event, "index")->valuedouble == (double)c->blocks,
               "an index that is not the block's place");
    check_block(c, block, true);
    c->blocks++;
    c->open = cJSON_Duplicate(block, true);
    cJSON_AddItemToArray(c->content, c->open);
    buf_reset(&c->input);
}

static inline void check_grow(struct checker *c, const char *name, const char *more)
{
    cJSON *item = cJSON_GetObjectItemCaseSensitive(c->open, name);
    const char *before = cJSON_IsString(item) ? item->valuestring : "";
    struct buf joined = {0};
    buf_printf(&joined, "%s%s", before, more);
    if (item != NULL) {
        cJSON_ReplaceItemInObjectCaseSensitive(c->open, name, cJSON_CreateString(joined.data));
    } else {
        cJSON_AddItemToObject(c->open, name, cJSON_CreateString(joined.data));
    }
    buf_clear(&joined);
}

static inline void check_input_piece(struct checker *c, const char *piece)
{
    check_that(c, c->input.len > 0 || piece[0] == '\0' || piece[0] == '{',
               "arguments that do not begin with {");
    buf_puts(&c->input, piece);
}

static inline void check_cited(struct checker *c, const cJSON *citation)
{
    cJSON *citations = cJSON_GetObjectItemCaseSensitive(c->open, "citations");
    bool is_ours = check_is(check_text(citation, "encrypted_index"), "");
    check_that(c, cJSON_IsObject(citation), "no citation");
    check_that(c, !is_ours || cJSON_IsArray(citations),
               "a cited text that began without citations");
    check_citation(c, citation);
    if (!cJSON_IsArray(citations)) {
        cJSON_DeleteItemFromObjectCaseSensitive(c->open, "citations");
        citations = cJSON_AddArrayToObject(c->open, "citations");
    }
    cJSON_AddItemToArray(citations, cJSON_Duplicate(citation, true));
}

static inline void check_delta(struct checker *c, const cJSON *event)
{
    const cJSON *delta = check_item(event, "delta");
    const char *type = check_text(delta, "type");
    if (!check_that(c, c->open != NULL, "a delta without a block") ||
        !check_that(c, type != NULL, "a delta without type")) {
        return;
    }
    const char *of = check_text(c->open, "type");
    of = of == NULL ? "" : of;
    check_that(c,
               check_number(event, "index") &&
                   check_item(event, "index")->valuedouble == (double)(c->blocks - 1),
               "a delta of another block");
    const char *text = check_text(delta, "text"), *thinking = check_text(delta, "thinking");
    const char *signature = check_text(delta, "signature");
    const char *json = check_text(delta, "partial_json");
    bool of_text = strcmp(of, "text") == 0, of_thinking = strcmp(of, "thinking") == 0;
    bool of_result = strstr(of, "_tool_result") != NULL;
    bool of_call = check_is_call(of);
    bool is_known = of_text || of_thinking || of_call ||
                    (of_result && (c->trusts_upstream || check_is_ours(c->open)));
    if (strcmp(type, "text_delta") == 0 && of_text && check_that(c, text != NULL, "no text")) {
        check_grow(c, "text", text);
    } else if (strcmp(type, "thinking_delta") == 0 && of_thinking &&
               check_that(c, thinking != NULL, "no thinking")) {
        check_grow(c, "thinking", thinking);
    } else if (strcmp(type, "signature_delta") == 0 && of_thinking &&
               check_that(c, signature != NULL, "no signature")) {
        check_grow(c, "signature", signature);
    } else if (strcmp(type, "citations_delta") == 0 && of_text) {
        check_cited(c, check_item(delta, "citation"));
    } else if (strcmp(type, "input_json_delta") == 0 && of_call &&
               check_that(c, json != NULL, "no partial_json")) {
        check_input_piece(c, json);
    } else {
        check_that(c, !is_known, "a delta that does not fit its block");
    }
}

static inline void check_stop_block(struct checker *c, const cJSON *event)
{
    if (!check_that(c, c->open != NULL, "a stop without a block")) {
        return;
    }
    check_that(c,
               check_number(event, "index") &&
                   check_item(event, "index")->valuedouble == (double)(c->blocks - 1),
               "a stop of another block");
    const char *type = check_text(c->open, "type");
    if (type != NULL && check_is_call(type) && c->input.len > 0) {
        cJSON *input = cJSON_ParseWithOpts(c->input.data, NULL, true);
        c->input_is_bad = c->input_is_bad || !cJSON_IsObject(input);
        if (input != NULL) {
            cJSON_ReplaceItemInObjectCaseSensitive(c->open, "input", input);
        }
    }
    c->open = NULL;
}

/* ---- the frame ---- */

static inline void check_start(struct checker *c, const cJSON *event)
{
    const cJSON *message = check_item(event, "message");
    const cJSON *content = check_item(message, "content"), *usage = check_item(message, "usage");
    check_that(c, !c->started, "a second message_start");
    c->started = true;
    check_that(c, check_has_text(message, "id"), "message_start without id");
    check_that(c, check_is(check_text(message, "type"), "message"), "message_start without type");
    check_that(c, check_is(check_text(message, "role"), "assistant"), "message_start without role");
    check_that(c, check_text(message, "model") != NULL, "message_start without model");
    check_that(c, cJSON_IsArray(content) && content->child == NULL,
               "message_start without an empty content");
    check_that(c, cJSON_IsNull(check_item(message, "stop_reason")),
               "message_start without stop_reason null");
    check_that(c, check_number(usage, "input_tokens") && check_number(usage, "output_tokens"),
               "message_start without usage");
    if (c->problem[0] == '\0') {
        c->message = cJSON_Duplicate(message, true);
        c->content = cJSON_GetObjectItemCaseSensitive(c->message, "content");
    }
}

static inline void check_calls_have_results(struct checker *c)
{
    const cJSON *block, *other;
    cJSON_ArrayForEach(block, c->content)
    {
        bool found = !check_is_ours(block) || check_item(block, "id") == NULL;
        cJSON_ArrayForEach(other, c->content)
        {
            found = found || check_is(check_text(other, "tool_use_id"), check_text(block, "id"));
        }
        check_that(c, found, "a call of ours without a result");
    }
}

static inline void check_end(struct checker *c, const cJSON *event)
{
    const cJSON *delta = check_item(event, "delta"), *usage = check_item(event, "usage");
    const cJSON *container = check_item(delta, "container");
    const char *reason = check_text(delta, "stop_reason");
    check_that(c, !c->ended, "a second message_delta");
    c->ended = true;
    check_that(c, c->open == NULL, "message_delta while a block goes on");
    check_that(c, reason != NULL, "message_delta without stop_reason");
    check_that(c, check_item(delta, "stop_sequence") != NULL,
               "message_delta without stop_sequence");
    check_that(c, check_number(usage, "output_tokens"), "message_delta without usage");
    check_that(c, !c->input_is_bad || check_is(reason, "max_tokens") || !c->trusts_upstream,
               "arguments that are no JSON object");
    check_that(c,
               container == NULL || cJSON_IsNull(container) || !c->trusts_upstream ||
                   (check_has_text(container, "id") && check_has_text(container, "expires_at") &&
                    check_item(container, "skills") != NULL),
               "a container that lacks something");
    check_calls_have_results(c);
    if (c->problem[0] == '\0') {
        cJSON_ReplaceItemInObjectCaseSensitive(c->message, "stop_reason",
                                               cJSON_CreateString(reason));
        cJSON_ReplaceItemInObjectCaseSensitive(c->message, "usage", cJSON_Duplicate(usage, true));
        if (container != NULL) {
            cJSON_DeleteItemFromObjectCaseSensitive(c->message, "container");
            cJSON_AddItemToObject(c->message, "container", cJSON_Duplicate(container, true));
        }
    }
}

static inline void check_error(struct checker *c, const cJSON *event)
{
    const cJSON *error = check_item(event, "error");
    check_that(c, check_has_text(error, "type") && check_text(error, "message") != NULL,
               "an error without type or message");
    c->errors++;
    c->failed = true;
}

static inline void check_event(struct checker *c, const char *name, const cJSON *event)
{
    const char *type = check_text(event, "type");
    if (!check_that(c, !c->stopped && !c->failed, "something behind the end") ||
        !check_that(c, check_is(type, name), "an event whose name is not its type")) {
        return;
    }
    if (strcmp(name, "ping") == 0) {
        c->pings++;
    } else if (strcmp(name, "error") == 0) {
        check_error(c, event);
    } else if (strcmp(name, "message_start") == 0) {
        check_start(c, event);
    } else if (!check_that(c, c->started, "something before message_start")) {
        return;
    } else if (strcmp(name, "message_stop") == 0) {
        check_that(c, c->ended, "message_stop without message_delta");
        c->stopped = true;
    } else if (!check_that(c, !c->ended, "a block behind message_delta")) {
        return;
    } else if (strcmp(name, "content_block_start") == 0) {
        check_start_block(c, event);
    } else if (strcmp(name, "content_block_delta") == 0) {
        check_delta(c, event);
    } else if (strcmp(name, "content_block_stop") == 0) {
        check_stop_block(c, event);
    } else if (strcmp(name, "message_delta") == 0) {
        check_end(c, event);
    } else {
        check_that(c, false, "an event of an unknown type");
    }
}

static inline void check_lines(struct checker *c, struct str event)
{
    char name[40];
    const char *line = memchr(event.data, '\n', event.len);
    struct str start = STR("event: "), data = STR("\ndata: ");
    if (!check_that(c, line != NULL && str_starts(event, start), "an event without its name")) {
        return;
    }
    size_t name_len = (size_t)(line - event.data) - start.len;
    struct str rest = {line, event.len - (size_t)(line - event.data)};
    if (!check_that(c, name_len < sizeof name && str_starts(rest, data), "an event without data") ||
        !check_that(c, memchr(rest.data + 1, '\n', rest.len - 1) == NULL,
                    "data of more than a line")) {
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)name_len, event.data + start.len);
    cJSON *json = cJSON_ParseWithLength(rest.data + data.len, rest.len - data.len);
    if (check_that(c, cJSON_IsObject(json), "data that is no JSON object")) {
        check_event(c, name, json);
    }
    cJSON_Delete(json);
}

/* The whole stream; `may_end_early`: an answer that is under way. */
static inline const char *check_stream(struct checker *c, struct str stream, bool may_end_early)
{
    while (stream.len > 0 && c->problem[0] == '\0') {
        const char *end = memmem(stream.data, stream.len, "\n\n", 2);
        if (!check_that(c, end != NULL, "an event that does not end")) {
            break;
        }
        struct str event = {stream.data, (size_t)(end - stream.data)};
        if (event.data[0] != ':') {
            check_lines(c, event);
        }
        stream = (struct str){end + 2, stream.len - event.len - 2};
    }
    check_that(c, c->stopped || c->failed || may_end_early, "a stream without its end");
    return c->problem[0] == '\0' ? NULL : c->problem;
}

/* The same of an answer in JSON. */
static inline const char *check_message(struct checker *c, struct str json)
{
    cJSON *message = cJSON_ParseWithLength(json.data, json.len);
    const cJSON *usage = check_item(message, "usage"), *content = check_item(message, "content");
    check_that(c, cJSON_IsObject(message), "no JSON object");
    check_that(c, check_has_text(message, "id") && check_text(message, "model") != NULL, "no id");
    check_that(c, check_is(check_text(message, "type"), "message"), "no type");
    check_that(c, check_is(check_text(message, "role"), "assistant"), "no role");
    check_that(c, check_text(message, "stop_reason") != NULL, "no stop_reason");
    check_that(c, check_item(message, "stop_sequence") != NULL, "no stop_sequence");
    check_that(c, check_number(usage, "input_tokens") && check_number(usage, "output_tokens"),
               "no usage");
    if (check_that(c, cJSON_IsArray(content), "no content")) {
        c->content = cJSON_CreateArray();
        for (const cJSON *block = content->child; block != NULL; block = block->next) {
            check_block(c, block, false);
            cJSON_AddItemToArray(c->content, cJSON_Duplicate(block, true));
        }
        check_calls_have_results(c);
        cJSON_Delete(c->content);
    }
    c->message = message;
    c->content = cJSON_GetObjectItemCaseSensitive(message, "content");
    return c->problem[0] == '\0' ? NULL : c->problem;
}

static inline void checker_clear(struct checker *c)
{
    cJSON_Delete(c->message);
    buf_clear(&c->input);
}
#define CHECKER_CLEANUP __attribute__((cleanup(checker_clear)))

#endif
