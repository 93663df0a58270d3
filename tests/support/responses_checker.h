/* A strict reader of event streams on responses: everything that the strictest client libraries ask for, at once. It
 * asserts, for a whole stream, that
 *   - each event is an `event:` line, one `data:` line of JSON and an empty line; its type is known and equal to the line;
 *   - sequence numbers count up from 0 without gaps;
 *   - `response.created` comes first, `response.in_progress` second, exactly one terminal event comes last, and the
 *     response's id, created_at and model never change; every response object has all keys;
 *   - indexes are 0..n-1 in the order of `added`; ids are not empty, never reused, never changed; `item_id` is the item's;
 *   - events fit the type of their item; content parts open before their deltas, in order, and close with the text that
 *     their deltas gave and the annotations that were added; code and arguments likewise; every item that opens closes, with
 *     its type and its container;
 *   - an annotation that cites a URL comes behind the text that it covers; a search runs, then has an action, with all its
 *     events in order where it is completed;
 *   - the final `output` is the items as they were closed.
 * What the stream said is returned for the test to look at. */
#ifndef TESTS_SUPPORT_RESPONSES_CHECKER_H
#define TESTS_SUPPORT_RESPONSES_CHECKER_H

#include "base/buf.h"
#include "responses_shapes.h"

enum { CHECKED_ITEMS_MAX = 64, CHECKED_PARTS_MAX = 32 };

struct checked_part {
    char list; /* 'c' or 's' */
    struct buf text;
    bool is_open, is_told;
    cJSON *annotations; /* that were added */
};

struct checked_item {
    char *id, *type;
    cJSON *added, *done;
    struct checked_part parts[CHECKED_PARTS_MAX];
    int parts_count;
    struct buf code, arguments; /* of the deltas */
    bool code_told, arguments_told;
    int searched; /* events of a search so far */
};

struct checked {
    struct checked_item items[CHECKED_ITEMS_MAX];
    int items_count, events, terminals, errors;
    cJSON *created, *final;
    struct buf order; /* names of events without "response.", deltas once in a row */
    struct buf text;  /* of all output texts, those of two messages with a bar between them */
    char terminal[40];
};

static inline void checked_clear(struct checked *c)
{
    for (int i = 0; i < c->items_count; i++) {
        struct checked_item *item = &c->items[i];
        free(item->id);
        free(item->type);
        cJSON_Delete(item->added);
        cJSON_Delete(item->done);
        buf_clear(&item->code);
        buf_clear(&item->arguments);
        for (int k = 0; k < item->parts_count; k++) {
            buf_clear(&item->parts[k].text);
            cJSON_Delete(item->parts[k].annotations);
        }
    }
    cJSON_Delete(c->created);
    cJSON_Delete(c->final);
    buf_clear(&c->order);
    buf_clear(&c->text);
}
#define CHECKED_CLEANUP __attribute__((cleanup(checked_clear)))

static inline void check_response_event(struct checked *c, const cJSON *event, const char *what)
{
    const cJSON *response = cJSON_GetObjectItem(event, "response");
    CHECK_EVENT(cJSON_IsObject(response), event);
    check_response_shape(response);
    const char *status = json_str(response, "status");
    bool is_start = strcmp(what, "created") == 0 || strcmp(what, "in_progress") == 0;
    CHECK_EVENT(strcmp(status, is_start ? "in_progress" : what) == 0, event);
    if (c->created == NULL) {
        c->created = cJSON_Duplicate(response, true);
    }
    CHECK_EVENT(strcmp(json_str(c->created, "id"), json_str(response, "id")) == 0, event);
    CHECK_EVENT(strcmp(json_str(c->created, "model"), json_str(response, "model")) == 0, event);
    CHECK_EVENT(json_num(c->created, "created_at") == json_num(response, "created_at"), event);
    if (is_start) {
        CHECK_EVENT(cJSON_GetArraySize(cJSON_GetObjectItem(response, "output")) == 0, event);
        CHECK_EVENT(cJSON_IsNull(cJSON_GetObjectItem(response, "usage")), event);
        return;
    }
    c->terminals++;
    (void)snprintf(c->terminal, sizeof c->terminal, "%s", what);
    c->final = cJSON_Duplicate(response, true);
    CHECK_EVENT(cJSON_IsObject(cJSON_GetObjectItem(response, "incomplete_details")) ==
                    (strcmp(what, "incomplete") == 0),
                event);
    CHECK_EVENT(cJSON_IsObject(cJSON_GetObjectItem(response, "error")) ==
                    (strcmp(what, "failed") == 0),
                event);
}

