/* The memory that surfaces are given (struct surface_memory, struct surface_store): records of the request's identity, and
 * the container that an answer leaves waiting for the request that continues it. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "session/records.h"

struct held_record { /* until the request ends */
    struct held_record *next;
    struct record *record;
};

static struct request *request_of(void *context)
{
    struct request *r = context;
    CHECK_MAGIC(r, REQUEST_MAGIC);
    return r;
}

static struct record *find_record(struct request *r, struct records *store, struct str id)
{
    struct record *record = records_find(store, r->identity, id, clock_ms());
    for (struct held_record *held = r->held_records; held != NULL && record != NULL;
         held = held->next) {
        if (held->record == record) {
            record_unref(record);
            return record;
        }
    }
    if (record != NULL) {
        struct held_record *held = arena_get(r->arena, sizeof *held);
        *held = (struct held_record){r->held_records, record};
        r->held_records = held;
    }
    return record;
}

static bool memory_find(void *context, struct str id, struct str *ret)
{
    struct request *r = request_of(context);
    struct record *record = find_record(r, r->gateway->records, id);
    if (record != NULL) {
        *ret = record_data(record);
    }
    return record != NULL;
}

/* A session's container stays by itself; any other one waits for the client to come back. */
static bool memory_keep(void *context, const struct str *ids, size_t count, struct str data,
                        bool goes_on)
{
    struct request *r = request_of(context);
    struct record_input input = {
        .identity = r->identity, .ids = ids, .ids_count = count, .data = data};
    bool parks = goes_on && r->lease != NULL && r->session_id.len == 0;
    if (parks) {
        lease_park(r->lease, LIMIT_PARK_MS); /* before the client can know of it */
    }
    if (r->lease != NULL && r->session_id.len == 0) { /* one that ends is a loss to be told */
        input.container_id = str_of(lease_container_id(r->lease));
    }
    bool is_kept = records_keep(r->gateway->records, &input, clock_ms());
    if (parks && !is_kept) {
        lease_park(r->lease, 0);
    }
    return is_kept;
}

static bool memory_resume(void *context, struct str id)
{
    struct request *r = request_of(context);
    struct record *record = find_record(r, r->gateway->records, id);
    return record != NULL && container_resume(r, record_container_id(record));
}

static bool store_keep(void *context, const struct str *ids, size_t count, struct str data)
{
    struct request *r = request_of(context);
    struct record_input input = {
        .identity = r->identity, .ids = ids, .ids_count = count, .data = data};
    return records_keep(r->gateway->responses, &input, clock_ms());
}

static bool store_find(void *context, struct str id, struct str *ret)
{
    struct request *r = request_of(context);
    struct record *record = find_record(r, r->gateway->responses, id);
    if (record != NULL) {
        *ret = record_data(record);
    }
    return record != NULL;
}

void memory_attach(struct request *r)
{
    r->memory = (struct surface_memory){memory_keep, memory_find, memory_resume, r};
    r->store = (struct surface_store){store_keep, store_find, r};
}

void memory_end(struct request *r)
{
    while (r->held_records != NULL) {
        record_unref(r->held_records->record);
        r->held_records = r->held_records->next;
    }
}
