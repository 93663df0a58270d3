/* One event of the upstream's stream, or the whole answer that ends it. Lenient: items may come without being opened,
 * without ids or without indexes, under indexes of others, or in the whole answer alone. */
#include "surface/responses.h"

#include "base/check.h"

struct up_event { /* of the upstream */
    struct json_text text;
    struct str type, id; /* id: `item_id`, or the item's own */
    bool has_index;
    int64_t index;
    struct arena *arena;
};

/* ---- which item? ---- */

bool responses_type_fits(const struct responses_item *item, struct str type)
{
    return item->kind == RESPONSES_ITEM_UNKNOWN || str_eq(buf_str(&item->type), type);
}

static struct responses_item *find_by_id(const struct responses_turn *turn, struct str id,
                                         struct str type, bool ended)
{
    for (size_t i = turn->items_count; i-- > 0 && id.len > 0;) {
        struct responses_item *item = turn->items[i];
        if (str_eq(buf_str(&item->id), id) && responses_type_fits(item, type) &&
            item->is_ended == ended) {
            return item;
        }
    }
    return NULL;
}

static struct responses_item *find_by_index(const struct responses_turn *turn,
                                            const struct up_event *event, struct str type,
                                            bool ended)
{
    for (size_t i = turn->items_count; i-- > 0;) {
        struct responses_item *item = turn->items[i];
        bool here =
            event->has_index ? item->has_index && item->index == event->index : event->id.len == 0;
        bool other = ended && item->id.len > 0 && event->id.len > 0;
        if (here && !other && responses_type_fits(item, type) && item->is_ended == ended) {
            return item;
        }
    }
    return NULL;
}

/* The item that an event speaks of: by its id, else by its index, else the last one that is open; one that has ended if
 * there is no other. NULL: none that is known. */
static struct responses_item *item_find(const struct responses_turn *turn,
                                        const struct up_event *event, struct str type)
{
    struct responses_item *item = find_by_id(turn, event->id, type, false);
    item = item != NULL ? item : find_by_index(turn, event, type, false);
    item = item != NULL ? item : find_by_id(turn, event->id, type, true);
    return item != NULL ? item : find_by_index(turn, event, type, true);
}

struct responses_item *responses_item_make(struct responses *r, struct str id, const int64_t *index,
                                           struct str type, struct sg_error *err)
{
    struct responses_item *item = responses_item_add(r->turn, err);
    if (item != NULL) {
        responses_item_set_type(item, type);
        item->has_index = index != NULL;
        item->index = index != NULL ? *index : 0;
        (void)buf_append_str(&item->id, id); /* bounded by its event */
    }
    return item;
}

static struct responses_item *item_make(struct responses *r, const struct up_event *event,
                                        struct str type, struct sg_error *err)
{
    return responses_item_make(r, event->id, event->has_index ? &event->index : NULL, type, err);
}

static struct responses_item *item_get(struct responses *r, const struct up_event *event,
                                       struct str type, struct sg_error *err)
{
    struct responses_item *item = item_find(r->turn, event, type);
    return item != NULL ? item : item_make(r, event, type, err);
}

/* ---- items ---- */

void responses_item_advance(struct responses *r, struct responses_item *item, struct buf *out)
{
    responses_call_decide(r, item);
    if (item->offer >= 0) {
        responses_hosted_show(r, item, item->is_ended, out);
    } else if (item->is_ended) {
        responses_item_close(r, item, "completed", out);
    } else {
        responses_item_flush(r, item, out);
    }
}

/* An item opens. One of an id that is open already, or that began without being opened, is that one. */
static struct responses_item *item_to_open(struct responses *r, const struct up_event *event,
                                           struct str type, struct sg_error *err)
{
    struct responses_item *item = find_by_id(r->turn, event->id, type, false);
    if (item == NULL && event->has_index) {
        item = find_by_index(r->turn, event, type, false);
        bool begun = item != NULL && item->raw.len == 0;
        bool another = item != NULL && item->id.len > 0 && event->id.len > 0;
        item = begun && !another ? item : NULL;
    }
    return item != NULL ? item : item_make(r, event, type, err);
}

