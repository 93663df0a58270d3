/* Events for the client: numbered without gaps, one line of JSON each. */
#include "surface/responses.h"

#include "base/check.h"

#include <stdio.h>

enum { EVENT_MEMBERS_MAX = 24 };

static void member_put(struct str key_raw, struct str value, bool *first, struct buf *out)
{
    (void)buf_puts(out, *first ? "" : ","); /* the owner asks for overflow, here and below */
    (void)buf_append_str(out, key_raw);
    (void)buf_putc(out, ':');
    (void)buf_append_str(out, value);
    *first = false;
}

/* The members between the braces. */
static void members_put(const struct json_member *members, size_t count,
                        const struct responses_member *puts, size_t puts_count, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        struct str value = members[i].value.raw;
        for (size_t k = 0; k < puts_count; k++) {
            value = str_is(members[i].key, puts[k].key) ? puts[k].value : value;
        }
        if (value.len > 0) {
            member_put(members[i].key_raw, value, &first, out);
        }
    }
    for (size_t k = 0; k < puts_count; k++) {
        if (puts[k].value.len > 0 && json_find(members, count, puts[k].key) == NULL) {
            (void)buf_printf(out, "%s\"%s\":", first ? "" : ",", puts[k].key);
            (void)buf_append_str(out, puts[k].value);
            first = false;
        }
    }
}

void responses_object_put(const struct json_member *members, size_t count,
                          const struct responses_member *puts, size_t puts_count, struct buf *out)
{
    (void)buf_putc(out, '{'); /* the owner asks for overflow */
    members_put(members, count, puts, puts_count, out);
    (void)buf_putc(out, '}');
}

void responses_quote(struct str inner, struct buf *out)
{
    (void)buf_putc(out, '"'); /* the owner asks for overflow */
    (void)buf_append_str(out, inner);
    (void)buf_putc(out, '"');
}

/* ---- events ---- */

struct heading { /* what every event has */
    char number[24], index[24];
    struct buf id;
    struct responses_member members[EVENT_MEMBERS_MAX];
    size_t count;
};

static void heading_add(struct heading *heading, const char *key, struct str value)
{
    CHECK(heading->count < EVENT_MEMBERS_MAX);
    heading->members[heading->count++] = (struct responses_member){key, value};
}

/* `has_item`: the event carries the whole item and so no id of it. */
static void heading_make(struct responses *r, const struct responses_shown *shown, bool has_item,
                         const struct responses_member *puts, size_t count, struct heading *heading)
{
    (void)snprintf(heading->number, sizeof heading->number, "%lld", (long long)r->sequence++);
    heading_add(heading, "sequence_number", str_of(heading->number));
    if (shown != NULL) {
        (void)snprintf(heading->index, sizeof heading->index, "%zu", shown->index);
        heading_add(heading, "output_index", str_of(heading->index));
    }
    if (shown != NULL && !has_item) {
        (void)buf_put_json(&heading->id, buf_str(&shown->id)); /* small: fits */
        heading_add(heading, "item_id", buf_str(&heading->id));
    }
    for (size_t i = 0; i < count; i++) {
        heading_add(heading, puts[i].key, puts[i].value);
    }
}

static void event_write(const struct responses *r, const char *type, const struct json_text *event,
                        struct heading *heading, struct buf *out)
{
    if (r->sequence <= r->sequence_silent) {
        buf_clear(&heading->id);
        return;
    }
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_put_json(&quoted, str_of(type)); /* small: fits */
    heading_add(heading, "type", buf_str(&quoted));
    /* Type and number come first where the event is of our making. */
    struct responses_member last = heading->members[heading->count - 1];
    memmove(heading->members + 1, heading->members, (heading->count - 1) * sizeof last);
    heading->members[0] = last;
    (void)buf_printf(out, "event: %s\ndata: {", type); /* the owner asks for overflow */
    size_t start = out->len;
    members_put(event == NULL ? NULL : event->members, event == NULL ? 0 : event->count,
                heading->members, heading->count, out);
    (void)buf_puts(out, "}\n\n");
    line_flatten(out, start);
    buf_clear(&heading->id);
}

void responses_event_put(struct responses *r, const char *type, const struct responses_shown *shown,
                         const struct responses_member *members, size_t count, struct buf *out)
{
    if (!r->request.wants_stream) {
        return;
    }
    struct heading heading = {0};
    bool has_item = count > 0 && strcmp(members[0].key, "item") == 0;
    heading_make(r, shown, has_item, members, count, &heading);
    event_write(r, type, NULL, &heading, out);
}

void responses_event_pass(struct responses *r, const char *type, const struct json_text *event,
                          const struct responses_shown *shown, const struct responses_member *puts,
                          size_t count, struct buf *out)
{
    if (!r->request.wants_stream) {
        return;
    }
    struct heading heading = {0};
    heading_make(r, shown, false, puts, count, &heading);
    event_write(r, type, event, &heading, out);
}