static inline void check_added(struct checked *c, const cJSON *event)
{
    const cJSON *object = cJSON_GetObjectItem(event, "item");
    CHECK_EVENT(cJSON_IsObject(object), event);
    check_item_shape(object);
    CHECK_EVENT(json_num(event, "output_index") == c->items_count, event); /* C008 */
    CU_ASSERT_TRUE_FATAL(c->items_count < CHECKED_ITEMS_MAX);
    for (int i = 0; i < c->items_count; i++) {
        CHECK_EVENT(strcmp(c->items[i].id, json_str(object, "id")) != 0, event);
    }
    struct checked_item *item = &c->items[c->items_count++];
    item->id = strdup(json_str(object, "id"));
    item->type = strdup(json_str(object, "type"));
    item->added = cJSON_Duplicate(object, true);
    if (strcmp(item->type, "message") == 0) {
        CHECK_EVENT(cJSON_GetArraySize(cJSON_GetObjectItem(object, "content")) == 0, event);
    }
}

static inline struct checked_item *check_item_of(struct checked *c, const cJSON *event)
{
    int index = json_num(event, "output_index");
    CHECK_EVENT(index >= 0 && index < c->items_count, event);
    struct checked_item *item = &c->items[index];
    CHECK_EVENT(item->done == NULL, event); /* nothing behind its end */
    return item;
}

static inline struct checked_item *check_sub_event(struct checked *c, const cJSON *event,
                                                   const char *type)
{
    struct checked_item *item = check_item_of(c, event);
    const char *id = json_str(event, "item_id");
    CHECK_EVENT(id != NULL && strcmp(id, item->id) == 0, event);
    CHECK_EVENT(type == NULL || strcmp(item->type, type) == 0, event);
    return item;
}

static inline void check_done(struct checked *c, const cJSON *event)
{
    struct checked_item *item = check_item_of(c, event);
    const cJSON *object = cJSON_GetObjectItem(event, "item");
    check_item_shape(object);
    CHECK_EVENT(strcmp(json_str(object, "id"), item->id) == 0, event);
    CHECK_EVENT(strcmp(json_str(object, "type"), item->type) == 0, event);
    const char *status = json_str(object, "status");
    CHECK_EVENT(status == NULL || strcmp(status, "in_progress") != 0, event);
    for (int i = 0; i < item->parts_count; i++) {
        CHECK_EVENT(!item->parts[i].is_open, event);
    }
    if (strcmp(item->type, "function_call") == 0) {
        CHECK_EVENT(item->arguments_told, event);
        CHECK_EVENT(strcmp(item->arguments.data, json_str(object, "arguments")) == 0, event);
        CHECK_EVENT(strcmp(json_str(item->added, "call_id"), json_str(object, "call_id")) == 0,
                    event);
    } else if (strcmp(item->type, "code_interpreter_call") == 0 &&
               strncmp(item->id, "ci_sg", 5) == 0) {
        CHECK_EVENT(item->code_told, event);
        CHECK_EVENT(strcmp(item->code.data, json_str(object, "code")) == 0, event);
        CHECK_EVENT(
            strcmp(json_str(item->added, "container_id"), json_str(object, "container_id")) == 0,
            event);
    } else if (strncmp(item->id, "ws_sg", 5) == 0) {
        CHECK_EVENT(item->searched == (strcmp(status, "completed") == 0 ? 3 : item->searched),
                    event);
        CHECK_EVENT(item->searched < 3 || strcmp(status, "completed") == 0, event);
    } else if (strcmp(item->type, "message") == 0) {
        const cJSON *part;
        int i = 0;
        if (c->text.len > 0) {
            buf_putc(&c->text, '|');
        }
        cJSON_ArrayForEach(part, cJSON_GetObjectItem(object, "content"))
        {
            const char *text = json_str(part, "text");
            text = text != NULL ? text : json_str(part, "refusal");
            CHECK_EVENT(i < item->parts_count, event);
            CHECK_EVENT(text == NULL || strcmp(item->parts[i].text.data, text) == 0, event);
            buf_puts(&c->text, text == NULL ? "" : text);
            i++;
        }
        CHECK_EVENT(i == item->parts_count, event);
    }
    item->done = cJSON_Duplicate(object, true);
}

