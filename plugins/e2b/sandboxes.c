/* The sandboxes that are known: a table by id, with references, so that one can be ended while a run uses it. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

#define ENDED_AFTER_MS 60000 /* past its time a sandbox is certain to be gone */

static struct sandbox **bucket_of(struct e2b *e2b, const char *id)
{
    uint32_t hash = 2166136261u;
    for (; *id != '\0'; id++) {
        hash = (hash ^ (unsigned char)*id) * 16777619u;
    }
    return &e2b->buckets[hash % SANDBOX_BUCKETS];
}

struct sandbox *sandbox_new(void)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    if (sandbox != NULL) {
        sandbox->magic = SANDBOX_MAGIC;
        sandbox->refs = 1;
    }
    return sandbox;
}

/* Under the lock: the place that points to it, or to NULL. */
static struct sandbox **place_of(struct e2b *e2b, const char *id)
{
    struct sandbox **at = bucket_of(e2b, id);
    while (*at != NULL && strcmp((*at)->id, id) != 0) {
        at = &(*at)->next;
    }
    return at;
}

struct sandbox *sandbox_find(struct e2b *e2b, const char *id)
{
    pthread_mutex_lock(&e2b->lock);
    struct sandbox *found = *place_of(e2b, id);
    if (found != NULL) {
        found->refs++;
    }
    pthread_mutex_unlock(&e2b->lock);
    return found;
}

void sandbox_discard(struct sandbox *sandbox)
{
    if (sandbox == NULL) {
        return;
    }
    memset(sandbox, 0, sizeof *sandbox); /* its tokens, and the magic */
    free(sandbox);
}

struct sandbox *sandbox_add_take(struct e2b *e2b, struct sandbox *sandbox, bool is_made)
{
    pthread_mutex_lock(&e2b->lock);
    struct sandbox **place = place_of(e2b, sandbox->id);
    struct sandbox *there = *place;
    if (there == NULL) {
        *place = sandbox;
        sandbox->refs++; /* the table's */
        e2b->count += is_made ? 0 : 1;
    } else if (!is_made) {
        there->refs++;
    }
    pthread_mutex_unlock(&e2b->lock);
    if (there == NULL) {
        return sandbox;
    }
    sandbox_discard(sandbox); /* another call was faster, or it cannot be what it is said to be */
    return is_made ? NULL : there;
}

void sandbox_unref(struct e2b *e2b, struct sandbox *sandbox)
{
    if (sandbox == NULL) {
        return;
    }
    pthread_mutex_lock(&e2b->lock);
    bool is_last = --sandbox->refs == 0;
    pthread_mutex_unlock(&e2b->lock);
    if (is_last) {
        sandbox_discard(sandbox);
    }
}

void sandbox_forget(struct e2b *e2b, struct sandbox *sandbox)
{
    pthread_mutex_lock(&e2b->lock);
    sandbox->is_gone = true;
    struct sandbox **place = place_of(e2b, sandbox->id);
    bool was_there = *place == sandbox;
    if (was_there) {
        *place = sandbox->next;
        sandbox->next = NULL;
        e2b->count--;
    }
    pthread_mutex_unlock(&e2b->lock);
    if (was_there) {
        sandbox_unref(e2b, sandbox); /* the table's reference */
    }
}

void sandbox_keep(struct e2b *e2b, struct sandbox *sandbox, int64_t life_s)
{
    int64_t until = clock_ms() + life_s * 1000;
    pthread_mutex_lock(&e2b->lock);
    sandbox->kept_until = until;
    pthread_mutex_unlock(&e2b->lock);
}

