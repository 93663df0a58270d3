/* Items and their parts as the upstream tells them, in whatever pieces: put together, and written again. */
#include "surface/responses.h"

#include "base/check.h"

#include <stdlib.h>

const struct responses_part_form responses_part_forms[] = {
    [RESPONSES_TEXT] = {"output_text", "text", "content", "content_index",
                        "response.output_text.delta", "response.output_text.done",
                        "response.content_part.added", "response.content_part.done"},
    [RESPONSES_REFUSAL] = {"refusal", "refusal", "content", "content_index",
                           "response.refusal.delta", "response.refusal.done",
                           "response.content_part.added", "response.content_part.done"},
    [RESPONSES_REASONING_TEXT] = {"reasoning_text", "text", "content", "content_index",
                                  "response.reasoning_text.delta", "response.reasoning_text.done",
                                  "response.content_part.added", "response.content_part.done"},
    [RESPONSES_SUMMARY] = {"summary_text", "text", "summary", "summary_index",
                           "response.reasoning_summary_text.delta",
                           "response.reasoning_summary_text.done",
                           "response.reasoning_summary_part.added",
                           "response.reasoning_summary_part.done"},
    [RESPONSES_PART_UNKNOWN] = {NULL, NULL, "content", "content_index", NULL, NULL,
                                "response.content_part.added", "response.content_part.done"},
};

/* ---- life ---- */

struct responses_item *responses_item_add(struct responses_turn *turn, struct sg_error *err)
{
    if (turn->items_count == RESPONSES_ITEMS_MAX) {
        error_set(err, SG_E_LIMIT, "more than %d items in one turn", RESPONSES_ITEMS_MAX);
        return NULL;
    }
    struct responses_item *item = check_alloc(calloc(1, sizeof *item));
    item->offer = -1;
    turn->items[turn->items_count++] = item;
    return item;
}

static void part_free(struct responses_part *part)
{
    buf_clear(&part->text);
    buf_clear(&part->raw);
    buf_clear(&part->annotations);
    buf_clear(&part->own);
    citation_reader_clear(&part->reader);
    free(part);
}

void responses_item_free(struct responses_item *item)
{
    if (item == NULL) {
        return;
    }
    for (size_t i = 0; i < item->parts_count; i++) {
        part_free(item->parts[i]);
    }
    free(item->parts);
    struct buf *const owned[] = {&item->id,      &item->type,     &item->raw,       &item->name,
                                 &item->call_id, &item->given_id, &item->arguments, &item->result};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    free(item);
}

/* Items that the client has to answer, beside calls of functions. */
static bool is_clients_type(struct str type)
{
    static const char *const types[] = {"custom_tool_call", "computer_call",
                                        "local_shell_call", "shell_call",
                                        "apply_patch_call", "mcp_approval_request"};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (str_is(type, types[i])) {
            return true;
        }
    }
    return false;
}

/* Whatever an upstream makes of a call of our function, it is one. */
struct str responses_type_of(const struct responses *r, const struct json_member *members,
                             size_t count, struct arena *arena)
{
    struct str type = json_find_text(members, count, "type", arena);
    if (!str_is(type, "custom_tool_call")) {
        return type;
    }
    struct str name = json_find_text(members, count, "name", arena);
    return tools_offer_of(&r->request.set, name) >= 0 ? STR("function_call") : type;
}

void responses_item_set_type(struct responses_item *item, struct str type)
{
    if (item->kind != RESPONSES_ITEM_UNKNOWN || type.len == 0) {
        return;
    }
    (void)buf_append_str(&item->type, type); /* bounded by its event */
    item->kind = str_is(type, "message")         ? RESPONSES_MESSAGE
                 : str_is(type, "reasoning")     ? RESPONSES_REASONING
                 : str_is(type, "function_call") ? RESPONSES_CALL
                                                 : RESPONSES_OTHER;
    item->awaits_client = item->kind == RESPONSES_OTHER && is_clients_type(type);
}