static inline struct checked_part *check_part_of(struct checked_item *item, const cJSON *event,
                                                 bool is_summary)
{
    int index = json_num(event, is_summary ? "summary_index" : "content_index");
    for (int i = 0, n = 0; i < item->parts_count; i++) {
        if (item->parts[i].list == (is_summary ? 's' : 'c') && n++ == index) {
            return &item->parts[i];
        }
    }
    CHECK_EVENT("a part that was not added" == NULL, event);
    return NULL;
}

static inline void check_part_event(struct checked *c, const cJSON *event, bool is_summary,
                                    bool is_done)
{
    struct checked_item *item = check_sub_event(c, event, is_summary ? "reasoning" : NULL);
    const cJSON *object = cJSON_GetObjectItem(event, "part");
    CHECK_EVENT(cJSON_IsObject(object), event);
    CHECK_EVENT(json_str(object, "type") != NULL, event);
    const char *text = json_str(object, "text");
    text = text != NULL ? text : json_str(object, "refusal");
    if (strcmp(json_str(object, "type"), "output_text") == 0) {
        CHECK_EVENT(cJSON_IsArray(cJSON_GetObjectItem(object, "annotations")), event);
    }
    if (is_done) {
        struct checked_part *part = check_part_of(item, event, is_summary);
        CHECK_EVENT(
            part->annotations == NULL ||
                cJSON_Compare(part->annotations, cJSON_GetObjectItem(object, "annotations"), true),
            event);
        CHECK_EVENT(part->is_open, event);
        CHECK_EVENT(text == NULL || (part->is_told && strcmp(part->text.data, text) == 0), event);
        part->is_open = false;
        return;
    }
    int n = 0;
    for (int i = 0; i < item->parts_count; i++) {
        n += item->parts[i].list == (is_summary ? 's' : 'c');
    }
    CHECK_EVENT(json_num(event, is_summary ? "summary_index" : "content_index") == n, event);
    CU_ASSERT_TRUE_FATAL(item->parts_count < CHECKED_PARTS_MAX);
    struct checked_part *part = &item->parts[item->parts_count++];
    part->list = is_summary ? 's' : 'c';
    part->is_open = true;
    buf_puts(&part->text, text == NULL ? "" : text);
}

static inline void check_text_event(struct checked *c, const cJSON *event, const char *type,
                                    const char *text_key, bool is_summary)
{
    struct checked_item *item = check_sub_event(c, event, type);
    struct checked_part *part = check_part_of(item, event, is_summary);
    CHECK_EVENT(part->is_open && !part->is_told, event);
    if (text_key == NULL) {
        CHECK_EVENT(json_str(event, "delta") != NULL, event);
        buf_puts(&part->text, json_str(event, "delta"));
        return;
    }
    CHECK_EVENT(json_str(event, text_key) != NULL, event);
    CHECK_EVENT(strcmp(part->text.data, json_str(event, text_key)) == 0, event);
    part->is_told = true;
}

