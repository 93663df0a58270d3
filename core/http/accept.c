/* A loop's listeners: take connections, and answer 503 at once to those for which there is no room. */
#include "http/admission.h"
#include "http/server_internal.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ACCEPT_BATCH 64 /* connections taken in one go */

/* What was told to give way on another loop does so within a few of these; then the one that waits is told 503. */
enum { ROOM_TRIES = 20 };
static const struct timeval room_after = {.tv_usec = 2 * 1000};

static const struct timeval retry_after = {.tv_usec = 100 * 1000};
static const struct timeval rejected_stay = {.tv_sec = 1};

const char *server_loop_date(struct server_loop *home)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now = clock_unix_s();
    if (now != home->date_s) {
        time_t seconds = (time_t)now;
        struct tm tm;
        CHECK(gmtime_r(&seconds, &tm) != NULL);
        (void)snprintf(home->date, sizeof home->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                       days + tm.tm_wday * 3, (unsigned)tm.tm_mday % 100, months + tm.tm_mon * 3,
                       (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
                       (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
        home->date_s = now;
    }
    return home->date;
}

/* ---- saying no ---- */

static void rejected_close(struct rejected *rejected)
{
    TAILQ_REMOVE(&rejected->home->rejected, rejected, link);
    rejected->home->rejected_count--;
    (void)event_del(&rejected->event); /* has no effect on one that is not added */
    (void)close(rejected->fd);         /* the answer went out or did not */
    free(rejected);
}

void rejected_close_all(struct server_loop *home)
{
    while (!TAILQ_EMPTY(&home->rejected)) {
        rejected_close(TAILQ_FIRST(&home->rejected));
    }
}

/* Drops what the client still sends, so that closing does not reset the connection before it has read the answer. */
static bool drop_input(int fd)
{
    ssize_t count = connection_drop_input(fd);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static void rejected_ready(int fd, short what, void *arg)
{
    if ((what & EV_TIMEOUT) != 0 || !drop_input(fd)) {
        rejected_close(arg);
    }
}

/* It stays for a second at most, and is never woken by more than its own input within it. */
static void rejected_keep(struct server_loop *home, int fd)
{
    struct rejected *rejected = check_alloc(calloc(1, sizeof *rejected));
    rejected->fd = fd;
    rejected->home = home;
    CHECK(event_assign(&rejected->event, loop_base(home->loop), fd, EV_READ | EV_PERSIST,
                       rejected_ready, rejected) == 0);
    TAILQ_INSERT_TAIL(&home->rejected, rejected, link);
    home->rejected_count++;
    if (event_add(&rejected->event, &rejected_stay) != 0) {
        rejected_close(rejected);
    }
}

/* Before a handshake there is no way to say it: the client sees its connection closed. */
static void reject(const struct loop_listener *here, int fd)
{
    struct server_loop *home = here->home;
    if (here->listener->at.has_tls) {
        (void)close(fd); /* nothing was written that could be lost */
        return;
    }
    static const char body[] =
        "{\"error\":{\"message\":\"the server has no room for another connection; try again "
        "later\",\"type\":\"server_error\",\"param\":null,\"code\":\"overloaded\"}}";
    char answer[512];
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 503 Service Unavailable\r\ndate: %s\r\nretry-after: 1\r\n"
                       "content-type: application/json\r\ncontent-length: %zu\r\n"
                       "connection: close\r\n\r\n%s",
                       server_loop_date(home), sizeof body - 1, body);
    CHECK(len > 0 && (size_t)len < sizeof answer);
    /* A fresh socket has room for it; a client that is gone already needs none. */
    (void)send(fd, answer, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)drop_input(fd);
    if (home->rejected_count < HTTP_SERVER_REJECTED_MAX) {
        rejected_keep(home, fd);
    } else {
        (void)close(fd); /* the answer is on its way */
    }
}

/* ---- taking connections ---- */

static void log_no_descriptor(int error)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "accept_failed");
    log_text(&line, "reason", strerror(error));
    log_end(&line);
}

/* Leaves the listener alone for a moment: what it cannot take would wake it without end. */
static void listener_pause(struct loop_listener *here, const struct timeval *pause)
{
    (void)event_del(&here->accept_event); /* it is added again below */
    if (evtimer_add(&here->retry_event, pause) != 0) {
        check_out_of_memory();
    }
}

static void listener_resume(int fd, short what, void *arg)
{
    struct loop_listener *here = arg;
    (void)fd, (void)what;
    if (here->home->is_accepting && event_add(&here->accept_event, NULL) != 0) {
        listener_pause(here, &retry_after);
    }
}

