/* Token counts of relayed answers: see relayed_usage.h. What a client or a model says stands in strings, in which quotes are
 * escaped: it cannot pass for a member of the answer. */
#include "gateway/relayed_usage.h"

#include "base/check.h"
#include "surface/usage.h"

#define USAGE_KEY STR("\"usage\"")

enum { TRIES_MAX = 16 }; /* each may read to the end */

void relayed_usage_begin(struct relayed_usage *usage, const struct upstream_call *call)
{
    struct request *r = call->request;
    const char *surface = r->route.surface_name;
    bool is_messages = surface != NULL && strcmp(surface, "messages") == 0;
    bool is_responses = surface != NULL && strcmp(surface, "responses") == 0;
    *usage =
        (struct relayed_usage){.is_on = call->status < 300 && r->route.kind != ROUTE_RELAY_PATH,
                               .names = is_messages    ? &usage_names_messages
                                        : is_responses ? &usage_names_responses
                                                       : &usage_names_chat};
    if (usage->is_on) {
        bool keeps_head = is_messages && call->is_stream;
        usage->head = keeps_head ? arena_get(r->arena, RELAYED_HEAD_BYTES) : NULL;
        usage->tail = arena_get(r->arena, (size_t)2 * RELAYED_TAIL_BYTES);
    }
}

/* Room for a piece is made by forgetting what is not among the last bytes any more, half of the room at a time. */
static void tail_keep(struct relayed_usage *usage, struct str piece)
{
    if (piece.len > RELAYED_TAIL_BYTES) {
        piece.data += piece.len - RELAYED_TAIL_BYTES;
        piece.len = RELAYED_TAIL_BYTES;
    }
    if (usage->tail_len + piece.len > (size_t)2 * RELAYED_TAIL_BYTES) {
        memmove(usage->tail, usage->tail + usage->tail_len - RELAYED_TAIL_BYTES,
                RELAYED_TAIL_BYTES);
        usage->tail_len = RELAYED_TAIL_BYTES;
    }
    memcpy(usage->tail + usage->tail_len, piece.data, piece.len);
    usage->tail_len += piece.len;
}

void relayed_usage_feed(struct relayed_usage *usage, struct str piece)
{
    if (!usage->is_on || piece.len == 0) {
        return;
    }
    if (usage->head != NULL && usage->head_len < RELAYED_HEAD_BYTES) {
        size_t room = RELAYED_HEAD_BYTES - usage->head_len;
        size_t len = piece.len < room ? piece.len : room;
        memcpy(usage->head + usage->head_len, piece.data, len);
        usage->head_len += len;
    }
    tail_keep(usage, piece);
}

static size_t skip_space(struct str text, size_t at)
{
    while (at < text.len && memchr(" \t\r\n", text.data[at], 4) != NULL) {
        at++;
    }
    return at;
}

/* The object that begins at `at`, by its braces; empty: it does not end. */
static struct str object_at(struct str text, size_t at)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = at; i < text.len; i++) {
        char c = text.data[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            return (struct str){text.data + at, i + 1 - at};
        }
    }
    return (struct str){0};
}

/* The object under a "usage" that begins at `at`; empty: there is none. */
static struct str usage_at(struct str text, size_t at)
{
    size_t colon = skip_space(text, at + USAGE_KEY.len);
    bool is_inside = at > 0 && text.data[at - 1] == '\\'; /* of a string */
    if (is_inside || colon >= text.len || text.data[colon] != ':') {
        return (struct str){0};
    }
    size_t value = skip_space(text, colon + 1);
    bool is_object = value < text.len && text.data[value] == '{';
    return is_object ? object_at(text, value) : (struct str){0};
}

bool usage_find_last(struct str text, struct str *ret)
{
    unsigned tries = 0;
    for (size_t at = text.len; at-- > 0 && tries < TRIES_MAX;) {
        if (!str_starts((struct str){text.data + at, text.len - at}, USAGE_KEY)) {
            continue;
        }
        struct str object = usage_at(text, at);
        if (object.len > 0) {
            *ret = object;
            return true;
        }
        tries++;
    }
    return false;
}

static void take(const struct relayed_usage *usage, struct str text, struct request *r)
{
    struct str object;
    struct json_text json;
    struct sg_error ignored;
    if (usage_find_last(text, &object) && json_scan(object, r->arena, &json, &ignored) == 0) {
        usage_read(json.root, usage->names, &r->relayed_usage);
    }
}

void relayed_usage_end(const struct relayed_usage *usage, struct request *r)
{
    if (usage->is_on) {
        take(usage, (struct str){usage->head, usage->head_len}, r);
        take(usage, (struct str){usage->tail, usage->tail_len}, r);
    }
}
