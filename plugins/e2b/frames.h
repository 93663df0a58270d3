/* What envd answers in the Connect protocol with JSON: frames of a stream, the events of a process in them, errors, lists.
 * Pure functions over (pointer, length); all of it is hostile input.
 *
 *   FRAME   FLAGS (1) LENGTH (4, big endian) JSON
 *   FLAGS   0 a message; 2 the last one: {} or {"error": …}; all else (1: compressed) is none that was asked for */
#ifndef E2B_FRAMES_H
#define E2B_FRAMES_H

#include "json_text.h"
#include "text.h"

#define FRAME_HEAD_BYTES 5
#define FRAME_BYTES_MAX ((size_t)4 << 20) /* envd's own have at most some 44 KiB */

/* ---- frames ---- */

struct frame {
    bool is_last;
    const char *json; /* until the next bytes are taken */
    size_t json_len;
};

struct frames {          /* all zero to begin with */
    struct text held;    /* the frame that is not whole yet, with its head */
    const char *problem; /* set once what came is no stream of frames; nothing is taken then */
    bool has_ended;      /* the last frame came */
};

/* Takes bytes from *data and moves it on; true with a frame that is whole. False: all is taken, or `problem` is set. */
bool frames_next(struct frames *, const char **data, size_t *len, struct frame *ret);
/* Nothing of a frame is held. */
bool frames_is_between(const struct frames *);
void frames_clear(struct frames *);

/* ---- what a frame says ---- */

enum connect_code { /* those that are told apart; all others are OTHER */
                    CONNECT_NONE,
                    CONNECT_OTHER,
                    CONNECT_CANCELED,
                    CONNECT_INVALID_ARGUMENT,
                    CONNECT_DEADLINE_EXCEEDED,
                    CONNECT_NOT_FOUND,
                    CONNECT_ALREADY_EXISTS,
                    CONNECT_PERMISSION_DENIED,
                    CONNECT_RESOURCE_EXHAUSTED,
                    CONNECT_FAILED_PRECONDITION,
                    CONNECT_INTERNAL,
                    CONNECT_UNAVAILABLE,
                    CONNECT_UNAUTHENTICATED,
                    CONNECT_CODES
};

struct connect_error {
    enum connect_code code;
    char message[256]; /* envd's own, ended by a NUL, cut; for looking at, not for handing on */
};

/* {"code": "not_found", "message": …}; a numeric code is of HTTP, and is read as the one that stands for it. False if the
 * text is neither. */
bool connect_error_read(const char *json, size_t len, struct connect_error *ret);
/* Does the message hold these words, in any case? */
bool connect_error_says(const struct connect_error *, const char *words);

enum process_event_kind {
    PROCESS_OTHER, /* a keepalive, or what is not known */
    PROCESS_STARTED,
    PROCESS_STDOUT,
    PROCESS_STDERR,
    PROCESS_ENDED,
    PROCESS_FAILED /* the last frame with an error */
};

struct process_event {
    enum process_event_kind kind;
    int64_t pid;               /* STARTED; 0: not told */
    struct json_value content; /* STDOUT, STDERR: a JSON string of base64 */
    int exit_code;             /* ENDED: 0 to 255, 128 and the number where a signal ended it */
    bool is_killed;            /* ENDED: by SIGKILL, or by a signal that is not told */
    struct connect_error error;
};

/* False if it is not a message of this service. */
bool process_event_read(const struct frame *, struct process_event *ret);

/* ---- what it is made of ---- */

/* Appends what a JSON string of base64 (RFC 4648, padded, nothing else in it) stands for; false if it is none. */
bool base64_put(struct text *, struct json_value string);

/* Joins the characters of a stream that comes cut: what is not UTF-8 becomes U+FFFD. */
struct joiner { /* all zero to begin with */
    char held[4];
    size_t held_len;
};
void joiner_put(struct joiner *, const char *data, size_t len, struct text *out);
void joiner_end(struct joiner *, struct text *out); /* a character that never got whole */

/* A whole number of 0 to INT64_MAX, as a number or a string of digits, as protobuf's JSON writes int64. */
bool json_count(struct json_value, int64_t *ret);

#endif
