/* Boxes that are ready before somebody asks. They are made one at a time, while nobody asks; they count as boxes in use,
 * and are handed out first, so that they make way by being used. */
#include "broker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUIET_MS 20    /* after an ask: what was asked for is busy starting */
#define END_MS 1000    /* for a box that is killed, at most */
#define FAILED_MS 5000 /* after a box that could not be made */

static bool has_ended(const struct box_ends *ends)
{
    struct pollfd end = {.fd = ends->fds[WIRE_FD_INIT], .events = POLLIN};
    return poll(&end, 1, 0) == 1;
}

/* Where all slots are taken, its slot is free when this returns: somebody may be about to ask for it. */
static void drop(struct broker *broker, size_t i)
{
    struct pool *pool = &broker->pool;
    struct pollfd end = {.fd = pool->boxes[i].ends.fds[WIRE_FD_INIT], .events = POLLIN};
    (void)syscall(SYS_pidfd_send_signal, end.fd, SIGKILL, NULL, 0);
    if (broker->slots_used >= broker->maker.limits.boxes_max) {
        (void)poll(&end, 1, END_MS);
        broker_reap(broker);
    }
    fds_close(pool->boxes[i].ends.fds, WIRE_FDS);
    pool->boxes[i] = pool->boxes[--pool->count];
}

static bool touch(const struct box_ends *ends, int64_t life_ms)
{
    const struct wire_order order = {.magic = WIRE_MAGIC, .kind = WIRE_TOUCH, .life_ms = life_ms};
    return packet_send(ends->fds[WIRE_FD_STATUS], &order, sizeof order, NULL, 0);
}

static bool is_current(const struct broker *broker, const struct ready_box *box)
{
    return box->template == broker->templates.current_number;
}

bool pool_take(struct broker *broker, int64_t life_ms, bool any, struct box_ends *ret)
{
    struct pool *pool = &broker->pool;
    pool_look(broker);
    for (size_t i = 0; i < pool->count;) {
        if (!any && !is_current(broker, &pool->boxes[i])) {
            i++;
            continue;
        }
        if (!has_ended(&pool->boxes[i].ends) && touch(&pool->boxes[i].ends, life_ms)) {
            *ret = pool->boxes[i].ends;
            pool->boxes[i] = pool->boxes[--pool->count];
            return true;
        }
        drop(broker, i);
    }
    return false;
}

void pool_disturb(struct broker *broker)
{
    broker->pool.quiet_at = now_ms() + QUIET_MS;
}

static bool add(struct broker *broker, struct box_template *template, uint64_t number)
{
    struct pool *pool = &broker->pool;
    struct ready_box *box = &pool->boxes[pool->count];
    const char *failed = broker_start_box(broker, template, 0, &box->ends);
    if (failed != NULL) {
        char why[WIRE_STEP_BYTES + 100];
        snprintf(why, sizeof why, "cannot %s: %s", failed, strerror(errno));
        templates_failed(broker, number, why);
        return false;
    }
    box->template = number;
    box->is_proven = false;
    pool->count++;
    return true;
}

static size_t count_of(const struct pool *pool, uint64_t number)
{
    size_t count = 0;
    for (size_t i = 0; i < pool->count; i++) {
        count += pool->boxes[i].template == number;
    }
    return count;
}

/* What a template that got ready has to show. */
static bool proof_is_wanted(const struct broker *broker)
{
    const struct templates *templates = &broker->templates;
    return templates->next_number != 0 && templates->next.state == TEMPLATE_READY &&
           count_of(&broker->pool, templates->next_number) == 0;
}

/* One that is too much, or of a template that has left; -1 if there is none. */
static int find_surplus(const struct broker *broker)
{
    const struct pool *pool = &broker->pool;
    size_t kept = 0;
    for (size_t i = 0; i < pool->count; i++) {
        bool is_ours = is_current(broker, &pool->boxes[i]);
        bool is_proof = !is_ours && pool->boxes[i].template == broker->templates.next_number;
        kept += is_ours;
        if (!is_proof && (!is_ours || kept > broker->maker.limits.pool)) {
            return (int)i;
        }
    }
    return -1;
}

int64_t pool_upkeep(struct broker *broker)
{
    struct pool *pool = &broker->pool;
    uint64_t number = 0;
    struct box_template *template = templates_pick(broker, &number);
    bool is_full = broker->slots_used >= broker->maker.limits.boxes_max;
    if (proof_is_wanted(broker)) {
        /* Nobody gets a box of it before that. */
        return !is_full && add(broker, &broker->templates.next, broker->templates.next_number)
                   ? now_ms()
                   : INT64_MAX;
    }
    int surplus = find_surplus(broker);
    bool is_missing = count_of(pool, number) < broker->maker.limits.pool && !is_full &&
                      (number != 0 || templates_are_settled(broker));
    if (!is_missing && surplus < 0) {
        return INT64_MAX;
    }
    if (now_ms() < pool->quiet_at) {
        return pool->quiet_at;
    }
    if (surplus >= 0) {
        drop(broker, (size_t)surplus);
        return now_ms();
    }
    if (!add(broker, template, number)) {
        pool->quiet_at = now_ms() + FAILED_MS;
    }
    return number != 0 && broker->templates.current_number != 0 ? now_ms() : pool->quiet_at;
}

/* Its interpreter's first word, which stays where it is for the gateway: 1: it is there, 0: not yet, -1: it will not
 * come. */
static int first_word(const struct box_ends *ends)
{
    char byte;
    ssize_t len = recv(ends->fds[WIRE_FD_CONTROL], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return len > 0 ? 1 : len < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* One box may end for whatever reason; a template is given up for what it says about it, and for its first. */
static void tell_failure(struct broker *broker, const struct ready_box *box)
{
    char why[WIRE_STEP_BYTES + 100] = "its copies end before they have begun";
    bool is_template_at_fault = box->template == broker->templates.next_number;
    struct wire_status status;
    while (recv(box->ends.fds[WIRE_FD_STATUS], &status, sizeof status, MSG_DONTWAIT) ==
           (ssize_t)sizeof status) {
        if (status.kind == WIRE_FAILED) {
            is_template_at_fault = true;
            snprintf(why, sizeof why, "in a copy: cannot %.*s: %s",
                     (int)strnlen(status.step, sizeof status.step), status.step,
                     strerror(status.value));
        }
    }
    if (is_template_at_fault) {
        templates_failed(broker, box->template, why);
    }
    broker->pool.quiet_at = now_ms() + FAILED_MS;
}

void pool_look(struct broker *broker)
{
    struct pool *pool = &broker->pool;
    for (size_t i = 0; i < pool->count;) {
        struct ready_box *box = &pool->boxes[i];
        int word = box->is_proven ? 1 : first_word(&box->ends);
        if (word == 1 && !box->is_proven) {
            box->is_proven = true;
            templates_proven(broker, box->template);
        }
        if (word < 0) {
            tell_failure(broker, box);
        }
        if (word < 0 || has_ended(&box->ends)) {
            drop(broker, i);
        } else {
            i++;
        }
    }
}

size_t pool_watched(const struct broker *broker, int ret_fds[POOL_MAX + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < broker->pool.count; i++) {
        if (!broker->pool.boxes[i].is_proven) {
            ret_fds[count++] = broker->pool.boxes[i].ends.fds[WIRE_FD_CONTROL];
        }
    }
    return count;
}
