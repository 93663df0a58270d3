/* What the two files that hear answers of Chat Completions share: hear_chat.c and, for calls, hear_chat_calls.c. */
#ifndef SANDGATE_TRANSLATE_HEAR_CHAT_H
#define SANDGATE_TRANSLATE_HEAR_CHAT_H

#include "translate/said.h"

enum { CALLS_MAX = 128 };

struct heard_call {
    bool has_index;
    int64_t index;       /* the upstream's */
    struct str id, name; /* the upstream's; an id may be made here */
    bool is_made, is_custom;
    bool is_told;       /* it has begun: its name is whole */
    bool has_arguments; /* some have come */
};

struct hearing {
    struct arena *arena;
    const char *id;
    struct sayer to;
    bool has_begun, is_over, has_reason, has_text;
    struct heard_call calls[CALLS_MAX];
    size_t calls_count;
    size_t kept; /* of ids and names */
    size_t characters, citations;
    enum said_stop stop;
    struct said_usage usage;
};

int hearing_say(const struct hearing *, const struct said *, struct sg_error *err);

/* The "index" of a call or a choice, if it has one; some servers write numbers as text. */
bool hearing_index_read(struct arena *scratch, const struct json_member *, size_t count,
                        int64_t *ret);
/* The calls of a whole answer or of a piece of one, as 'tool_calls' has them; NULL: there are none. */
int hearing_calls_take(struct hearing *, struct arena *scratch, const struct json_member *calls,
                       bool is_whole, struct sg_error *err);
/* The older form of a call, of which there is one: as servers give it that know no other. */
int hearing_old_call_take(struct hearing *, struct arena *scratch, const struct json_member *call,
                          struct sg_error *err);
/* The first so many begin, those that have not yet. */
int hearing_calls_tell(struct hearing *, size_t count, struct sg_error *err);

#endif
