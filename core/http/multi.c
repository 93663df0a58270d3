/* libcurl's multi interface on libevent: its sockets and its timer are the loop's events.
 *
 * Which of the multis carries a transfer: each address has a first one by its hash, among 16, and the transfer goes to the
 * first from there on that carries fewer than SPILL transfers; if none of the 16 does, to one of those that are made when
 * it comes to that; if none at all does, to one that keeps a
 * connection, or to the one that carries the fewest. So a few transfers to one address share one
 * multi and find its kept connections (taking turns would find a kept one only once all have their own), addresses do not
 * crowd in one multi, and many transfers to one address spread. That bounds what libcurl looks through, which is all
 * connections of a multi, for each transfer that begins and for each connection that is closed. */
#include "http/admission.h"
#include "http/fetch_internal.h"

#include <event2/event.h>
#include <stdlib.h>

#define SPILL 32
#define MULTI_DESCRIPTORS 2
#define UNWATCHED_MS 20 /* between two looks at a socket for which the kernel has no watch left */
#define CONNECTIONS_KEPT 1024L /* by a multi; descriptors are bounded by admission */

struct watch {
    struct fetch_multi *multi;
    int fd;
    short added; /* what it is watched for; 0: nothing */
    /* By libcurl. Else its connection is kept, and the watch with it, for the next transfer. */
    bool is_wanted;
    struct event event;
};

/* ---- what libcurl did ---- */

static void transfer_remove(struct fetch *fetch, curl_socket_t remaining)
{
    struct fetch_multi *multi = fetch->multi;
    CHECK(curl_multi_remove_handle(multi->multi, fetch->easy) == CURLM_OK);
    CHECK(multi->running > 0);
    multi->running--;
    sockets_settle(fetch, remaining);
    fetch->multi = NULL;
}

/* The connection that is kept, if this transfer has opened it. libcurl looks for it among all of the multi, so it is asked
 * only where that is not clear. */
static curl_socket_t remaining_socket(const struct fetch *fetch, CURLcode result)
{
    curl_socket_t remaining = CURL_SOCKET_BAD;
    if (sockets_open_count(fetch) == 0) {
        return remaining;
    }
    if (result == CURLE_OK && fetch->opened_count == 1) {
        return fetch->opened[0];
    }
    (void)curl_easy_getinfo(fetch->easy, CURLINFO_ACTIVESOCKET, &remaining);
    return remaining;
}

/* Nothing of it was sent. False if it cannot be begun. */
static bool begin_anew(struct fetch_multi *multi, struct fetch *fetch)
{
    struct sg_error err;
    fetch->is_spoiled = fetch->is_connected = false;
    fetch->multi = multi;
    CHECK(curl_easy_setopt(fetch->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK);
    return multi_add(multi, fetch, &err) == 0;
}

static void take_messages(struct fetch_multi *multi)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi->multi, &left)) != NULL) {
        CHECK(message->msg == CURLMSG_DONE);
        CURL *easy = message->easy_handle; /* the message goes with the handle */
        CURLcode result = message->data.result;
        char *private = NULL;
        CHECK(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private) == CURLE_OK);
        struct fetch *fetch = (void *)private;
        CHECK_MAGIC(fetch, FETCH_MAGIC);
        transfer_remove(fetch, remaining_socket(fetch, result));
        if (!fetch->is_spoiled || !begin_anew(multi, fetch)) {
            fetch_finished(fetch, result);
        }
    }
}

static void act(struct fetch_multi *multi, curl_socket_t fd, int ready)
{
    int running;
    CHECK_RESULT(curl_multi_socket_action(multi->multi, fd, ready, &running), CURLM_OK,
                 CURLM_OUT_OF_MEMORY);
    take_messages(multi);
}

/* ---- events ---- */

static void watch_stop(struct watch *watch)
{
    (void)event_del(&watch->event); /* has no effect on one that is not added */
    watch->added = 0;
}

