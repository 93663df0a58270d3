/* Puts back what a client does not keep: calls of ours and their results, which stood beside calls of the client's in an
 * answer (responses_memory.c), where the client brings these calls and their results without our items.
 *
 * The client's items are looked through before they are read. For each of the answer's that it has, it is known what of
 * ours stood in front; what the client has dropped is passed over. In the answer's last turn our results go between the
 * client's, in the order of the calls. Nothing is put back where a call was changed or has no result, where one of our
 * items is there, and behind a previous response, which has them. Some clients keep an item without its id, as Codex does
 * with a search: where it says the same, the call and its result take its place; no other of that kind is put back then. */
#include "surface/responses_recall.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

enum {
    RECORDS_MAX = 4096, /* looked up for one request */
    WINDOW = 16,        /* of what was seen, within which the client's next item is looked for */
    UNNAMED_MAX = 256   /* items on each side of a call that are looked at for some without ids */
};

enum entry_kind { ENTRY_SEEN, ENTRY_GIVEN, ENTRY_OURS };

struct entry { /* of a record, read */
    enum entry_kind kind;
    bool is_last_turn, ends_turn;
    struct str id;   /* of a call; of what was seen its hash */
    struct str item; /* of ours: empty where it was not shown */
    struct str tool, arguments, output;
    bool is_left;      /* of ours: the client keeps such items in a way of its own … */
    struct str shown;  /* … which show this */
    bool is_there;     /* the client has it … */
    size_t at, result; /* … at these places of its input; result: of a call of its */
    size_t next;       /* where the first of the entries behind that it has is; NOWHERE: none */
};

#define NOWHERE SIZE_MAX

struct kept {
    struct str hash, container;
    struct entry *entries;
    size_t count;
};

struct looking { /* through the input */
    struct recalling *recalling;
    struct arena *arena; /* scratch */
    struct json_value *elements;
    struct peek *peeks;
    size_t count;
    struct recall_index calls, results; /* under ids that were given; `at` counts elements */
    struct recall_index items;          /* items of ours */
    unsigned without_ids; /* bits of the kinds of ours of which there are items without an id */
    size_t records;
};

static bool is_call(const struct peek *peek)
{
    return str_is(peek->type, "function_call") || str_is(peek->type, "custom_tool_call");
}

static bool is_result(const struct peek *peek)
{
    static const struct str end = STR("_output");
    return peek->type.len > end.len &&
           str_is((struct str){peek->type.data + peek->type.len - end.len, end.len}, end.data);
}

/* ---- the record ---- */

static struct entry entry_read(struct json_value value, struct arena *arena)
{
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error err = {0};
    CHECK(json_members(value, "", arena, &members, &count, &err) == SG_OK);
    bool is_seen = json_find(members, count, "seen") != NULL;
    bool is_given = json_find(members, count, "given") != NULL;
    struct entry entry = {.kind = is_seen ? ENTRY_SEEN : is_given ? ENTRY_GIVEN : ENTRY_OURS};
    entry.id = json_find_text(members, count,
                              is_seen    ? "seen"
                              : is_given ? "given"
                                         : "ours",
                              arena);
    entry.item = json_find_text(members, count, "item", arena);
    entry.tool = json_find_text(members, count, "kind", arena);
    entry.arguments = json_find_text(members, count, "arguments", arena);
    entry.output = json_find_text(members, count, "output", arena);
    return entry;
}

static size_t turn_read(struct kept *kept, struct json_value turn, bool is_last,
                        struct arena *arena)
{
    size_t first = kept->count, count = 0;
    struct json_value *values = json_elements(turn, arena, &count);
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = &kept->entries[kept->count++];
        *entry = entry_read(values[i], arena);
        entry->is_last_turn = is_last;
        entry->ends_turn = i + 1 == count;
    }
    return kept->count - first;
}