static inline void check_piece(struct checked *c, const cJSON *event, const char *type,
                               const char *whole, bool is_done)
{
    struct checked_item *item = check_sub_event(c, event, type);
    bool is_code = strcmp(whole, "code") == 0;
    struct buf *text = is_code ? &item->code : &item->arguments;
    bool *told = is_code ? &item->code_told : &item->arguments_told;
    CHECK_EVENT(!*told, event);
    buf_puts(text, "");
    if (is_done) {
        CHECK_EVENT(json_str(event, whole) != NULL, event);
        CHECK_EVENT(strcmp(text->data, json_str(event, whole)) == 0, event);
        *told = true;
    } else {
        CHECK_EVENT(json_str(event, "delta") != NULL, event);
        buf_puts(text, json_str(event, "delta"));
    }
}

static inline void check_annotation(struct checked *c, const cJSON *event)
{
    struct checked_item *item = check_sub_event(c, event, "message");
    struct checked_part *part = check_part_of(item, event, false);
    const cJSON *annotation = cJSON_GetObjectItem(event, "annotation");
    part->annotations = part->annotations == NULL ? cJSON_CreateArray() : part->annotations;
    CHECK_EVENT(json_num(event, "annotation_index") == cJSON_GetArraySize(part->annotations),
                event);
    CHECK_EVENT(cJSON_IsObject(annotation), event);
    CHECK_EVENT(part->is_open && !part->is_told, event);
    check_citation(annotation, part->text.data);
    cJSON_AddItemToArray(part->annotations, cJSON_Duplicate(annotation, true));
}

static inline void check_error(struct checked *c, const cJSON *event)
{
    c->errors++;
    CHECK_EVENT(json_str(event, "code") != NULL, event);
    CHECK_EVENT(json_str(event, "message") != NULL, event);
    CHECK_EVENT(json_has(event, "param"), event);
    const cJSON *error = cJSON_GetObjectItem(event, "error");
    CHECK_EVENT(cJSON_IsObject(error), event);
    CHECK_EVENT(strcmp(json_str(error, "message"), json_str(event, "message")) == 0, event);
    CHECK_EVENT(json_str(error, "type") != NULL, event);
}

/* What runs tells each of its steps once, in this order. */
static inline void check_search_event(struct checked_item *item, const cJSON *event,
                                      const char *step)
{
    static const char *const steps[] = {"in_progress", "searching", "completed"};
    CHECK_EVENT(item->searched < 3 && strcmp(step, steps[item->searched]) == 0, event);
    item->searched++;
}

static inline bool check_kinds(struct checked *c, const cJSON *event, const char *what)
{
    static const char *const plain[] = {"code_interpreter_call.in_progress",
                                        "code_interpreter_call.interpreting",
                                        "code_interpreter_call.completed",
                                        "web_search_call.in_progress",
                                        "web_search_call.searching",
                                        "web_search_call.completed",
                                        "mcp_call.in_progress",
                                        "mcp_call.completed",
                                        "image_generation_call.in_progress",
                                        "image_generation_call.partial_image"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(what, plain[i]) == 0) {
            size_t len = (size_t)(strchr(what, '.') - what);
            struct checked_item *item = check_sub_event(c, event, NULL);
            CHECK_EVENT(strlen(item->type) == len && strncmp(item->type, what, len) == 0, event);
            if (strncmp(item->id, "ws_sg", 5) == 0) {
                check_search_event(item, event, what + len + 1);
            }
            return true;
        }
    }
    if (strncmp(what, "code_interpreter_call_code.", 27) == 0) {
        check_piece(c, event, "code_interpreter_call", "code", strcmp(what + 27, "done") == 0);
        return true;
    }
    return false;
}

