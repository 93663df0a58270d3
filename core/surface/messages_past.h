/* What messages_history.c and messages_past.c share: a history, read message by message. */
#ifndef SANDGATE_SURFACE_MESSAGES_PAST_H
#define SANDGATE_SURFACE_MESSAGES_PAST_H

#include "surface/messages.h"

struct past_call { /* of the assistant's message at hand, since its results began */
    struct str id; /* as the client has it */
    int offer;     /* -1: the client's, or told in words */
    bool in_words; /* ours, of a tool that is not offered */
    bool done;
    struct str name, input;
    struct str result; /* tool_result as JSON; empty: none yet */
};

struct past {
    struct messages_request *request;
    struct arena *arena;
    size_t place; /* of the message */
    struct past_call *calls;
    size_t count, cap;
    size_t taken; /* calls and results of the message, which are bounded */
    bool has_results, has_client_calls;
    struct buf out; /* the new content of the message */
    size_t segment; /* where its last part begins */
    bool role_first;
    struct past_call *earlier; /* of the message before, whose results may stand in this one */
    size_t earlier_count;
    struct str before; /* a message that goes in front of the one at hand */
};

struct past_block {
    struct json_value value, input, content;
    struct str type, id, name, tool_use_id, cache_control;
};

struct past_message {
    struct json_value value;
    struct json_member *members;
    size_t count;
    const struct json_member *content;
    bool is_assistant, is_user;
};

struct past_block past_block_read(struct json_value, struct arena *);
bool past_is_our_result(const struct past_block *);
/* A call of ours that has no result yet; NULL: none of that id. */
struct past_call *past_call_find(struct past_call *, size_t count, struct str id);
bool past_has_ours(const struct past_call *, size_t count); /* for the upstream */
/* The id under which the upstream knows the call. */
struct str past_up_id(struct str id);

/* The text of a result's block, for the model. */
struct str past_words_of(struct past *, const struct past_block *result, const struct past_call *);
struct str past_result_make(struct past *, struct str id, struct str text,
                            struct str cache_control);
/* What a call comes to for the upstream, behind a comma if something stands behind `start`. */
void past_result_put(struct past *, const struct past_call *, size_t start, struct buf *out);
void past_results_put(struct past *, const struct past_call *, size_t count, struct buf *out);
/* The user's message of such results. */
void past_user_message_put(struct past *, const struct past_call *, size_t count, struct buf *out);

/* Notes what becomes of a message that holds blocks of ours, and which calls go on behind it. */
int past_assistant_take(struct past *, const struct past_message *, struct sg_error *err);
/* Puts `before` in front of the message, if there is to be something. */
void past_before_insert(struct past *, const struct past_message *);
size_t past_place_of(const struct past *, const char *at); /* in the body */

#endif