/* It is of our own making: what is wrong with it is our mistake. */
static struct kept kept_read(struct str data, struct arena *arena)
{
    struct kept kept = {0};
    struct json_text text;
    struct sg_error err = {0};
    CHECK(json_scan(data, arena, &text, &err) == SG_OK);
    const struct json_member *turns = json_find_type(text.members, text.count, "turns", JSON_ARRAY);
    CHECK(turns != NULL);
    size_t turns_count = 0, most = 0, count = 0;
    struct json_value *list = json_elements(turns->value, arena, &turns_count);
    for (size_t i = 0; i < turns_count; i++) {
        (void)json_elements(list[i], arena, &count); /* only how many */
        most += count;
    }
    kept.hash = json_find_text(text.members, text.count, "hash", arena);
    kept.container = json_find_text(text.members, text.count, "container", arena);
    kept.entries = arena_get(arena, (most + 1) * sizeof *kept.entries);
    for (size_t i = 0; i < turns_count; i++) {
        (void)turn_read(&kept, list[i], i + 1 == turns_count, arena);
    }
    return kept;
}

/* ---- what is to be put in ---- */

static void insert_note(struct looking *looking, struct recall_insert insert)
{
    struct recall_inserts *inserts = &looking->recalling->inserts;
    if (inserts->count == inserts->cap) {
        size_t cap = inserts->cap == 0 ? 16 : 2 * inserts->cap;
        struct recall_insert *list = arena_get(looking->arena, cap * sizeof *list);
        if (inserts->count > 0) {
            memcpy(list, inserts->list, inserts->count * sizeof *list);
        }
        inserts->list = list;
        inserts->cap = cap;
    }
    insert.number = inserts->count++;
    inserts->list[insert.number] = insert;
}

static bool is_to_go_in(const struct entry *entry)
{
    return entry->kind == ENTRY_OURS && !entry->is_left;
}

/* ---- is it the answer, as it was given? ---- */

/* The client's calls in the order in which they were given, each with a result behind it. */
static bool calls_find(struct looking *looking, struct kept *kept, struct shown_call *calls,
                       size_t *ret_count)
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i < kept->count; i++) {
        struct entry *entry = &kept->entries[i];
        if (entry->kind != ENTRY_GIVEN) {
            continue;
        }
        struct recalled *call = recall_index_find(&looking->calls, entry->id);
        struct recalled *result = recall_index_find(&looking->results, entry->id);
        if (call == NULL || result == NULL || call->at < from || result->at < call->at ||
            !responses_given_read(looking->elements[call->at], looking->arena, &calls[count])) {
            return false;
        }
        entry->is_there = true;
        entry->at = call->at;
        entry->result = result->at;
        from = call->at + 1;
        count++;
    }
    *ret_count = count;
    return count > 0;
}