static inline void check_one(struct checked *c, const cJSON *event, const char *what)
{
    static const struct {
        const char *what, *type, *text_key;
        bool is_summary;
    } texts[] = {{"output_text.delta", "message", NULL, false},
                 {"output_text.done", "message", "text", false},
                 {"refusal.delta", "message", NULL, false},
                 {"refusal.done", "message", "refusal", false},
                 {"reasoning_text.delta", "reasoning", NULL, false},
                 {"reasoning_text.done", "reasoning", "text", false},
                 {"reasoning_summary_text.delta", "reasoning", NULL, true},
                 {"reasoning_summary_text.done", "reasoning", "text", true}};
    static const char *const lifecycle[] = {"created", "in_progress", "completed", "incomplete",
                                            "failed"};
    for (size_t i = 0; i < sizeof lifecycle / sizeof lifecycle[0]; i++) {
        if (strcmp(what, lifecycle[i]) == 0) {
            check_response_event(c, event, what);
            return;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(what, texts[i].what) == 0) {
            check_text_event(c, event, texts[i].type, texts[i].text_key, texts[i].is_summary);
            return;
        }
    }
    if (strcmp(what, "output_item.added") == 0) {
        check_added(c, event);
    } else if (strcmp(what, "output_item.done") == 0) {
        check_done(c, event);
    } else if (strncmp(what, "content_part.", 13) == 0) {
        check_part_event(c, event, false, strcmp(what + 13, "done") == 0);
    } else if (strncmp(what, "reasoning_summary_part.", 23) == 0) {
        check_part_event(c, event, true, strcmp(what + 23, "done") == 0);
    } else if (strncmp(what, "function_call_arguments.", 24) == 0) {
        check_piece(c, event, "function_call", "arguments", strcmp(what + 24, "done") == 0);
    } else if (strcmp(what, "output_text.annotation.added") == 0) {
        check_annotation(c, event);
    } else {
        CHECK_EVENT(check_kinds(c, event, what), event);
    }
}

static inline void check_event(struct checked *c, const cJSON *event, const char *name)
{
    const char *type = json_str(event, "type");
    CHECK_EVENT(type != NULL && strcmp(type, name) == 0, event);
    CHECK_EVENT(json_num(event, "sequence_number") == c->events, event);
    CHECK_EVENT(c->terminals == 0, event); /* nothing behind the end */
    if (c->events < 2) {
        CHECK_EVENT(strcmp(type, c->events == 0 ? "response.created" : "response.in_progress") == 0,
                    event);
    }
    c->events++;
    const char *what = strncmp(type, "response.", 9) == 0 ? type + 9 : type;
    char name_put[96];
    (void)snprintf(name_put, sizeof name_put, "%s ", what);
    size_t len = strlen(name_put);
    bool again = strstr(what, ".delta") != NULL && c->order.len >= len &&
                 strcmp(c->order.data + c->order.len - len, name_put) == 0;
    buf_puts(&c->order, again ? "" : name_put);
    if (strcmp(type, "error") == 0) {
        check_error(c, event);
    } else {
        check_one(c, event, what);
    }
}

/* Every item that was announced is closed and stands in the final output, as it was closed and in the same order. */
static inline void check_final(struct checked *c)
{
    const cJSON *output = cJSON_GetObjectItem(c->final, "output");
    CU_ASSERT_EQUAL(c->terminals, 1);
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(output), c->items_count);
    for (int i = 0; i < c->items_count; i++) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(c->items[i].done);
        CHECK_EVENT(cJSON_Compare(c->items[i].done, cJSON_GetArrayItem(output, i), true),
                    c->items[i].done);
    }
}

static inline struct checked checked_read(const struct buf *out)
{
    struct checked c = {0};
    const char *p = out->data;
    while (p != NULL && *p != '\0') {
        char name[80] = "";
        const char *end = strstr(p, "\n\n"), *data = strstr(p, "\ndata: ");
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        CU_ASSERT_PTR_NOT_NULL_FATAL(data);
        CU_ASSERT_EQUAL_FATAL(strncmp(p, "event: ", 7), 0);
        CU_ASSERT_TRUE_FATAL(data < end && data - p < 80);
        (void)snprintf(name, sizeof name, "%.*s", (int)(data - p - 7), p + 7);
        data += 7;
        CU_ASSERT_PTR_NULL_FATAL(memchr(data, '\n', (size_t)(end - data)));
        cJSON *event = cJSON_ParseWithLength(data, (size_t)(end - data));
        CU_ASSERT_PTR_NOT_NULL_FATAL(event);
        check_event(&c, event, name);
        cJSON_Delete(event);
        p = end + 2;
    }
    buf_puts(&c.text, "");
    buf_puts(&c.order, "");
    check_final(&c);
    return c;
}

#endif