struct responses_part *responses_part_get(struct responses_item *item, bool is_summary,
                                          int64_t index, enum responses_part_kind kind)
{
    for (size_t i = 0; i < item->parts_count; i++) {
        struct responses_part *part = item->parts[i];
        if (part->is_summary == is_summary && part->index == index) {
            return part;
        }
    }
    if (item->parts_count == RESPONSES_PARTS_MAX) {
        return NULL;
    }
    if (item->parts == NULL) {
        item->parts = check_alloc(calloc(4, sizeof(void *)));
    } else if (item->parts_count >= 4 && (item->parts_count & (item->parts_count - 1)) == 0) {
        item->parts = check_alloc(realloc(item->parts, 2 * item->parts_count * sizeof(void *)));
    }
    struct responses_part *part = check_alloc(calloc(1, sizeof *part));
    part->kind = kind;
    part->is_summary = is_summary;
    part->index = index;
    item->parts[item->parts_count++] = part;
    return part;
}

static int raw_keep(struct responses *r, struct buf *to, struct str raw, struct sg_error *err)
{
    buf_reset(to);
    return responses_keep(r->turn, to, raw, err);
}

/* ---- parts ---- */

static enum responses_part_kind part_kind_of(struct str type, bool is_summary)
{
    for (size_t i = 0; i < RESPONSES_PART_UNKNOWN; i++) {
        if (str_is(type, responses_part_forms[i].type)) {
            return (enum responses_part_kind)i;
        }
    }
    return is_summary             ? RESPONSES_SUMMARY
           : str_is(type, "text") ? RESPONSES_TEXT
           : str_is(type, "")     ? RESPONSES_TEXT
                                  : RESPONSES_PART_UNKNOWN;
}

int responses_part_take(struct responses *r, struct responses_item *item,
                        struct responses_part *part, struct json_value object, struct arena *arena,
                        struct sg_error *err)
{
    (void)item;
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(object, "a part", arena, &members, &count, err);
    if (code == SG_OK) {
        code = raw_keep(r, &part->raw, object.raw, err);
    }
    const char *key = responses_part_forms[part->kind].text_key;
    const struct json_member *text =
        key == NULL ? NULL : json_find_type(members, count, key, JSON_STRING);
    if (code == SG_OK && text != NULL) {
        code = responses_text_complete(r, &part->text, text->value, arena, err);
    }
    const struct json_member *annotations =
        json_find_type(members, count, "annotations", JSON_ARRAY);
    if (code == SG_OK && part->kind == RESPONSES_TEXT && annotations != NULL) {
        code = responses_annotations_take(r, part, annotations->value, err);
    }
    return code;
}

static struct str text_member(struct json_value object, const char *name, struct arena *arena)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_STRING && json_key_is(key, name)) {
            return json_text_of(value, arena);
        }
    }
    return (struct str){0};
}

static int parts_take(struct responses *r, struct responses_item *item, struct json_value list,
                      bool is_summary, struct arena *arena, struct sg_error *err)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value value;
    int code = SG_OK;
    for (int64_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        if (value.type != JSON_OBJECT) {
            continue;
        }
        struct responses_part *part = responses_part_get(
            item, is_summary, i, part_kind_of(text_member(value, "type", arena), is_summary));
        code = part == NULL ? error_set(err, SG_E_LIMIT, "more than %d parts in an item",
                                        RESPONSES_PARTS_MAX)
                            : responses_part_take(r, item, part, value, arena, err);
    }
    return code;
}

/* Content that is a text instead of a list. */
static int text_take(struct responses *r, struct responses_item *item, struct json_value text,
                     struct arena *arena, struct sg_error *err)
{
    if (text.raw.len == 2) {
        return SG_OK;
    }
    struct responses_part *part = responses_part_get(
        item, false, 0,
        item->kind == RESPONSES_MESSAGE ? RESPONSES_TEXT : RESPONSES_REASONING_TEXT);
    CHECK(part != NULL); /* the first one, or there already */
    return responses_text_complete(r, &part->text, text, arena, err);
}