static bool has_ours(const struct looking *looking, const struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct entry *entry = &kept->entries[i];
        if (entry->kind == ENTRY_OURS && recall_index_find(&looking->items, entry->item) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_unchanged(struct looking *looking, struct kept *kept)
{
    char hash[SHOWN_HASH_BYTES];
    size_t count = 0;
    struct shown_call *calls = arena_get(looking->arena, (kept->count + 1) * sizeof *calls);
    if (!calls_find(looking, kept, calls, &count) || has_ours(looking, kept)) {
        return false;
    }
    shown_hash((struct str){0}, calls, count, looking->arena, hash);
    return str_is(kept->hash, hash);
}

/* ---- where do its items stand? ---- */

/* May something that was said before a call stand in front of this? */
static bool is_said_before(const struct peek *peek)
{
    bool is_message = peek->type.len == 0 || str_is(peek->type, "message");
    return is_message ? str_is(peek->role, "assistant") : !is_call(peek) && !is_result(peek);
}

/* From the first call backwards, as far as the model has said it: what was seen of the answer and is there still. */
static void seen_find(struct looking *looking, struct kept *kept, size_t end)
{
    for (size_t at = kept->entries[end].at; at-- > 0 && is_said_before(&looking->peeks[at]);) {
        char hash[SHOWN_HASH_BYTES];
        if (!responses_seen_hash(looking->elements[at], looking->arena, hash)) {
            continue;
        }
        for (size_t i = end, looked = 0; i-- > 0 && looked < WINDOW;) {
            struct entry *entry = &kept->entries[i];
            looked += entry->kind == ENTRY_SEEN;
            if (entry->kind == ENTRY_SEEN && str_is(entry->id, hash)) {
                entry->is_there = true;
                entry->at = at;
                end = i;
                break;
            }
        }
    }
}

/* ---- items of ours without their ids ---- */

/* What an item of the kind shows of a call's arguments. */
static struct str shown_text(const struct responses_kind *kind, struct str arguments,
                             struct arena *arena)
{
    struct json_text text;
    struct sg_error ignored = {0};
    char *copy = check_alloc(arena_copy(arena, arguments));
    return json_scan((struct str){copy, arguments.len}, arena, &text, &ignored) == SG_OK
               ? json_find_text(text.members, text.count, kind->member, arena)
               : (struct str){0};
}

/* Does it say what a call of ours said? Then that takes its place. */
static void unnamed_match(struct looking *looking, struct kept *kept, size_t at)
{
    const struct peek *peek = &looking->peeks[at];
    const struct responses_kind *kind = responses_kind_of_type(peek->type);
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error ignored = {0};
    if (kind == NULL || peek->id.len > 0 || looking->elements[at].type != JSON_OBJECT ||
        json_members(looking->elements[at], "", looking->arena, &members, &count, &ignored) !=
            SG_OK) {
        return;
    }
    BUF_CLEANUP struct buf arguments = {0}, result = {0};
    bool has_result = false;
    kind->recall(members, count, looking->arena, &arguments, &result, &has_result);
    struct str text = shown_text(kind, buf_str(&arguments), looking->arena);
    for (size_t i = 0; i < kept->count; i++) {
        struct entry *entry = &kept->entries[i];
        if (entry->is_left && str_is(entry->tool, kind->hosted) && str_eq(entry->shown, text)) {
            entry->is_left = false;
            looking->elements[at] = (struct json_value){0}; /* once */
            insert_note(looking, (struct recall_insert){.at = at, .is_instead = true});
            return;
        }
    }
}

/* Those of the kinds of which there is an item without an id are left, until one is found that says the same. */
static bool unnamed_note(const struct looking *looking, struct kept *kept)
{
    bool is_any = false;
    for (size_t i = 0; i < kept->count; i++) {
        struct entry *entry = &kept->entries[i];
        for (size_t k = 0; entry->item.len > 0 && responses_kinds[k] != NULL; k++) {
            if ((looking->without_ids >> k & 1u) != 0 &&
                str_is(entry->tool, responses_kinds[k]->hosted)) {
                entry->is_left = true;
                entry->shown = shown_text(responses_kinds[k], entry->arguments, looking->arena);
            }
        }
        is_any = is_any || entry->is_left;
    }
    return is_any;
}

/* In front of the client's first call, and from there on to its last result. */
static void unnamed_find(struct looking *looking, struct kept *kept, size_t first)
{
    size_t last = 0;
    if (!unnamed_note(looking, kept)) {
        return;
    }
    for (size_t i = 0; i < kept->count; i++) {
        last = kept->entries[i].result > last ? kept->entries[i].result : last;
    }
    for (size_t at = first;
         at-- > 0 && first - at <= UNNAMED_MAX && is_said_before(&looking->peeks[at]);) {
        unnamed_match(looking, kept, at);
    }
    for (size_t at = first + 1; at < last && at - first <= UNNAMED_MAX; at++) {
        unnamed_match(looking, kept, at);
    }
}

static void places_note(struct kept *kept)
{
    size_t next = NOWHERE;
    for (size_t i = kept->count; i-- > 0;) {
        kept->entries[i].next = next;
        next = kept->entries[i].is_there ? kept->entries[i].at : next;
    }
}

/* ---- put back ---- */

static int insert_add(struct looking *looking, size_t at, bool is_behind, const struct buf *text,
                      struct str container, struct sg_error *err)
{
    struct recalling *recalling = looking->recalling;
    BUF_CLEANUP struct buf with_comma = {.max = LIMIT_BODY_BYTES};
    int code =
        text->overflow ? body_too_large(true, err) : recall_count(recalling, text->len + 1, err);
    if (code != SG_OK) {
        return code;
    }
    (void)buf_puts(&with_comma, is_behind ? "," : ""); /* counted */
    (void)buf_append_str(&with_comma, buf_str(text));
    (void)buf_puts(&with_comma, is_behind ? "" : ",");
    struct arena *arena = recalling->arena;
    insert_note(looking,
                (struct recall_insert){
                    .at = at,
                    .is_behind = is_behind,
                    .put = {check_alloc(arena_copy(arena, buf_str(&with_comma))), with_comma.len},
                    .container = {check_alloc(arena_copy(arena, container)), container.len}});
    return SG_OK;
}

static int offer_of(const struct looking *looking, const struct entry *entry)
{
    return tools_shown_of_kind(&looking->recalling->request->set, entry->tool);
}

/* A call of ours in front of what follows it; where nothing does, behind the client's last call. */
static int call_put_back(struct looking *looking, const struct kept *kept,
                         const struct entry *entry, size_t last_call, struct sg_error *err)
{
    int offer = offer_of(looking, entry);
    BUF_CLEANUP struct buf text = {.max = LIMIT_BODY_BYTES};
    if (offer >= 0) {
        recall_call_put(looking->recalling->request->set.shown[offer].name, entry->id,
                        entry->arguments, &text);
    } else {
        recall_text_put(entry->tool, entry->arguments, entry->output, &text);
    }
    bool is_behind = entry->next == NOWHERE;
    return insert_add(looking, is_behind ? last_call : entry->next, is_behind, &text,
                      kept->container, err);
}

static int result_put_back(struct looking *looking, const struct entry *entry, size_t at,
                           bool is_behind, struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {.max = LIMIT_BODY_BYTES};
    if (offer_of(looking, entry) < 0) {
        return SG_OK; /* it was told with the call */
    }
    recall_output_put(entry->id, entry->output, &text);
    return insert_add(looking, at, is_behind, &text, (struct str){0}, err);
}

/* An earlier turn's results stand behind its calls. */
static int turn_results_put_back(struct looking *looking, const struct kept *kept, size_t end,
                                 struct sg_error *err)
{
    size_t first = end;
    int code = SG_OK;
    while (first > 0 && !kept->entries[first - 1].ends_turn) {
        first--;
    }
    for (size_t i = first; code == SG_OK && i <= end; i++) {
        if (is_to_go_in(&kept->entries[i])) {
            CHECK(kept->entries[end].next != NOWHERE); /* the client's calls come later */
            code = result_put_back(looking, &kept->entries[i], kept->entries[end].next, false, err);
        }
    }
    return code;
}

/* In the last turn each stands in front of the first of the client's results that answers a later call; where there is
 * none, behind all of them. */
static int last_results_put_back(struct looking *looking, const struct kept *kept,
                                 struct sg_error *err)
{
    size_t next = NOWHERE, last = 0;
    int code = SG_OK;
    for (size_t i = kept->count; i-- > 0 && kept->entries[i].is_last_turn;) {
        struct entry *entry = &kept->entries[i];
        entry->next = next; /* of its result, from here on */
        if (entry->kind == ENTRY_GIVEN) {
            next = entry->result < next ? entry->result : next;
            last = entry->result > last ? entry->result : last;
        }
    }
    for (size_t i = 0; code == SG_OK && i < kept->count; i++) {
        const struct entry *entry = &kept->entries[i];
        if (is_to_go_in(entry) && entry->is_last_turn) {
            bool is_behind = entry->next == NOWHERE;
            code = result_put_back(looking, entry, is_behind ? last : entry->next, is_behind, err);
        }
    }
    return code;
}

static int kept_put_back(struct looking *looking, struct kept *kept, struct sg_error *err)
{
    size_t last_call = 0, first = 0;
    int code = SG_OK;
    while (first < kept->count && kept->entries[first].kind != ENTRY_GIVEN) {
        first++;
    }
    CHECK(first < kept->count);
    seen_find(looking, kept, first);
    unnamed_find(looking, kept, kept->entries[first].at);
    places_note(kept);
    for (size_t i = 0; i < kept->count; i++) {
        last_call = kept->entries[i].kind == ENTRY_GIVEN ? kept->entries[i].at : last_call;
    }
    for (size_t i = 0; code == SG_OK && i < kept->count; i++) {
        const struct entry *entry = &kept->entries[i];
        if (is_to_go_in(entry)) {
            code = call_put_back(looking, kept, entry, last_call, err);
        }
        if (code == SG_OK && entry->ends_turn && !entry->is_last_turn) {
            code = turn_results_put_back(looking, kept, i, err);
        }
    }
    return code == SG_OK ? last_results_put_back(looking, kept, err) : code;
}

/* ---- the input ---- */

static void index_add(struct recall_index *index, struct str id, size_t at)
{
    index->list[index->count++] = (struct recalled){.id = id, .at = (uint32_t)at};
}

static void element_note(struct looking *looking, size_t at)
{
    const struct peek *peek = &looking->peeks[at];
    if ((is_call(peek) || is_result(peek)) && responses_call_is_given(peek->call_id)) {
        index_add(is_call(peek) ? &looking->calls : &looking->results, peek->call_id, at);
    }
    if (peek->id.len > 0 &&
        memmem(peek->id.data, peek->id.len, "_sg", 3) != NULL) { /* by value or by reference */
        index_add(&looking->items, peek->id, at);
    }
    for (size_t k = 0; responses_kinds[k] != NULL; k++) {
        bool is_kind = str_is(peek->type, responses_kinds[k]->item_type);
        looking->without_ids |= is_kind && peek->id.len == 0 ? 1u << k : 0;
    }
}

static void elements_look(struct looking *looking, struct json_value list)
{
    struct recall_index *const indexes[] = {&looking->calls, &looking->results, &looking->items};
    struct json_walk walk = json_walk_of(list), inner;
    struct json_value ignored;
    while (looking->count < RESPONSES_INPUT_ITEMS_MAX && json_walk_element(&walk, &ignored)) {
        looking->count++; /* what is too many is said where they are read */
    }
    size_t room = looking->count + 1;
    looking->elements = check_alloc(arena_alloc(looking->arena, room * sizeof(struct json_value)));
    looking->peeks = check_alloc(arena_alloc(looking->arena, room * sizeof(struct peek)));
    for (size_t i = 0; i < COUNT_OF(indexes); i++) {
        indexes[i]->list = check_alloc(arena_alloc(looking->arena, room * sizeof(struct recalled)));
    }
    walk = json_walk_of(list);
    for (size_t i = 0; i < looking->count; i++) {
        CHECK(json_walk_element(&walk, &looking->elements[i]));
        looking->peeks[i] = (struct peek){0};
        if (looking->elements[i].type == JSON_OBJECT) {
            inner = json_walk_of(looking->elements[i]);
            looking->peeks[i] = recall_peek(&inner, looking->arena);
        }
        element_note(looking, i);
    }
    for (size_t i = 0; i < COUNT_OF(indexes); i++) {
        recall_index_sort(indexes[i]);
    }
}

/* A record is found by whichever of its calls comes first, and used once. */
static int call_look(struct looking *looking, size_t at, struct sg_error *err)
{
    struct recalled *call = recall_index_find(&looking->calls, looking->peeks[at].call_id);
    struct str data;
    if (call == NULL || call->at != at || call->is_taken || looking->records == RECORDS_MAX) {
        return SG_OK;
    }
    looking->records++;
    if (!responses_memory_find(looking->recalling->request, call->id, &data)) {
        return SG_OK;
    }
    struct kept kept = kept_read(data, looking->arena);
    for (size_t i = 0; i < kept.count; i++) {
        struct recalled *other = kept.entries[i].kind == ENTRY_GIVEN
                                     ? recall_index_find(&looking->calls, kept.entries[i].id)
                                     : NULL;
        if (other != NULL) {
            other->is_taken = true;
        }
    }
    return is_unchanged(looking, &kept) ? kept_put_back(looking, &kept, err) : SG_OK;
}

static int compare_inserts(const void *a, const void *b)
{
    const struct recall_insert *one = a, *other = b;
    if (one->at != other->at) {
        return one->at < other->at ? -1 : 1;
    }
    if (one->is_behind != other->is_behind) {
        return one->is_behind ? 1 : -1;
    }
    return one->number < other->number ? -1 : 1;
}

int responses_kept_look(struct recalling *recalling, struct json_value list, struct sg_error *err)
{
    struct looking looking = {.recalling = recalling, .arena = recalling->scratch};
    struct recall_inserts *inserts = &recalling->inserts;
    int code = SG_OK;
    elements_look(&looking, list);
    for (size_t i = 0; code == SG_OK && i < looking.count; i++) {
        code = call_look(&looking, i, err);
    }
    if (inserts->count > 0) {
        qsort(inserts->list, inserts->count, sizeof *inserts->list, compare_inserts);
    }
    return code;
}
