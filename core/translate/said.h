/* What a model's server says, in no API's form, piece by piece: between the one that hears an upstream's answer and the one
 * that says it as another API has it. */
#ifndef SANDGATE_TRANSLATE_SAID_H
#define SANDGATE_TRANSLATE_SAID_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

enum said_kind {
    SAID_BEGIN, /* once, first: `model`, where it is known */
    SAID_TEXT,  /* text, as are the next two; `logprobs`: its elements, raw, or empty */
    SAID_REFUSAL,
    SAID_REASONING,
    SAID_CITATION,  /* of a page, behind the text that it is at: `url`, title, `start`, `end` */
    SAID_SEAL,      /* what proves the reasoning before it */
    SAID_CALL,      /* a call begins: `call`, id, name */
    SAID_ARGUMENTS, /* … goes on: `call`, text */
    SAID_END,       /* once, last: `stop`, usage */
    SAID_KINDS
};

enum said_stop { STOP_END, STOP_TOKENS, STOP_SEQUENCE, STOP_CALLS, STOP_FILTER, STOP_CONTEXT };

struct said_usage { /* tokens; -1: not said */
    int64_t input, output, cached, cache_written, reasoning;
};

struct said {
    enum said_kind kind;
    struct str text; /* decoded */
    struct str logprobs;
    size_t call; /* its number within the answer, from 0 on */
    struct str id, name, model;
    struct str url, title;
    size_t start, end; /* characters of the answer's whole text */
    bool is_custom;
    enum said_stop stop;
    struct str stop_sequence;
    struct said_usage usage;
};

/* Takes what is said, in order; a text is borrowed until it returns. */
struct sayer {
    int (*say)(void *context, const struct said *, struct sg_error *err);
    void *context;
};

/* ---- those that hear ---- */

struct hearer_ops {
    /* `id` is text for ids of calls that have none. */
    void *(*open)(struct arena *, const char *id, const struct sayer *);
    /* An event of a stream (its data; is it called `error`?), or a whole answer. */
    int (*event)(void *, struct str data, bool is_error, struct sg_error *err);
    int (*whole)(void *, struct str json, struct sg_error *err);
    /* The stream has ended: UNAVAILABLE where that was before the answer's end. */
    int (*end)(void *, struct sg_error *err);
    size_t (*kept)(const void *); /* bytes of the answer that are in the arena */
};                                /* all that they keep is there */

extern const struct hearer_ops hear_chat, hear_messages;

/* An answer, or an event of one, which is an object; UNAVAILABLE with the cause where it is none. */
int said_scan(struct str json, struct arena *, struct json_text *ret, struct sg_error *err);

/* How many characters there are; a byte that is in none is one. */
size_t said_characters(struct str text);

/* Into *ret the number of that name, where there is one that is not negative; and likewise one that counts tokens. */
void said_number_read(struct arena *, const struct json_member *, size_t count, const char *name,
                      int64_t *ret);
void said_count_read(struct arena *, const struct json_member *, size_t count, const char *name,
                     int64_t *ret);

/* ---- those that say ---- */

struct voice_ops {
    void *(*open)(struct arena *, const char *id, bool as_stream);
    /* One for each kind; NULL: the API has no place for it. */
    int (*say[SAID_KINDS])(void *, const struct said *, struct buf *out, struct sg_error *err);
    size_t (*kept)(const void *); /* bytes for the answer's end */
    void (*close)(void *);
};

extern const struct voice_ops voice_chat, voice_messages, voice_responses;

#endif