static int lists_take(struct responses *r, struct responses_item *item,
                      const struct json_member *members, size_t count, struct arena *arena,
                      struct sg_error *err)
{
    const struct json_member *content = json_find(members, count, "content");
    const struct json_member *summary = json_find_type(members, count, "summary", JSON_ARRAY);
    int code = SG_OK;
    if (content != NULL && content->value.type == JSON_ARRAY) {
        code = parts_take(r, item, content->value, false, arena, err);
    } else if (content != NULL && content->value.type == JSON_STRING) {
        code = text_take(r, item, content->value, arena, err);
    }
    if (code == SG_OK && summary != NULL && item->kind == RESPONSES_REASONING) {
        code = parts_take(r, item, summary->value, true, arena, err);
    }
    return code;
}

/* ---- items ---- */

static int call_take(struct responses *r, struct responses_item *item,
                     const struct json_member *members, size_t count, struct arena *arena,
                     struct sg_error *err)
{
    if (item->name.len == 0) {
        struct str name = json_find_text(members, count, "name", arena);
        (void)buf_append_str(&item->name, name); /* bounded by its event, likewise below */
    }
    if (item->call_id.len == 0) {
        (void)buf_append_str(&item->call_id, json_find_text(members, count, "call_id", arena));
    }
    const struct json_member *arguments = json_find(members, count, "arguments");
    arguments = arguments != NULL ? arguments : json_find(members, count, "input");
    if (arguments == NULL || arguments->value.type == JSON_NULL) {
        return SG_OK;
    }
    if (arguments->value.type == JSON_STRING) {
        return responses_text_complete(r, &item->arguments, arguments->value, arena, err);
    }
    if (item->arguments.len > 0 || str_is(arguments->value.raw, "{}")) {
        return SG_OK;
    }
    BUF_CLEANUP struct buf inner = {0};
    (void)buf_put_json_inner(&inner, arguments->value.raw); /* an object instead of text */
    return responses_keep(r->turn, &item->arguments, buf_str(&inner), err);
}

/* No call, but named as one of ours: the upstream mistook it. Tools of MCP servers have names of their own. */
static bool names_ours(const struct responses *r, const struct responses_item *item,
                       const struct json_member *members, size_t count, struct arena *arena)
{
    struct str name = json_find_text(members, count, "name", arena);
    return item->kind == RESPONSES_OTHER && !str_starts(buf_str(&item->type), STR("mcp_")) &&
           tools_offer_of(&r->request.set, name) >= 0;
}