static int item_event(struct responses *r, struct up_event *event, bool is_last, struct buf *out,
                      struct sg_error *err)
{
    const struct json_member *object =
        json_find_type(event->text.members, event->text.count, "item", JSON_OBJECT);
    if (object == NULL) {
        return SG_OK; /* it says nothing */
    }
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(object->value, "an item", event->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct str type = responses_type_of(r, members, count, event->arena);
    struct str id = json_find_text(members, count, "id", event->arena);
    event->id = id.len > 0 ? id : event->id;
    struct responses_item *item =
        is_last ? item_get(r, event, type, err) : item_to_open(r, event, type, err);
    if (item == NULL) {
        return err->code;
    }
    if (item->is_ended) {
        return SG_OK; /* told twice */
    }
    code = responses_item_take(r, item, object->value, is_last, event->arena, err);
    if (code == SG_OK) {
        item->is_ended = is_last;
        responses_item_advance(r, item, out);
    }
    return code;
}

/* ---- parts ---- */

static int64_t number_of(const struct up_event *event, const char *name)
{
    const struct json_member *member = json_find(event->text.members, event->text.count, name);
    int64_t n;
    return member != NULL && json_int_of(member->value, &n) && n >= 0 ? n : 0;
}

static struct str item_type_of(enum responses_part_kind kind)
{
    return kind == RESPONSES_SUMMARY || kind == RESPONSES_REASONING_TEXT ? STR("reasoning")
                                                                         : STR("message");
}

/* The open part that the event speaks of; NULL without an error: it comes too late. */
static struct responses_part *part_of(struct responses *r, const struct up_event *event,
                                      enum responses_part_kind kind, struct responses_item **ret,
                                      struct sg_error *err)
{
    struct responses_item *item = item_get(r, event, item_type_of(kind), err);
    if (item == NULL || item->is_ended) {
        return NULL;
    }
    responses_item_set_type(item, item_type_of(kind));
    struct responses_part *part =
        responses_part_get(item, kind == RESPONSES_SUMMARY,
                           number_of(event, responses_part_forms[kind].index_key), kind);
    if (part == NULL) {
        error_set(err, SG_E_LIMIT, "more than %d parts in an item", RESPONSES_PARTS_MAX);
        return NULL;
    }
    *ret = item;
    return part->is_closed || part->kind != kind ? NULL : part;
}

static enum responses_part_kind kind_of_object(struct str type, bool is_summary)
{
    for (size_t i = 0; i < RESPONSES_PART_UNKNOWN && !is_summary; i++) {
        if (str_is(type, responses_part_forms[i].type)) {
            return (enum responses_part_kind)i;
        }
    }
    return is_summary ? RESPONSES_SUMMARY : RESPONSES_PART_UNKNOWN;
}

static int part_event(struct responses *r, const struct up_event *event, bool is_summary,
                      bool is_last, struct buf *out, struct sg_error *err)
{
    const struct json_member *object =
        json_find_type(event->text.members, event->text.count, "part", JSON_OBJECT);
    if (object == NULL) {
        return SG_OK;
    }
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(object->value, "a part", event->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct str type = json_find_text(members, count, "type", event->arena);
    struct responses_item *item = NULL;
    struct responses_part *part = part_of(r, event, kind_of_object(type, is_summary), &item, err);
    if (part == NULL) {
        return err->code;
    }
    code = responses_part_take(r, item, part, object->value, event->arena, err);
    if (code == SG_OK && is_last) {
        responses_part_close(r, item, part, out);
    } else if (code == SG_OK) {
        responses_part_flush(r, item, part, false, out);
    }
    return code;
}

static struct str index_text(char to[24], size_t n)
{
    struct buf text = {0};
    (void)buf_printf(&text, "%zu", n); /* small: fits */
    memcpy(to, text.data, text.len);
    struct str ret = {to, text.len};
    buf_clear(&text);
    return ret;
}

/* The event goes on as it is, but for its place. */
static void part_pass(struct responses *r, const char *type, const struct up_event *event,
                      const struct responses_item *item, const struct responses_part *part,
                      struct responses_member said, struct buf *out)
{
    char index[24];
    bool adds_logprobs =
        part->kind == RESPONSES_TEXT &&
        json_find_type(event->text.members, event->text.count, "logprobs", JSON_ARRAY) == NULL;
    const struct responses_member puts[] = {
        {responses_part_forms[part->kind].index_key, index_text(index, part->shown_index)},
        said,
        {"logprobs", STR("[]")}};
    responses_event_pass(r, type, &event->text, item->shown, puts, adds_logprobs ? 3 : 2, out);
}

static int delta_event(struct responses *r, const struct up_event *event,
                       enum responses_part_kind kind, struct buf *out, struct sg_error *err)
{
    const struct json_member *delta =
        json_find_type(event->text.members, event->text.count, "delta", JSON_STRING);
    struct responses_item *item = NULL;
    struct responses_part *part = delta == NULL ? NULL : part_of(r, event, kind, &item, err);
    if (part == NULL || part->is_told) {
        return err->code;
    }
    size_t before = part->text.len;
    struct str inner = {delta->value.raw.data + 1, delta->value.raw.len - 2};
    int code = responses_keep(r->turn, &part->text, inner, err);
    if (code != SG_OK || !responses_part_open(r, item, part, out)) {
        return code;
    }
    if (part->given == before && inner.len > 0) {
        part->given = part->text.len;
        part_pass(r, responses_part_forms[kind].delta, event, item, part,
                  (struct responses_member){"delta", delta->value.raw}, out);
        responses_annotations_flush(r, item, part, false, out);
    } else {
        responses_part_flush(r, item, part, false, out);
    }
    return SG_OK;
}

static int text_done_event(struct responses *r, const struct up_event *event,
                           enum responses_part_kind kind, struct buf *out, struct sg_error *err)
{
    const char *key = responses_part_forms[kind].text_key;
    const struct json_member *text = json_find(event->text.members, event->text.count, key);
    struct responses_item *item = NULL;
    struct responses_part *part = part_of(r, event, kind, &item, err);
    if (part == NULL || part->is_told) {
        return err->code;
    }
    int code = text == NULL
                   ? SG_OK
                   : responses_text_complete(r, &part->text, text->value, event->arena, err);
    if (code != SG_OK || !responses_part_open(r, item, part, out)) {
        return code;
    }
    BUF_CLEANUP struct buf whole = {0};
    responses_part_flush(r, item, part, true, out);
    responses_quote(buf_str(&part->text), &whole); /* as large as what is kept */
    part->is_told = true;
    part_pass(r, responses_part_forms[kind].done, event, item, part,
              (struct responses_member){key, buf_str(&whole)}, out);
    return SG_OK;
}

static int annotation_event(struct responses *r, const struct up_event *event, struct buf *out,
                            struct sg_error *err)
{
    const struct json_member *annotation =
        json_find_type(event->text.members, event->text.count, "annotation", JSON_OBJECT);
    struct responses_item *item = NULL;
    struct responses_part *part =
        annotation == NULL ? NULL : part_of(r, event, RESPONSES_TEXT, &item, err);
    if (part == NULL) {
        return err->code;
    }
    int code = responses_annotation_keep(r, part, annotation->value.raw, err);
    if (code == SG_OK) {
        responses_part_flush(r, item, part, false, out);
    }
    return code;
}

/* ---- calls ---- */

static int arguments_event(struct responses *r, const struct up_event *event, bool is_last,
                           struct buf *out, struct sg_error *err)
{
    struct responses_item *item = item_get(r, event, STR("function_call"), err);
    if (item == NULL || item->is_ended) {
        return item == NULL ? err->code : SG_OK;
    }
    responses_item_set_type(item, STR("function_call"));
    const struct json_text *text = &event->text;
    if (item->name.len == 0 && is_last) {
        (void)buf_append_str(&item->name, json_find_text(text->members, text->count, "name",
                                                         event->arena)); /* bounded by its event */
    }
    size_t before = item->arguments.len;
    const struct json_member *piece =
        json_find_type(text->members, text->count, is_last ? "arguments" : "delta", JSON_STRING);
    int code = SG_OK;
    if (piece != NULL && is_last) {
        code = responses_text_complete(r, &item->arguments, piece->value, event->arena, err);
    } else if (piece != NULL) {
        struct str inner = {piece->value.raw.data + 1, piece->value.raw.len - 2};
        code = responses_keep(r->turn, &item->arguments, inner, err);
    }
    bool live = code == SG_OK && !is_last && item->shown != NULL && item->offer < 0 &&
                item->arguments_given == before && item->arguments.len > before;
    if (live) {
        item->arguments_given = item->arguments.len;
        responses_event_pass(r, "response.function_call_arguments.delta", text, item->shown, NULL,
                             0, out);
    } else if (code == SG_OK) {
        responses_item_advance(r, item, out);
    }
    return code;
}

/* ---- events of items that are passed on as they are ---- */

/* Clients refuse events that they do not know, so only those of the vendors' own tools go on; NULL: it is none. */
static const char *vendor_type(struct str type)
{
    static const char *const types[] = {"response.web_search_call.in_progress",
                                        "response.web_search_call.searching",
                                        "response.web_search_call.completed",
                                        "response.file_search_call.in_progress",
                                        "response.file_search_call.searching",
                                        "response.file_search_call.completed",
                                        "response.image_generation_call.in_progress",
                                        "response.image_generation_call.generating",
                                        "response.image_generation_call.partial_image",
                                        "response.image_generation_call.completed",
                                        "response.code_interpreter_call.in_progress",
                                        "response.code_interpreter_call.interpreting",
                                        "response.code_interpreter_call.completed",
                                        "response.code_interpreter_call_code.delta",
                                        "response.code_interpreter_call_code.done",
                                        "response.mcp_call.in_progress",
                                        "response.mcp_call.completed",
                                        "response.mcp_call.failed",
                                        "response.mcp_call_arguments.delta",
                                        "response.mcp_call_arguments.done",
                                        "response.mcp_list_tools.in_progress",
                                        "response.mcp_list_tools.completed",
                                        "response.mcp_list_tools.failed",
                                        "response.custom_tool_call_input.delta",
                                        "response.custom_tool_call_input.done"};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (str_is(type, types[i])) {
            return types[i];
        }
    }
    return NULL;
}

static int vendor_event(struct responses *r, const struct up_event *event, struct buf *out)
{
    const char *type = vendor_type(event->type);
    for (size_t i = type == NULL ? 0 : r->turn->items_count; i-- > 0;) {
        struct responses_item *item = r->turn->items[i];
        bool named = event->id.len > 0
                         ? str_eq(buf_str(&item->id), event->id)
                         : event->has_index && item->has_index && item->index == event->index;
        if (!named || item->kind != RESPONSES_OTHER) {
            continue;
        }
        if (item->shown != NULL && !item->shown->is_closed) {
            responses_event_pass(r, type, &event->text, item->shown, NULL, 0, out);
        }
        break;
    }
    return SG_OK;
}

/* ---- events ---- */

/* The upstream gave up. */
static int failure_of(const struct up_event *event, struct json_value response,
                      struct sg_error *err)
{
    struct json_walk walk;
    struct str key;
    struct json_value value, error = {0};
    if (response.raw.len > 0) {
        walk = json_walk_of(response);
        while (json_walk_member(&walk, &key, &value)) {
            error = value.type == JSON_OBJECT && json_key_is(key, "error") ? value : error;
        }
    }
    struct json_member *members = NULL;
    size_t count = 0;
    if (error.raw.len == 0 ||
        json_members(error, "error", event->arena, &members, &count, err) != SG_OK) {
        return error_set(err, SG_E_UNAVAILABLE, "The upstream's answer failed");
    }
    return reported_members(members, count, event->arena, err);
}

static int response_event(struct responses *r, const struct up_event *event, struct str what,
                          struct buf *out, struct sg_error *err)
{
    const struct json_member *response =
        json_find_type(event->text.members, event->text.count, "response", JSON_OBJECT);
    struct json_value value = response == NULL ? (struct json_value){0} : response->value;
    if (str_is(what, "failed") || str_is(what, "cancelled")) {
        return failure_of(event, value, err);
    }
    if (response != NULL) {
        struct json_member *members = NULL;
        size_t count = 0;
        int code = json_members(value, "response", event->arena, &members, &count, err);
        if (code != SG_OK) {
            return code;
        }
        responses_identity_note(r, members, count);
    }
    responses_begin(r, out);
    bool is_end = str_is(what, "completed") || str_is(what, "incomplete") || str_is(what, "done");
    if (!is_end) {
        return SG_OK;
    }
    if (str_is(what, "incomplete")) {
        r->turn->is_incomplete = true;
        (void)buf_puts(&r->turn->incomplete_reason, "max_output_tokens"); /* small: fits */
    }
    r->turn->is_whole = true;
    return response == NULL ? SG_OK : responses_whole_take(r, value, event->arena, out, err);
}

static int content_event(struct responses *r, const struct up_event *event, struct buf *out,
                         struct sg_error *err)
{
    for (size_t i = 0; i < RESPONSES_PART_UNKNOWN; i++) {
        const struct responses_part_form *form = &responses_part_forms[i];
        if (str_is(event->type, form->delta)) {
            return delta_event(r, event, (enum responses_part_kind)i, out, err);
        }
        if (str_is(event->type, form->done)) {
            return text_done_event(r, event, (enum responses_part_kind)i, out, err);
        }
    }
    return vendor_event(r, event, out);
}

static int event_dispatch(struct responses *r, struct up_event *event, struct buf *out,
                          struct sg_error *err)
{
    static const char *const lifecycle[] = {"created", "queued", "in_progress", "completed",
                                            "done",    "failed", "incomplete",  "cancelled"};
    struct str what = event->type;
    if (!str_starts(what, STR("response."))) {
        return SG_OK; /* "ping", "keepalive" and the like */
    }
    what = (struct str){what.data + 9, what.len - 9};
    for (size_t i = 0; i < COUNT_OF(lifecycle); i++) {
        if (str_is(what, lifecycle[i])) {
            return response_event(r, event, what, out, err);
        }
    }
    responses_begin(r, out);
    if (str_is(what, "output_item.added") || str_is(what, "output_item.done")) {
        return item_event(r, event, str_is(what, "output_item.done"), out, err);
    }
    if (str_is(what, "content_part.added") || str_is(what, "content_part.done")) {
        return part_event(r, event, false, str_is(what, "content_part.done"), out, err);
    }
    if (str_is(what, "reasoning_summary_part.added") ||
        str_is(what, "reasoning_summary_part.done")) {
        return part_event(r, event, true, str_is(what, "reasoning_summary_part.done"), out, err);
    }
    if (str_is(what, "output_text.annotation.added")) {
        return annotation_event(r, event, out, err);
    }
    if (str_is(what, "function_call_arguments.delta") ||
        str_is(what, "function_call_arguments.done")) {
        return arguments_event(r, event, str_is(what, "function_call_arguments.done"), out, err);
    }
    return content_event(r, event, out, err);
}

int responses_event_take(struct responses *r, struct sse_event sse, struct arena *arena,
                         struct buf *out, struct sg_error *err)
{
    struct up_event event = {.arena = arena};
    if (json_scan(sse.data, arena, &event.text, err) != SG_OK) {
        return not_understood(err);
    }
    const struct json_member *members = event.text.members;
    size_t count = event.text.count;
    event.type = json_find_text(members, count, "type", arena);
    event.type = event.type.len > 0 ? event.type : sse.name;
    event.id = json_find_text(members, count, "item_id", arena);
    const struct json_member *index = json_find(members, count, "output_index");
    event.has_index = index != NULL && json_int_of(index->value, &event.index);
    int code = reported_error(&event.text, str_is(event.type, "error"), arena, err);
    if (code != SG_OK) {
        return code;
    }
    code = event_dispatch(r, &event, out, err);
    bool is_reported = str_is(event.type, "response.failed") || err->code == SG_E_UNAVAILABLE;
    return code == SG_OK || is_reported ? code : not_understood(err);
}
