/* Edits of JSON objects by splicing: a request's body for a turn, an upstream's event on its way to the client. */
#ifndef SANDGATE_SURFACE_BODY_EDIT_H
#define SANDGATE_SURFACE_BODY_EDIT_H

#include "surface/tools.h"

struct body_edit { /* of one turn's body */
    const struct json_text *body;
    struct arena *arena;
    struct splice splice;
    bool *gone;       /* members of the body that go */
    struct buf added; /* members that are added: `,"key":value`… */
    bool tools_left;  /* are there tools in this turn? */
};

/* The edit owns `added` until body_edit_apply(). */
struct body_edit body_edit_begin(const struct json_text *body, struct arena *);
/* The place of a byte of the body within it. */
size_t body_edit_at(const struct body_edit *, const char *);
/* The member goes; NULL is fine. */
void body_edit_cut(struct body_edit *, const struct json_member *);
/* The member gets this value, or is added with it where it is NULL. `value` lives until the edits are applied. */
void body_edit_set(struct body_edit *, const struct json_member *, const char *key,
                   struct str value);
/* Any value within the body. */
void body_edit_value(struct body_edit *, struct json_value, struct str put);
/* Appends the body with all edits, ends the edit. False beyond LIMIT_BODY_BYTES of it. */
bool body_edit_apply(struct body_edit *, struct buf *ret);

/* The text moves to the arena, the buffer is empty then. */
struct str buf_to_arena(struct buf *text, struct arena *);

/* The shown definitions in the place of the client's entries, and behind them those that the client did not name; or our
 * tools taken away. `gone_with_tools`: members that make no sense where no tool is left, ended by NULL. */
void body_edit_tools(struct body_edit *, const struct tool_set *, bool remove,
                     const char *const *gone_with_tools);

/* What is left of a token limit of which so much was used; -1: no limit, or usage unknown. */
int64_t tokens_left(const struct json_member *limit, int64_t used);
/* 413, which no client library repeats by itself: the same request would be too large again. */
int body_too_large(bool is_first_turn, struct sg_error *err);

/* Cuts the marked members of an object within `text` and adds `added` (`,"key":value`…, borrowed) behind what is left. */
void members_edit(struct splice *, struct str text, struct json_value object,
                  const struct json_member *, size_t count, const bool *gone, struct str added);

/* Behind `start` all but the last two bytes are JSON, and become one line: line ends within it are white space. */
void line_flatten(struct buf *out, size_t start);

#endif