/* The process has no descriptor left, against all counting: the spare one serves to tell one client so. */
static void shed_one(struct loop_listener *here)
{
    struct server_loop *home = here->home;
    if (home->spare_fd >= 0) {
        (void)close(home->spare_fd); /* nothing was written that could be lost */
        int fd = accept4(here->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 && !here->listener->at.has_tls) {
            static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
                                         "content-length: 0\r\nconnection: close\r\n\r\n";
            /* As in reject(). */
            (void)send(fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    home->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_full(const struct server_loop *home)
{
    return http_server_connections(home->server) >= admission_connections_max() ||
           admission_used() >= admission_limit();
}

/* Without one that waits nobody has to go. */
static bool has_waiting(const struct loop_listener *here)
{
    struct pollfd listener = {.fd = here->fd, .events = POLLIN};
    return poll(&listener, 1, 0) != 0; /* what fails is told by accept() */
}

/* True if the one that waits shall be taken later: somebody has been told to give way to it. Who does so on this loop has
 * gone by the loop's next turn; where all of this loop's are busy those of the others are asked. */
static bool makes_room(struct loop_listener *here)
{
    struct server_loop *home = here->home;
    struct http_server *server = home->server;
    if (connection_give_way(home, PLACE_HEAD)) {
        return true;
    }
    if (home->room_tries >= ROOM_TRIES ||
        http_server_connections(server) <= http_server_busy(server)) {
        return false;
    }
    home->room_tries++;
    server_relieve(server, 1);
    listener_pause(here, &room_after);
    return true;
}

static void take(const struct loop_listener *here, int fd, const struct sockaddr_storage *address,
                 socklen_t len)
{
    struct server_loop *home = here->home;
    bool has_place = http_server_connections(home->server) < admission_connections_max();
    admission_relieve(1);
    if (server_connections_are_near(home->server)) {
        (void)connection_give_way_early(home); /* there may be none */
    }
    home->room_tries = 0;
    if (!has_place || !admission_take(1)) {
        reject(here, fd);
    } else if (!connection_start(here, fd, address, len)) {
        admission_give(1);
        reject(here, fd);
    }
}

/* False when there is nothing more to take. */
static bool accept_one(struct loop_listener *here)
{
    struct server_loop *home = here->home;
    if (home->is_accepting && is_full(home) && (!has_waiting(here) || makes_room(here))) {
        return false;
    }
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    int fd = accept4(here->fd, (void *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        take(here, fd, &address, len);
        return true;
    }
    if (errno == EAGAIN) {
        return false;
    }
    if (errno == EMFILE || errno == ENFILE) {
        log_no_descriptor(errno);
        shed_one(here);
        listener_pause(here, &retry_after);
        return false;
    }
    if (errno == ENOMEM || errno == ENOBUFS) {
        log_no_descriptor(errno);
        listener_pause(here, &retry_after);
        return false;
    }
    return true; /* that one connection has failed (accept(2)): the next */
}

static void listener_ready(int fd, short what, void *arg)
{
    (void)fd, (void)what;
    for (int i = 0; i < ACCEPT_BATCH && accept_one(arg); i++) {
    }
}

static void listener_start(struct loop_listener *here)
{
    struct event_base *base = loop_base(here->home->loop);
    CHECK(event_assign(&here->accept_event, base, here->fd, EV_READ | EV_PERSIST, listener_ready,
                       here) == 0);
    CHECK(evtimer_assign(&here->retry_event, base, listener_resume, here) == 0);
    if (event_add(&here->accept_event, NULL) != 0) {
        log_no_descriptor(errno);
        listener_pause(here, &retry_after);
    }
}

void listeners_start(struct server_loop *home)
{
    for (size_t i = 0; i < home->server->listeners_count; i++) {
        listener_start(&home->listeners[i]);
    }
    home->is_accepting = true;
}

static void listener_stop(struct loop_listener *here)
{
    while (!here->listener->keeps_queue &&
           accept_one(here)) { /* clients whose connection the kernel has accepted already */
    }
    (void)event_del(&here->accept_event); /* has no effect on one that is not added */
    (void)evtimer_del(&here->retry_event);
    (void)close(here->fd); /* nothing was written that could be lost */
    here->fd = -1;
}

void listeners_stop(struct server_loop *home)
{
    bool was_accepting = home->is_accepting;
    home->is_accepting = false;
    for (size_t i = 0; was_accepting && i < home->server->listeners_count; i++) {
        listener_stop(&home->listeners[i]);
    }
}