int responses_item_take(struct responses *r, struct responses_item *item, struct json_value object,
                        bool is_last, struct arena *arena, struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(object, "an item", arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    responses_item_set_type(item, responses_type_of(r, members, count, arena));
    if (item->id.len == 0) {
        (void)buf_append_str(&item->id,
                             json_find_text(members, count, "id", arena)); /* its event */
    }
    if (names_ours(r, item, members, count, arena)) {
        item->is_decided = item->is_dropped = item->shown == NULL;
        return SG_OK; /* nothing of it is kept, so that no more is shown */
    }
    if (is_last || !item->raw_is_last) {
        item->raw_is_last = is_last;
        code = raw_keep(r, &item->raw, object.raw, err);
    }
    if (item->call_id.len == 0 && str_is(buf_str(&item->type), "custom_tool_call")) {
        (void)buf_append_str(&item->call_id, json_find_text(members, count, "call_id", arena));
    }
    if (code == SG_OK && item->kind == RESPONSES_CALL) {
        code = call_take(r, item, members, count, arena, err);
    } else if (code == SG_OK && item->kind != RESPONSES_OTHER) {
        code = lists_take(r, item, members, count, arena, err);
    }
    return code;
}

bool responses_item_has_text(const struct responses_item *item)
{
    for (size_t i = 0; i < item->parts_count; i++) {
        const struct responses_part *part = item->parts[i];
        if (item->kind == RESPONSES_MESSAGE &&
            (part->text.len > 0 || part->kind == RESPONSES_PART_UNKNOWN)) {
            return true;
        }
    }
    return false;
}

/* ---- writing ---- */

/* An object that was checked when it was kept; none where it is empty. */
static void kept_members(const struct buf *raw, struct arena *arena, struct json_member **ret,
                         size_t *ret_count)
{
    struct sg_error err = {0};
    *ret = NULL;
    *ret_count = 0;
    if (raw->len > 0) {
        int code = json_members((struct json_value){JSON_OBJECT, buf_str(raw)}, "", arena, ret,
                                ret_count, &err);
        CHECK(code == SG_OK);
    }
}

void responses_part_put(const struct responses_part *part, enum responses_view view,
                        struct buf *out)
{
    const struct responses_part_form *form = &responses_part_forms[part->kind];
    if (form->type == NULL) {
        (void)buf_append_str(out, part->raw.len > 0 ? buf_str(&part->raw) : STR("{}"));
        return;
    }
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0, n = 0;
    kept_members(&part->raw, arena, &members, &count);
    BUF_CLEANUP struct buf type = {0}, text = {0}, annotations = {0};
    struct responses_member puts[4];
    bool is_empty = view == RESPONSES_OPENING;
    (void)buf_put_json(&type, str_of(form->type)); /* all bounded by what is kept */
    responses_quote(is_empty ? STR("") : buf_str(&part->text), &text);
    puts[n++] = (struct responses_member){"type", buf_str(&type)};
    if (part->kind == RESPONSES_TEXT) {
        responses_annotations_put(part, view == RESPONSES_UPWARDS, &annotations);
        puts[n++] =
            (struct responses_member){"annotations", is_empty ? STR("[]") : buf_str(&annotations)};
        const struct json_member *logprobs = json_find_type(members, count, "logprobs", JSON_ARRAY);
        bool keeps = logprobs != NULL && !is_empty;
        puts[n++] = (struct responses_member){"logprobs", keeps ? logprobs->value.raw : STR("[]")};
    }
    puts[n++] = (struct responses_member){form->text_key, buf_str(&text)};
    responses_object_put(members, count, puts, n, out);
    arena_free(arena);
}

/* The parts of one list, in the order in which the client has them. */
static bool list_put(const struct responses_item *item, bool is_summary, bool upwards,
                     struct buf *out)
{
    bool first = true;
    (void)buf_putc(out, '['); /* the owner asks for overflow */
    for (size_t i = 0; i < item->parts_count; i++) {
        if (item->parts[i]->is_summary == is_summary) {
            (void)buf_puts(out, first ? "" : ",");
            responses_part_put(item->parts[i], upwards ? RESPONSES_UPWARDS : RESPONSES_SHOWN, out);
            first = false;
        }
    }
    (void)buf_putc(out, ']');
    return !first;
}

bool responses_reasoning_says(const struct responses_item *item)
{
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0;
    kept_members(&item->raw, arena, &members, &count);
    const struct json_member *encrypted =
        json_find_type(members, count, "encrypted_content", JSON_STRING);
    bool says = encrypted != NULL && encrypted->value.raw.len > 2;
    for (size_t i = 0; i < item->parts_count; i++) {
        says = says || item->parts[i]->text.len > 0;
    }
    arena_free(arena);
    return says;
}

struct writing { /* an item, member by member */
    const struct responses_item *item;
    struct json_member *members;
    size_t count;
    struct responses_member puts[8];
    size_t n;
    struct buf id, status, lists[2], call_id, name, arguments;
};

static void writing_clear(struct writing *writing)
{
    struct buf *const owned[] = {&writing->id,       &writing->status,  &writing->lists[0],
                                 &writing->lists[1], &writing->call_id, &writing->name,
                                 &writing->arguments};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
}

static void put(struct writing *writing, const char *key, struct str value)
{
    CHECK(writing->n < COUNT_OF(writing->puts));
    writing->puts[writing->n++] = (struct responses_member){key, value};
}

/* Going up the upstream's own; towards the client the one that is shown. Where the upstream gave none, what is shown serves
 * it too, but for a call of ours, which is another kind of item there. */
static void id_write(struct writing *writing, bool upwards)
{
    const struct responses_item *item = writing->item;
    bool own = upwards && item->id.len > 0;
    if (own || (item->shown != NULL && item->shown->kind == NULL)) {
        (void)buf_put_json(&writing->id, buf_str(own ? &item->id : &item->shown->id)); /* small */
    }
    put(writing, "id", buf_str(&writing->id));
}

/* Its own, unless it says that it still runs. Clients want one of all but reasoning; servers refuse one that they did
 * not give. */
static void status_write(struct writing *writing, bool upwards, const char *status,
                         struct arena *arena)
{
    const struct json_member *own = json_find(writing->members, writing->count, "status");
    struct str text = own == NULL || own->value.type != JSON_STRING
                          ? (struct str){0}
                          : json_text_of(own->value, arena);
    bool is_open = text.len == 0 || str_is(text, "in_progress") || !writing->item->raw_is_last;
    bool is_wanted = !upwards && writing->item->kind != RESPONSES_REASONING;
    if (is_open && (own != NULL || is_wanted)) {
        (void)buf_put_json(&writing->status, str_of(status)); /* small */
        put(writing, "status", buf_str(&writing->status));
    }
}

struct str responses_call_shown_id(const struct responses_item *item)
{
    return buf_str(item->given_id.len > 0 ? &item->given_id : &item->call_id);
}

static void call_id_write(struct writing *writing, bool upwards)
{
    const struct responses_item *item = writing->item;
    (void)buf_put_json(&writing->call_id, upwards ? buf_str(&item->call_id)
                                                  : responses_call_shown_id(item)); /* its event */
    put(writing, "call_id", buf_str(&writing->call_id));
}

static void call_write(struct writing *writing, bool upwards)
{
    const struct responses_item *item = writing->item;
    bool settled = upwards && item->history.data != NULL;
    call_id_write(writing, upwards);
    (void)buf_put_json(&writing->name, buf_str(&item->name));
    responses_quote(settled ? item->history : buf_str(&item->arguments), &writing->arguments);
    put(writing, "name", buf_str(&writing->name));
    put(writing, "arguments", buf_str(&writing->arguments));
    put(writing, "input", STR("")); /* of a custom call */
}

static void parts_write(struct writing *writing, bool upwards)
{
    const struct responses_item *item = writing->item;
    bool has_content = list_put(item, false, upwards, &writing->lists[0]);
    if (item->kind == RESPONSES_MESSAGE) {
        put(writing, "role", STR("\"assistant\""));
        put(writing, "content", buf_str(&writing->lists[0]));
        return;
    }
    (void)list_put(item, true, upwards, &writing->lists[1]);
    put(writing, "summary", buf_str(&writing->lists[1]));
    if (has_content) {
        put(writing, "content", buf_str(&writing->lists[0]));
    }
}

void responses_item_put(const struct responses_item *item, bool upwards, const char *status,
                        struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct writing writing = {.item = item};
    kept_members(&item->raw, arena, &writing.members, &writing.count);
    BUF_CLEANUP struct buf type = {0};
    (void)buf_put_json(&type, buf_str(&item->type)); /* small: fits */
    id_write(&writing, upwards);
    put(&writing, "type", buf_str(&type));
    status_write(&writing, upwards, status, arena);
    if (item->kind == RESPONSES_CALL) {
        call_write(&writing, upwards);
    } else if (item->kind != RESPONSES_OTHER) {
        parts_write(&writing, upwards);
    } else if (item->given_id.len > 0) {
        call_id_write(&writing, upwards);
    }
    responses_object_put(writing.members, writing.count, writing.puts, writing.n, out);
    writing_clear(&writing);
    arena_free(arena);
}
