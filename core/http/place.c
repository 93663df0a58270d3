/* Which connections give way where places are scarce: those that nobody serves, in the order of `enum place`, and of each
 * kind the one that has been so for the longest time. A connection whose request is being handled never does. */
#include "http/server_internal.h"

bool connection_has_bytes(const struct connection *connection)
{
    char first;
    if (connection->tls != NULL && connection_tls_has_bytes(connection)) {
        return true;
    }
    return recv(connection->fd, &first, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

void connection_set_place(struct connection *connection, enum place place)
{
    struct server_loop *home = connection->home;
    if (place == connection->place) {
        return; /* it keeps its turn */
    }
    if (connection->place != PLACE_KEPT) {
        TAILQ_REMOVE(&home->places[connection->place], connection, place_link);
    }
    connection->place = place;
    connection->place_since = clock_ms();
    if (place != PLACE_KEPT) {
        TAILQ_INSERT_TAIL(&home->places[place], connection, place_link);
    }
}

/* What has come to it its fiber has not been told yet. That may be its request; to close it now would reset it. Where
 * the answer is over what still comes is of no use. */
static bool may_go(const struct connection *connection)
{
    CHECK_MAGIC(connection, CONNECTION_MAGIC);
    CHECK(connection->exchange == NULL);
    return connection->place == PLACE_OVER || !connection_has_bytes(connection);
}

static void let_go(struct connection *connection)
{
    connection_set_place(connection, PLACE_KEPT); /* nobody else shall wait for this one */
    fiber_cancel(connection->fiber);
}

/* The first of a kind that may go and has been of it since `until` or before. */
static bool one_gives_way(struct server_loop *home, enum place place, int64_t until)
{
    struct connection *connection;
    TAILQ_FOREACH(connection, &home->places[place], place_link)
    {
        if (connection->place_since > until) {
            return false; /* as are all behind it */
        }
        if (may_go(connection)) {
            let_go(connection);
            return true;
        }
    }
    return false;
}

bool connection_give_way(struct server_loop *home, enum place last)
{
    for (enum place place = PLACE_IDLE; place <= last; place++) {
        if (one_gives_way(home, place, INT64_MAX)) {
            return true;
        }
    }
    return false;
}

bool connection_give_way_shaking(struct server_loop *home)
{
    return one_gives_way(home, PLACE_HANDSHAKE, INT64_MAX);
}

bool connection_give_way_early(struct server_loop *home)
{
    int64_t settled_ms = home->server->tuning.settled_ms;
    return one_gives_way(home, PLACE_IDLE, clock_ms() - settled_ms) ||
           one_gives_way(home, PLACE_OVER, INT64_MAX);
}

static void close_silent(struct server_loop *home, enum place place)
{
    struct connection *next = TAILQ_FIRST(&home->places[place]);
    while (next != NULL) {
        struct connection *connection = next;
        next = TAILQ_NEXT(connection, place_link);
        if (connection->in.len == 0 && may_go(connection)) {
            let_go(connection);
        }
    }
}

void connections_close_silent(struct server_loop *home)
{
    close_silent(home, PLACE_IDLE);
    close_silent(home, PLACE_HANDSHAKE);
    close_silent(home, PLACE_HEAD);
}
