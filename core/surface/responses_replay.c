/* A kept answer as a stream again: its items go through the same code as those of an upstream's plain answer. */
#include "surface/responses.h"
#include "surface/responses_stored.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

/* The response as it was when it began. */
static void start_tell(struct responses *r, const struct responses_record *record, struct buf *out)
{
    static const struct responses_member puts[] = {
        {"status", {"\"in_progress\"", 13}}, {"completed_at", {"null", 4}}, {"error", {"null", 4}},
        {"incomplete_details", {"null", 4}}, {"output", {"[]", 2}},         {"usage", {"null", 4}}};
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error err = {0};
    BUF_CLEANUP struct buf object = {0};
    int code = json_members(record->response, "", arena, &members, &count, &err);
    CHECK(code == SG_OK); /* the record was read so */
    responses_object_put(members, count, puts, COUNT_OF(puts), &object);
    const struct responses_member response = {"response", buf_str(&object)};
    responses_event_put(r, "response.created", NULL, &response, 1, out);
    responses_event_put(r, "response.in_progress", NULL, &response, 1, out);
    arena_free(arena);
}

static void hosted_replay(struct responses *r, const struct responses_kind *kind,
                          const struct json_member *members, size_t count, struct arena *arena,
                          struct buf *out)
{
    struct responses_shown *shown = responses_shown_add(r);
    struct str status = json_find_text(members, count, "status", arena), text;
    shown->kind = kind;
    (void)buf_append_str(&shown->id,
                         json_find_text(members, count, "id", arena)); /* the record's */
    member_stream_init(&shown->text, kind->member);
    struct responses_shown loaded = {0};
    kind->load(members, count, arena, &loaded, &text);
    shown->container_id = loaded.container_id;
    responses_hosted_announce(r, shown, out);
    (void)buf_append_str(&shown->text.text, text); /* the record's */
    shown->is_argued = true;
    kind->argued(r, shown, true, out);
    shown->results = loaded.results;
    bool has_run = str_is(status, "completed") || str_is(status, "failed");
    if (has_run) {
        kind->begun(r, shown, out);
    }
    if (str_is(status, "completed")) {
        kind->ended(r, shown, NULL, out);
    }
    responses_hosted_close(r, shown,
                           !has_run                      ? NULL
                           : str_is(status, "completed") ? "completed"
                                                         : "failed",
                           out);
}

static void item_replay(struct responses *r, struct json_value value, struct arena *arena,
                        struct buf *out)
{
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error err = {0};
    if (value.type != JSON_OBJECT ||
        json_members(value, "", arena, &members, &count, &err) != SG_OK) {
        return; /* none that we wrote */
    }
    const struct responses_kind *kind = responses_kind_of_item(
        json_find_text(members, count, "type", arena), json_find_text(members, count, "id", arena));
    if (kind != NULL) {
        hosted_replay(r, kind, members, count, arena, out);
        return;
    }
    struct responses_item *item = responses_item_add(r->turn, &err);
    if (item != NULL && responses_item_take(r, item, value, true, arena, &err) == SG_OK) {
        item->is_decided = true;
        responses_item_close(r, item, "completed", out);
    }
}

static void end_tell(struct responses *r, const struct responses_record *record,
                     const struct responses_include *include, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error err = {0};
    BUF_CLEANUP struct buf object = {0};
    int code = json_members(record->response, "", arena, &members, &count, &err);
    CHECK(code == SG_OK);
    bool is_cut = str_is(json_find_text(members, count, "status", arena), "incomplete");
    responses_stored_put(record, include, &object);
    if (r->sequence < r->sequence_silent) { /* who saw more pieces than these still gets the end */
        r->sequence = r->sequence_silent;
    }
    responses_event_put(r, is_cut ? "response.incomplete" : "response.completed", NULL,
                        (struct responses_member[]){{"response", buf_str(&object)}}, 1, out);
    out->overflow = out->overflow || object.overflow;
    arena_free(arena);
}

/* `include` as the surface reads it in a request. */
static struct json_member include_make(const struct responses_include *include, struct buf *text)
{
    (void)buf_putc(text, '['); /* small: a query's */
    for (size_t i = 0; include != NULL && i < include->count; i++) {
        (void)buf_puts(text, i == 0 ? "" : ",");
        (void)buf_put_json(text, include->values[i]);
    }
    (void)buf_putc(text, ']');
    return (struct json_member){.value = {JSON_ARRAY, buf_str(text)}};
}

/* The first number that is told. Those that follow stay numbers that every reader of JSON has exactly. */
static int64_t first_told(int64_t starting_after)
{
    const int64_t number_max = (INT64_C(1) << 53) - 2;
    if (starting_after < 0) {
        return 0;
    }
    return (starting_after < number_max ? starting_after : number_max) + 1;
}

void responses_stored_replay(const struct responses_record *record,
                             const struct responses_include *include, int64_t starting_after,
                             struct buf *out)
{
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf asked = {0};
    struct json_member wanted = include_make(include, &asked);
    struct responses r = {.magic = RESPONSES_MAGIC,
                          .arena = arena,
                          .request = {.wants_stream = true, .include = &wanted},
                          .status = "in_progress"};
    r.sequence_silent = first_told(starting_after);
    start_tell(&r, record, out);
    struct json_walk walk = json_walk_of(record->output);
    struct json_value item;
    while (json_walk_element(&walk, &item)) { /* each as a turn of its own, which bounds them */
        r.turn = responses_turn_new();
        r.turn->is_released = true;
        item_replay(&r, item, arena, out);
        responses_turn_free(r.turn);
    }
    end_tell(&r, record, include, out);
    for (size_t i = 0; i < r.shown_count; i++) {
        responses_shown_free(r.shown[i]);
    }
    free(r.shown);
    arena_free(arena);
}
