/* The table of containers. A handle is "mock:SERIAL:LABEL"; the serial number finds the container. */
#include "containers.h"

#include "container_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct containers {
    pthread_mutex_t lock; /* for all below, and for what the containers hold but their variables */
    struct journal *journal;
    const char *folder; /* where they outlive the process; NULL: they do not */
    struct container *buckets[BUCKETS];
    uint64_t last_serial;
    size_t live;
    int64_t earliest_ms; /* no life ends before: nothing to look for until then */
};

struct containers *containers_new(struct journal *journal, const char *folder)
{
    struct containers *c = calloc(1, sizeof *c);
    if (c != NULL) {
        pthread_mutex_init(&c->lock, NULL);
        c->journal = journal;
        c->folder = folder;
        c->earliest_ms = INT64_MAX;
    }
    return c;
}

void containers_lock(struct containers *c)
{
    pthread_mutex_lock(&c->lock);
}

void containers_unlock(struct containers *c)
{
    pthread_mutex_unlock(&c->lock);
}

static void container_free(struct container *one)
{
    if (one == NULL) {
        return;
    }
    container_drop_files(one);
    python_free(one->python);
    free(one->label);
    free(one);
}

static struct container **bucket_of(struct containers *c, uint64_t serial)
{
    return &c->buckets[serial % BUCKETS];
}

/* With the lock: it is no more, here and on disk. */
static void take_out(struct containers *c, struct container **at);

static void end_one(struct containers *c, struct container **at)
{
    if (c->folder != NULL) {
        stored_remove(c->folder, (*at)->label);
    }
    take_out(c, at);
}

/* With the lock. The container itself goes with its last user. */
static void take_out(struct containers *c, struct container **at)
{
    struct container *one = *at;
    *at = one->next;
    c->live--;
    one->removed = true;
    if (one->users == 0) {
        container_free(one);
    }
}

/* With the lock. */
static void set_end(struct containers *c, struct container *one, int64_t ends_ms)
{
    one->ends_ms = ends_ms;
    if (ends_ms < c->earliest_ms) {
        c->earliest_ms = ends_ms;
    }
}

/* With the lock: those whose life is over. The journal is written under it, so that its numbers are in order. */
static void expire(struct containers *c, struct sg_call *call)
{
    int64_t now = clock_ms();
    if (now < c->earliest_ms) {
        return;
    }
    c->earliest_ms = INT64_MAX;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct container **at = &c->buckets[i]; *at != NULL;) {
            if ((*at)->users > 0 || (*at)->ends_ms > now) {
                set_end(c, *at, (*at)->ends_ms);
                at = &(*at)->next;
                continue;
            }
            journal_printf(c->journal, call, "expire %s live=%zu", (*at)->label, c->live - 1);
            end_one(c, at);
        }
    }
}

void containers_free(struct containers *c, struct sg_call *call)
{
    if (c == NULL) {
        return;
    }
    journal_printf(c->journal, call, "close live=%zu", c->live);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (c->buckets[i] != NULL) {
            take_out(c, &c->buckets[i]);
        }
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Labels go into lines of the journal and into handles: what would break either is replaced. */
static char *copy_label(const char *label)
{
    char *copy = strndup(label == NULL || label[0] == '\0' ? "unnamed" : label, 400);
    for (char *p = copy; p != NULL && *p != '\0'; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7F) {
            *p = '_';
        }
    }
    return copy;
}

static int64_t end_of_life(int64_t life_ms)
{
    int64_t ends_ms;
    bool endless = life_ms <= 0 || __builtin_add_overflow(clock_ms(), life_ms, &ends_ms);
    return endless ? INT64_MAX : ends_ms;
}

static struct container *container_new(const char *label)
{
    struct container *one = calloc(1, sizeof *one);
    if (one != NULL) {
        one->label = copy_label(label);
        one->python = python_new();
    }
    if (one == NULL || one->label == NULL || one->python == NULL) {
        container_free(one);
        return NULL;
    }
    return one;
}

/* With the lock. */
static void put_in(struct containers *c, struct container *one, uint64_t serial)
{
    one->serial = serial;
    one->next = *bucket_of(c, serial);
    *bucket_of(c, serial) = one;
    c->live++;
}

/* With the lock, and also where nobody uses it any more: what another process shall find. */
static void save(struct containers *c, struct sg_call *call, const struct container *one)
{
    if (c->folder != NULL && !stored_save(c->folder, one)) {
        sg->log(call, SG_WARN, "state: a container could not be written to '%s'", c->folder);
    }
}

