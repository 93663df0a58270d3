/* The answer's end, in a stream's last event or as a plain answer: what has not come before, and how it ended. */
#include "surface/responses.h"

#include "base/check.h"

static void usage_note(struct responses_turn *turn, const struct json_member *members, size_t count)
{
    const struct json_member *usage = json_find_type(members, count, "usage", JSON_OBJECT);
    if (usage != NULL) {
        buf_reset(&turn->usage);
        (void)buf_append_str(&turn->usage, usage->value.raw); /* bounded by its event */
        turn->used = SURFACE_USAGE_NONE;
        usage_read(usage->value, &usage_names_responses, &turn->used);
    }
}

/* An element of the whole answer's output: one that has come, by its id, else by its place, else the next of its type;
 * upstreams are known to change ids at the end. */
static struct responses_item *output_find(const struct responses_turn *turn, struct str id,
                                          struct str type, size_t place)
{
    struct responses_item *found = NULL;
    for (size_t pass = 0; pass < 3 && found == NULL; pass++) {
        for (size_t i = 0; i < turn->items_count && found == NULL; i++) {
            struct responses_item *item = turn->items[i];
            bool fits = pass == 0   ? id.len > 0 && str_eq(buf_str(&item->id), id)
                        : pass == 1 ? item->has_index && item->index == (int64_t)place
                                    : true;
            found = fits && !item->is_matched && responses_type_fits(item, type) ? item : NULL;
        }
    }
    return found;
}

static int output_take(struct responses *r, struct json_value list, struct arena *arena,
                       struct buf *out, struct sg_error *err)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value value;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        struct json_member *members = NULL;
        size_t count = 0;
        if (value.type != JSON_OBJECT) {
            continue;
        }
        code = json_members(value, "an item", arena, &members, &count, err);
        if (code != SG_OK) {
            return code;
        }
        int64_t index = (int64_t)i;
        struct str id = json_find_text(members, count, "id", arena);
        struct str type = responses_type_of(r, members, count, arena);
        struct responses_item *item = output_find(r->turn, id, type, i);
        item = item != NULL ? item : responses_item_make(r, id, &index, type, err);
        if (item == NULL) {
            return err->code;
        }
        item->is_matched = true;
        if (!item->is_ended) {
            code = responses_item_take(r, item, value, true, arena, err);
            item->is_ended = true;
        }
    }
    for (size_t i = 0; code == SG_OK && i < r->turn->items_count; i++) {
        if (r->turn->items[i]->is_matched) {
            responses_item_advance(r, r->turn->items[i], out);
        }
    }
    return code;
}

static int status_take(struct responses *r, const struct json_member *members, size_t count,
                       struct arena *arena, struct sg_error *err)
{
    struct responses_turn *turn = r->turn;
    struct str status = json_find_text(members, count, "status", arena);
    if (status.len == 0 || str_is(status, "completed")) {
        return SG_OK;
    }
    if (!str_is(status, "incomplete")) {
        return error_set(err, SG_E_UNAVAILABLE, "The upstream's answer ended as '%.*s'",
                         status.len < 64 ? (int)status.len : 64, status.data);
    }
    const struct json_member *details =
        json_find_type(members, count, "incomplete_details", JSON_OBJECT);
    struct json_member *inside = NULL;
    size_t inside_count = 0;
    if (details != NULL) {
        int code =
            json_members(details->value, "incomplete_details", arena, &inside, &inside_count, err);
        if (code != SG_OK) {
            return code;
        }
    }
    struct str reason = json_find_text(inside, inside_count, "reason", arena);
    turn->is_incomplete = true;
    buf_reset(&turn->incomplete_reason);
    (void)buf_append_str(&turn->incomplete_reason,
                         reason.len > 0 ? reason : STR("max_output_tokens")); /* its event */
    return SG_OK;
}

int responses_whole_take(struct responses *r, struct json_value response, struct arena *arena,
                         struct buf *out, struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(response, "response", arena, &members, &count, err);
    if (code == SG_OK) {
        code = status_take(r, members, count, arena, err);
    }
    if (code != SG_OK) {
        return code;
    }
    usage_note(r->turn, members, count);
    const struct json_member *tier = json_find_type(members, count, "service_tier", JSON_STRING);
    if (tier != NULL) {
        buf_reset(&r->tier);
        (void)buf_append_str(&r->tier, tier->value.raw); /* bounded by its event */
    }
    const struct json_member *output = json_find_type(members, count, "output", JSON_ARRAY);
    code = output == NULL ? SG_OK : output_take(r, output->value, arena, out, err);
    r->turn->is_whole = code == SG_OK;
    return code;
}