static void socket_ready(int fd, short what, void *arg)
{
    struct watch *watch = arg;
    (void)fd; /* none, nor any readiness, where it is looked at by time: libcurl then finds out */
    if (!watch->is_wanted) {
        watch_stop(
            watch); /* the other side has ended what is kept: libcurl sees it at the next use */
        return;
    }
    int ready = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
                ((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    act(watch->multi, watch->fd, ready); /* `watch` may be gone then */
}

static void timer_rang(int fd, short what, void *arg)
{
    (void)fd, (void)what;
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

void socket_unwatch(struct fetch_socket *socket)
{
    if (socket->watch != NULL) {
        watch_stop(socket->watch);
        free(socket->watch);
        socket->watch = NULL;
    }
}

/* A timer needs memory alone. Were libcurl told that there is none, its multi would serve nobody any more. */
static void timer_set(struct event *timer, const struct timeval *after)
{
    if (event_add(timer, after) != 0) {
        check_out_of_memory();
    }
}

/* Watches of epoll can be used up by others of the same user. To tell libcurl would end all transfers of this multi for
 * good, so the socket is looked at again and again until libcurl wants something else of it. */
static void watch_by_time(struct watch *watch)
{
    const struct timeval often = {.tv_usec = UNWATCHED_MS * 1000};
    CHECK(event_assign(&watch->event, loop_base(watch->multi->home->loop), -1, EV_PERSIST,
                       socket_ready, watch) == 0);
    timer_set(&watch->event, &often);
}

static void watch_set(struct watch *watch, short wanted)
{
    if (watch->added == wanted) {
        return;
    }
    watch_stop(watch);
    CHECK(event_assign(&watch->event, loop_base(watch->multi->home->loop), watch->fd, wanted,
                       socket_ready, watch) == 0);
    if (event_add(&watch->event, NULL) == 0) {
        watch->added = wanted;
    } else {
        watch_by_time(watch);
    }
}

static struct watch *watch_of(struct fetch_multi *multi, struct fetch_socket *socket, int fd)
{
    if (socket->watch == NULL) {
        socket->watch = check_alloc(calloc(1, sizeof *socket->watch));
        socket->watch->fd = fd;
        CHECK(event_assign(&socket->watch->event, loop_base(multi->home->loop), fd, 0, socket_ready,
                           socket->watch) == 0);
    }
    socket->watch->multi = multi;
    return socket->watch;
}

/* Between two transfers libcurl wants nothing of a connection that it keeps, and then most often the same again: its watch
 * stays until the socket is closed, which spares two calls of the system for each transfer. Not in the transfer that
 * opened it: a socket that was never connected is closed silently, and its number may be another's at once. */
static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    struct fetch_multi *multi = arg;
    struct fetch_socket *socket = socket_at(multi->home, fd);
    (void)easy, (void)assigned;
    if (what == CURL_POLL_REMOVE) {
        bool is_kept = socket->multi != NULL && socket->opener == NULL;
        if (is_kept && socket->watch != NULL && socket->watch->added != 0) {
            socket->watch->is_wanted = false;
        } else {
            socket_unwatch(socket);
        }
        return 0;
    }
    struct watch *watch = watch_of(multi, socket, fd);
    watch->is_wanted = true;
    watch_set(watch, (short)(EV_PERSIST | ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) |
                             ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0)));
    return 0;
}

static int timer_changed(CURLM *handle, long ms, void *arg)
{
    struct fetch_multi *multi = arg;
    struct timeval after = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)handle;
    if (ms < 0) {
        return evtimer_del(&multi->timer);
    }
    timer_set(&multi->timer, &after);
    return 0;
}

/* ---- multis ---- */

int multi_init(struct fetch_multi *multi, struct fetch_loop *home, struct sg_error *err)
{
    multi->home = home;
    multi->multi = curl_multi_init();
    if (multi->multi == NULL) {
        return error_set(err, SG_E_LIMIT, "cannot make a libcurl multi handle");
    }
    CHECK(evtimer_assign(&multi->timer, loop_base(home->loop), timer_rang, multi) == 0);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_SOCKETFUNCTION, socket_changed) == CURLM_OK);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_SOCKETDATA, multi) == CURLM_OK);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_TIMERFUNCTION, timer_changed) == CURLM_OK);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_TIMERDATA, multi) == CURLM_OK);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) == CURLM_OK);
    CHECK(curl_multi_setopt(multi->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT) == CURLM_OK);
    return 0;
}