int container_add(struct containers *c, struct sg_call *call, const char *label, int64_t life_ms,
                  char ret_handle[HANDLE_BYTES], struct sg_error *err)
{
    struct container *one = container_new(label);
    if (one == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory for a container");
    }
    containers_lock(c);
    expire(c, call);
    set_end(c, one, end_of_life(life_ms));
    put_in(c, one, ++c->last_serial);
    snprintf(ret_handle, HANDLE_BYTES, "mock:%" PRIu64 ":%s", one->serial, one->label);
    save(c, call, one);
    journal_printf(c->journal, call, "create %s live=%zu", one->label, c->live);
    containers_unlock(c);
    return 0;
}

static uint64_t serial_of(const char *handle)
{
    return strncmp(handle, "mock:", 5) == 0 ? strtoull(handle + 5, NULL, 10) : 0;
}

const char *container_label(const char *handle)
{
    const char *colon = strncmp(handle, "mock:", 5) == 0 ? strchr(handle + 5, ':') : NULL;
    return colon == NULL ? "unknown" : colon + 1;
}

/* With the lock: where the container hangs, or NULL. */
static struct container **find_known(struct containers *c, const char *handle)
{
    uint64_t serial = serial_of(handle);
    const char *label = container_label(handle);
    struct container **at = bucket_of(c, serial);
    while (*at != NULL && ((*at)->serial != serial || strcmp((*at)->label, label) != 0)) {
        at = &(*at)->next;
    }
    return *at == NULL ? NULL : at;
}

/* With the lock: that of an earlier process, from its file. */
static void load(struct containers *c, struct sg_call *call, const char *handle)
{
    struct container *one = container_new(container_label(handle));
    if (one == NULL || !stored_load(c->folder, one)) {
        container_free(one);
        return;
    }
    put_in(c, one, serial_of(handle));
    set_end(c, one, one->ends_ms);
    journal_printf(c->journal, call, "load %s live=%zu", one->label, c->live);
    expire(c, call); /* perhaps this one */
}

/* With the lock: where the container hangs, or NULL. */
static struct container **find(struct containers *c, struct sg_call *call, const char *handle)
{
    struct container **at = find_known(c, handle);
    if (at == NULL && c->folder != NULL) {
        load(c, call, handle);
        at = find_known(c, handle);
    }
    return at;
}

bool container_remove(struct containers *c, struct sg_call *call, const char *handle,
                      const char *verb)
{
    containers_lock(c);
    struct container **at = find(c, call, handle);
    if (at != NULL) {
        journal_printf(c->journal, call, "%s %s live=%zu", verb, (*at)->label, c->live - 1);
        end_one(c, at);
    }
    containers_unlock(c);
    return at != NULL;
}

size_t containers_live(struct containers *c)
{
    containers_lock(c);
    size_t live = c->live;
    containers_unlock(c);
    return live;
}

struct container *container_use(struct containers *c, struct sg_call *call, const char *handle)
{
    containers_lock(c);
    expire(c, call);
    struct container **at = find(c, call, handle);
    struct container *one = at == NULL ? NULL : *at;
    if (one != NULL) {
        one->users++;
    }
    containers_unlock(c);
    return one;
}

void container_release(struct containers *c, struct sg_call *call, struct container *one)
{
    containers_lock(c);
    bool last = --one->users == 0 && one->removed;
    if (!one->removed && !one->running) {
        save(c, call, one);
    }
    containers_unlock(c);
    if (last) {
        container_free(one);
    }
}

bool container_begin_run(struct containers *c, struct container *one)
{
    containers_lock(c);
    bool is_free = !one->running;
    if (is_free) {
        one->running = true;
        one->interrupted = false;
    }
    containers_unlock(c);
    return is_free;
}

void container_end_run(struct containers *c, struct container *one)
{
    containers_lock(c);
    one->running = false;
    containers_unlock(c);
}

enum container_stop container_stop(struct containers *c, struct container *one)
{
    containers_lock(c);
    enum container_stop stop = one->removed       ? STOP_REMOVED
                               : one->interrupted ? STOP_INTERRUPTED
                                                  : STOP_NONE;
    containers_unlock(c);
    return stop;
}

void container_interrupt(struct containers *c, struct container *one)
{
    containers_lock(c);
    one->interrupted = one->running;
    containers_unlock(c);
}

void container_touch(struct containers *c, struct container *one, int64_t life_ms)
{
    containers_lock(c);
    set_end(c, one, end_of_life(life_ms));
    containers_unlock(c);
}

struct python *container_python(struct container *one)
{
    return one->python;
}