void sandboxes_forget_ended(struct e2b *e2b)
{
    struct sandbox *ended = NULL;
    int64_t now = clock_ms();
    pthread_mutex_lock(&e2b->lock);
    for (size_t i = 0; i < SANDBOX_BUCKETS; i++) {
        for (struct sandbox **at = &e2b->buckets[i]; *at != NULL;) {
            struct sandbox *sandbox = *at;
            if (now <= sandbox->kept_until + ENDED_AFTER_MS) {
                at = &sandbox->next;
                continue;
            }
            *at = sandbox->next;
            sandbox->is_gone = true;
            sandbox->next = ended;
            ended = sandbox;
            e2b->count--;
        }
    }
    pthread_mutex_unlock(&e2b->lock);
    while (ended != NULL) {
        struct sandbox *sandbox = ended;
        ended = sandbox->next;
        sandbox_unref(e2b, sandbox); /* the table's reference */
    }
}

void sandboxes_clear(struct e2b *e2b)
{
    for (size_t i = 0; i < SANDBOX_BUCKETS; i++) {
        while (e2b->buckets[i] != NULL) {
            sandbox_forget(e2b, e2b->buckets[i]);
        }
    }
}

int sandbox_get(struct e2b *e2b, struct sg_call *call, const char *handle, struct sandbox **ret,
                struct sg_error *err)
{
    char id[64];
    if (!api_id(handle, strlen(handle), id)) {
        return sg->fail(err, SG_E_GONE,
                        "the handle is none of E2B's, so there is no sandbox of it");
    }
    *ret = sandbox_find(e2b, id);
    if (*ret != NULL) {
        return 0;
    }
    struct sandbox *connected = NULL;
    int code = api_connect(e2b, call, id, &connected, err);
    if (code == 0) {
        *ret = sandbox_add_take(e2b, connected, false);
    }
    return code;
}

/* ---- runs and their interrupts ---- */

static void coming_add(struct e2b *e2b, struct coming_run *run)
{
    pthread_mutex_lock(&e2b->lock);
    run->next = e2b->coming;
    e2b->coming = run;
    pthread_mutex_unlock(&e2b->lock);
}

/* It has come, or (NULL) there is no sandbox for it. */
static void coming_remove(struct e2b *e2b, const struct coming_run *run, struct sandbox *sandbox)
{
    pthread_mutex_lock(&e2b->lock);
    struct coming_run **at = &e2b->coming;
    while (*at != run) {
        at = &(*at)->next;
    }
    *at = run->next;
    if (sandbox != NULL) {
        sandbox->is_running = true;
        sandbox->interrupt_wanted = run->is_interrupted;
    }
    pthread_mutex_unlock(&e2b->lock);
}

int sandbox_begin_run(struct e2b *e2b, struct sg_call *call, const char *handle,
                      struct sandbox **ret, struct sg_error *err)
{
    struct coming_run coming = {.is_interrupted = false};
    struct sandbox *sandbox = NULL;
    (void)api_id(handle, strlen(handle), coming.id); /* else sandbox_get() says so */
    coming_add(e2b, &coming);
    int code = sandbox_get(e2b, call, handle, &sandbox, err);
    coming_remove(e2b, &coming, sandbox);
    if (code == 0) {
        *ret = sandbox;
    }
    return code;
}

void sandbox_end_run(struct e2b *e2b, struct sandbox *sandbox)
{
    pthread_mutex_lock(&e2b->lock);
    sandbox->is_running = sandbox->interrupt_wanted = false;
    pthread_mutex_unlock(&e2b->lock);
}

bool sandbox_is_interrupted(struct e2b *e2b, struct sandbox *sandbox)
{
    pthread_mutex_lock(&e2b->lock);
    bool is_interrupted = sandbox->interrupt_wanted;
    pthread_mutex_unlock(&e2b->lock);
    return is_interrupted;
}

void sandbox_interrupt(struct e2b *e2b, const char *handle)
{
    char id[64];
    if (!api_id(handle, strlen(handle), id)) {
        return;
    }
    pthread_mutex_lock(&e2b->lock);
    struct sandbox *sandbox = *place_of(e2b, id);
    if (sandbox != NULL) {
        sandbox->interrupt_wanted = sandbox->is_running;
    }
    for (struct coming_run *run = e2b->coming; run != NULL; run = run->next) {
        run->is_interrupted = run->is_interrupted || strcmp(run->id, id) == 0;
    }
    pthread_mutex_unlock(&e2b->lock);
}
