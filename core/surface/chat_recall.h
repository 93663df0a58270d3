/* What the two halves of reading a chat history share: chat_recall.c walks the messages, chat_kept.c puts back what was
 * kept under ids of ours. */
#ifndef SANDGATE_SURFACE_CHAT_RECALL_H
#define SANDGATE_SURFACE_CHAT_RECALL_H

#include "surface/chat.h"
#include "surface/results.h"

struct chat_recall {
    struct chat_request *request;
    struct arena *arena;
    bool by_ids;   /* ids of ours occur */
    bool searches; /* the hosted search is answered by us */
    struct str
        resumes; /* the id of the answer that this request continues, as far as it was read */
    struct turned *turned; /* the message that is read; one for all, as it is large */
    struct kept *kept;     /* the records that were read, the last one first */
    size_t ids_bytes;      /* of the ids that took the place of ours, so far */
};

struct chat_message { /* of the client's, with its members */
    struct json_value value;
    struct json_member *members;
    size_t count;
    size_t place;           /* among the messages */
    struct json_walk ahead; /* what follows it */
};

/* ---- chat_recall.c ---- */

/* The first member of that name of a checked object, without taking memory; false: none. */
bool chat_member_walk(struct json_value object, const char *name, struct json_value *ret);
bool chat_role_is(struct json_value message, const char *role);
/* Puts text in front of a message's content, whatever form that has. */
void chat_content_prefix(struct chat_recall *, const struct chat_message *, struct str prefix);
struct str chat_text_copy(struct arena *, const struct buf *);
void chat_value_replace(struct chat_recall *, struct json_value, struct str put);
size_t chat_body_at(const struct chat_recall *, const char *p);

/* ---- chat_kept.c ---- */

enum chat_kept_outcome {
    CHAT_KEPT_NOTHING,  /* its runs, if it has any, are still to be told */
    CHAT_KEPT_AS_TEXT,  /* they have been told in words */
    CHAT_KEPT_PUT_BACK, /* the whole message was replaced: nothing in it is to be edited any more */
};

/* Looks up what was kept for the calls of a message of the assistant. */
int chat_kept_apply(struct chat_recall *, const struct chat_message *, enum chat_kept_outcome *ret,
                    struct sg_error *err);

#endif