/* Those beyond the first are counted one by one. */
static bool multi_is_extra(const struct fetch_multi *multi)
{
    return multi - multi->home->multis >= FETCH_MULTIS_FIRST;
}

void multi_clear(struct fetch_multi *multi)
{
    CHECK(multi->running == 0);
    if (multi->multi != NULL) {
        CHECK(curl_multi_cleanup(multi->multi) == CURLM_OK);
        (void)evtimer_del(&multi->timer); /* has no effect on one that is not added */
        multi->multi = NULL;
        admission_give(multi_is_extra(multi) ? MULTI_DESCRIPTORS : 0);
    }
    CHECK(multi->sockets == 0);
}

static bool multi_make_extra(struct fetch_multi *multi, struct fetch_loop *home)
{
    struct sg_error ignored; /* the others carry it */
    if (admission_is_near() || !admission_take(MULTI_DESCRIPTORS)) {
        return false; /* what is left is for connections */
    }
    if (multi_init(multi, home, &ignored) != 0) {
        admission_give(MULTI_DESCRIPTORS);
        return false;
    }
    return true;
}

static size_t address_hash(const struct fetch_address *address)
{
    return str_hash(str_of(address->host)) ^ address->port;
}

/* Where all have much to do: one with a connection to spare, unless it carries many more than the one with the fewest. The
 * connection may be another address's. */
static struct fetch_multi *one_that_keeps(struct fetch_loop *home, struct fetch_multi *fewest)
{
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        struct fetch_multi *multi = &home->multis[i];
        if (multi->sockets > multi->running && multi->running < fewest->running + SPILL) {
            return multi;
        }
    }
    return fewest;
}

struct fetch_multi *multi_choose(struct fetch_loop *home, const struct fetch_address *address,
                                 uint64_t way_id)
{
    size_t first = address_hash(address) ^ way_id;
    struct fetch_multi *fewest = &home->multis[first % FETCH_MULTIS_FIRST];
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        bool is_first = i < FETCH_MULTIS_FIRST;
        struct fetch_multi *multi = &home->multis[is_first ? (first + i) % FETCH_MULTIS_FIRST : i];
        if (multi->multi == NULL && !multi_make_extra(multi, home)) {
            break;
        }
        if (multi->running < SPILL) {
            return multi;
        }
        if (multi->running < fewest->running) {
            fewest = multi;
        }
    }
    return one_that_keeps(home, fewest);
}

/* libcurl has no call for closing what is kept; a multi without a transfer can be made anew. */
void multis_close_idle(struct fetch_loop *home)
{
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        struct fetch_multi *multi = &home->multis[i];
        struct sg_error err = {0};
        bool is_first = i < FETCH_MULTIS_FIRST;
        if (multi->running == 0 && (multi->sockets > 0 || !is_first)) {
            multi_clear(multi);
            CHECK(!is_first || multi_init(multi, home, &err) == 0);
        }
    }
}

int multi_add(struct fetch_multi *multi, struct fetch *fetch, struct sg_error *err)
{
    CHECK(fetch->multi == multi);
    CURLMcode code = curl_multi_add_handle(multi->multi, fetch->easy);
    if (code != CURLM_OK) {
        fetch->multi = NULL;
        return error_set(err, SG_E_INTERNAL, "cannot start a transfer: %s",
                         curl_multi_strerror(code));
    }
    multi->running++;
    act(multi, CURL_SOCKET_TIMEOUT, 0); /* else it would start with the loop's next turn */
    return 0;
}

void multi_remove(struct fetch *fetch)
{
    if (fetch->multi != NULL) {
        transfer_remove(fetch, CURL_SOCKET_BAD); /* libcurl closes what was under way */
    }
}
