/* The admin address: everybody's sessions, seen and ended by the operator. auth.c says who may ask. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"
#include "gateway/query.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_USUAL = 100, PAGE_MAX = 1000 };

struct wish { /* of a request's query */
    struct str identity, user;
    uint64_t after;
    size_t limit; /* 0: it is none */
    bool is_wrong, is_paged;
};

/* Said once, whole, and not empty. */
static void name_take(struct wish *wish, struct str *ret, struct str value)
{
    bool is_good =
        ret->data == NULL && value.len > 0 && memchr(value.data, '\0', value.len) == NULL;
    *ret = value;
    wish->is_wrong = wish->is_wrong || !is_good;
}

static void wish_take(void *ctx, struct str name, struct str value)
{
    struct wish *wish = ctx;
    int64_t number = query_number(value);
    wish->is_paged = wish->is_paged || str_is(name, "after") || str_is(name, "limit");
    if (str_is(name, "identity")) {
        name_take(wish, &wish->identity, value);
    } else if (str_is(name, "user")) {
        name_take(wish, &wish->user, value);
    } else if (str_is(name, "after") && number >= 0) {
        wish->after = (uint64_t)number;
    } else if (str_is(name, "limit") && number > 0 && number <= PAGE_MAX) {
        wish->limit = (size_t)number;
    } else {
        wish->is_wrong = true;
    }
}

/* What is not known is refused: who meant to end one identity's sessions must not end another's by a slip. */
static int wish_read(struct request *r, struct wish *ret, struct sg_error *err)
{
    *ret = (struct wish){.limit = PAGE_USUAL};
    query_walk(http_request_head(r->exchange)->query, r->arena, wish_take, ret);
    if (ret->user.len > 0 && ret->identity.len > 0) {
        ret->identity = str_of(
            arena_printf(r->arena, "%s%c%s", ret->identity.data, IDENTITY_MARK, ret->user.data));
    } else if (ret->user.len > 0) {
        ret->is_wrong = true;
    }
    return ret->is_wrong ? error_set(err, SG_E_INVALID,
                                     "The query may have identity, user (with identity), after (a "
                                     "number) and limit (1 to %d), each once and with a value.",
                                     PAGE_MAX)
                         : 0;
}

static void put_text(struct buf *out, const char *name, struct str text)
{
    (void)buf_printf(out, ",\"%s\":", name); /* overflow shows in the buffer */
    (void)buf_put_json(out, text);
}

static void put_int(struct buf *out, const char *name, int64_t value)
{
    (void)buf_printf(out, ",\"%s\":%" PRId64, name, value);
}

/* Negative: null. */
static void put_seconds(struct buf *out, const char *name, int64_t ms)
{
    if (ms < 0) {
        (void)buf_printf(out, ",\"%s\":null", name);
    } else {
        put_int(out, name, (ms + 999) / 1000);
    }
}

static void put_container(struct buf *out, const struct container_seen *seen)
{
    (void)buf_puts(out, "{\"object\":\"session\"");
    put_text(out, "container_id", seen->container_id);
    put_text(out, "identity", identity_key(seen->identity));
    if (identity_user(seen->identity).len > 0) {
        put_text(out, "user", identity_user(seen->identity));
    }
    if (seen->session_id.len > 0) {
        put_text(out, "id", seen->session_id);
    } else {
        (void)buf_puts(out, ",\"id\":null");
    }
    put_text(out, "sandbox", seen->sandbox);
    put_text(out, "label", seen->label);
    put_text(out, "state", str_of(seen->state));
    (void)buf_printf(out, ",\"parked\":%s", seen->is_parked ? "true" : "false");
    put_int(out, "requests", (int64_t)seen->leases);
    put_int(out, "uses", (int64_t)seen->uses);
    put_int(out, "created_at", seen->created_unix_s);
    put_seconds(out, "unused_seconds", seen->unused_ms);
    put_seconds(out, "idle_seconds_left", seen->idle_left_ms);
    (void)buf_puts(out, "}");
}

static int answer_sessions(struct request *r, const struct wish *wish, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    struct container_choice choice = {wish->identity, wish->after, wish->limit + 1};
    struct container_seen *seen;
    size_t count = registry_see(r->gateway->registry, &choice, r->arena, &seen);
    bool has_more = count > wish->limit;
    count -= has_more;
    (void)buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < count; i++) {
        (void)buf_puts(&out, i == 0 ? "" : ",");
        put_container(&out, &seen[i]);
    }
    (void)buf_printf(&out, "],\"has_more\":%s", has_more ? "true" : "false");
    put_int(&out, "after", (int64_t)(count == 0 ? wish->after : seen[count - 1].number));
    (void)buf_puts(&out, "}");
    return answer_json(r, 200, buf_str(&out), err);
}

static int answer_ended(struct request *r, size_t count, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_printf(&out, "{\"object\":\"sessions.deleted\",\"deleted\":%zu}", count);
    return answer_json(r, 200, buf_str(&out), err);
}

static int end_of_identity(struct request *r, const struct wish *wish, struct sg_error *err)
{
    if (wish->is_paged) {
        return error_set(err, SG_E_INVALID,
                         "All sessions of an identity are ended at once: leave 'after' and 'limit' "
                         "out.");
    }
    if (wish->identity.len == 0) {
        return error_set(err, SG_E_INVALID,
                         "Say whose sessions shall end: ?identity=NAME, or one by its container id "
                         "as in DELETE /admin/sessions/cntr_….");
    }
    return answer_ended(r, registry_end_all(r->gateway->registry, wish->identity), err);
}

static int end_one(struct request *r, struct sg_error *err)
{
    if (!registry_end_any(r->gateway->registry, str_of(r->route.object_id))) {
        int rc = error_set(err, SG_E_NOT_FOUND, "There is no container of this id.");
        (void)snprintf(err->reason, sizeof err->reason, "session_not_found"); /* fits */
        return rc;
    }
    return answer_ended(r, 1, err);
}

int admin_answer(struct request *r, struct sg_error *err)
{
    struct wish wish;
    if (r->route.kind == ROUTE_ADMIN_PROFILE) {
        return admin_profile_answer(r, err);
    }
    if (r->route.kind == ROUTE_ADMIN_CONFIG) {
        return admin_config_answer(r, err);
    }
    if (r->route.kind == ROUTE_ADMIN_SESSION) {
        return end_one(r, err);
    }
    int rc = wish_read(r, &wish, err);
    if (rc != 0) {
        return rc;
    }
    return str_is(http_request_head(r->exchange)->method, "DELETE")
               ? end_of_identity(r, &wish, err)
               : answer_sessions(r, &wish, err);
}
