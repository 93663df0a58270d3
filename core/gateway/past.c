/* What the model must be told where a conversation's container is new and the conversation is not: another may have been
 * before it, of which nobody here knows any more, since it expired long ago, the gateway was started again, or it was another
 * gateway's. A front end's history does not show what ran. So the first request of a session that this process sees decides:
 * if nobody has answered in its history, nothing has run so far. That is remembered, until something does run. */
#include "gateway/request.h"

#include "base/clock.h"
#include "base/limits.h"
#include "session/records.h"

enum past { PAST_NONE, PAST_IF_ANSWERED, PAST_SURE };

/* Of an element of `messages`: an assistant has spoken, and somebody answered; the last words of all may be the beginning of
 * the answer that is asked for. Of an item of `input` too, or it is none of anybody's words: a call, a result, a reference. */
static enum past past_shown(struct json_walk *members, bool items, struct arena *arena)
{
    bool has_role = false, is_assistant = false;
    struct str key;
    struct json_value value;
    while (json_walk_member(members, &key, &value)) { /* to the end, as the walk around it asks */
        if (value.type == JSON_STRING && json_key_is(key, "role")) {
            has_role = true;
            is_assistant = str_is(json_text_of(value, arena), "assistant");
        }
    }
    return is_assistant ? PAST_IF_ANSWERED : items && !has_role ? PAST_SURE : PAST_NONE;
}

static bool list_shows_past(const struct request *r, const char *name)
{
    const struct json_member *list =
        json_find_type(r->body.members, r->body.count, name, JSON_ARRAY);
    if (list == NULL) {
        return false;
    }
    enum past before = PAST_NONE;
    bool is_past = false, items = strcmp(name, "input") == 0;
    struct json_walk walk = json_walk_of(list->value), inner;
    struct json_value other;
    while (!is_past) {
        if (json_walk_enter(&walk, &inner)) {
            enum past now = past_shown(&inner, items, r->arena);
            json_walk_leave(&walk, &inner);
            is_past = now == PAST_SURE || before == PAST_IF_ANSWERED;
            before = now;
        } else if (!json_walk_element(&walk, &other)) {
            break;
        }
    }
    return is_past;
}

static bool has_past(const struct request *r)
{
    return list_shows_past(r, "messages") || list_shows_past(r, "input") ||
           json_find_type(r->body.members, r->body.count, "previous_response_id", JSON_STRING) !=
               NULL;
}

/* What is remembered of a session. "in vain": a loss was told with a result of a request that failed, so that it stands in
 * nobody's history. */
static const struct str nothing_ran = STR("nothing"), perhaps = STR("perhaps"),
                        in_vain = STR("in vain");

enum known { KNOWN_NOT, KNOWN_NOTHING_RAN, KNOWN_PERHAPS, KNOWN_IN_VAIN };

static enum known past_find(const struct request *r)
{
    if (r->session_id.len == 0) {
        return KNOWN_NOT;
    }
    struct record *record = records_find(r->gateway->pasts, r->identity, r->session_id, clock_ms());
    enum known ret = record == NULL                             ? KNOWN_NOT
                     : str_eq(record_data(record), nothing_ran) ? KNOWN_NOTHING_RAN
                     : str_eq(record_data(record), in_vain)     ? KNOWN_IN_VAIN
                                                                : KNOWN_PERHAPS;
    record_unref(record);
    return ret;
}

static void past_keep(const struct request *r, struct str what)
{
    struct record_input input = {
        .identity = r->identity, .ids = &r->session_id, .ids_count = 1, .data = what};
    (void)records_keep(r->gateway->pasts, &input, clock_ms()); /* an id is never over a limit */
}

void past_note(const struct request *r)
{
    if (r->session_id.len > 0 && client_is_believed(r) && past_find(r) == KNOWN_NOT) {
        past_keep(r, has_past(r) ? perhaps : nothing_ran);
    }
}

bool past_may_have_run(const struct request *r)
{
    if (r->session_id.len == 0) {
        return false;
    }
    enum known known = past_find(r);
    return known == KNOWN_NOT ? has_past(r) /* it was forgotten meanwhile */
                              : known != KNOWN_NOTHING_RAN;
}

bool past_told_in_vain(const struct request *r)
{
    return past_find(r) == KNOWN_IN_VAIN;
}

/* What is to be remembered of the session; empty: what is known already. */
static struct str past_of(const struct request *r)
{
    if (r->has_told_loss) {
        return r->failure.code != 0 ? in_vain : perhaps;
    }
    return container_was_used(r) && past_find(r) < KNOWN_PERHAPS ? perhaps : (struct str){0};
}

void past_leave(struct request *r)
{
    struct str past = r->session_id.len > 0 ? past_of(r) : (struct str){0};
    /* Once: the session's next request may have written more meanwhile. */
    if (past.len > 0 && past.data != r->past_left.data) {
        r->past_left = past;
        past_keep(r, past);
    }
}

struct records *pasts_new(void)
{
    const struct records_options options = {.life_ms = LIMIT_PAST_MS,
                                            .record_bytes = LIMIT_PAST_BYTES,
                                            .identity_bytes = LIMIT_PASTS_IDENTITY_BYTES,
                                            .total_bytes = LIMIT_PASTS_BYTES};
    return records_new(&options);
}
