/* Reading one HTTP/1.1 message after another, piece by piece: head, then a body by Content-Length or in chunks. For the
 * benchmark's own two ends, which trust each other and what stands between them no further than that a message which
 * they cannot read counts as an error. */
#ifndef SANDGATE_BENCH_MESSAGE_H
#define SANDGATE_BENCH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum message_state {
    MESSAGE_HEAD,
    MESSAGE_BODY,
    MESSAGE_CHUNK_LINE,
    MESSAGE_CHUNK_DATA,
    MESSAGE_CHUNK_END,
    MESSAGE_TRAILER,
    MESSAGE_DONE,
    MESSAGE_BROKEN
};

struct message {
    enum message_state state;
    int status; /* of an answer */
    bool chunked;
    bool begun;
    bool closes;   /* the connection ends with this message */
    uint64_t left; /* of the body or the chunk */
    size_t line_len;
    char line[1024];
};

/* What gets the body, in pieces. */
typedef void message_body_fn(void *arg, const char *data, size_t len);

void message_start(struct message *);

/* Takes bytes up to the end of the message; returns how many. `state` then says whether it is done or broken. */
size_t message_feed(struct message *, const char *data, size_t len, message_body_fn *, void *arg);

/* CLOCK_MONOTONIC, which all processes of a machine share. */
int64_t now_ns(void);

#endif
