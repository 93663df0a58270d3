/* What the readers of requests share: tables of fields, what is refused, growing lists. */
#ifndef SANDGATE_TRANSLATE_READING_H
#define SANDGATE_TRANSLATE_READING_H

#include "base/error.h"
#include "translate/conversation.h"

struct reading {
    struct arena *arena;
    struct conversation *to;
    const char *const *
        drop; /* paths that the operator lets go, ended by NULL: each with all that is inside, "[]" is any
                                index: "messages[].name" */
    size_t messages_room;
    size_t objects;               /* that were read: bounded */
    const char *wrong, *expected; /* the first member of another type than it should be of */
};

struct object { /* a message, a part of it, a tool: opened */
    const char *path;
    const struct json_member *members;
    size_t count;
    struct str type; /* of its member `type`, where it has one */
};

/* Fails where the value is no object. */
int object_open(struct reading *, const char *path, struct json_value, struct object *ret,
                struct sg_error *err);
/* NULL where it is not there or null; likewise if it is of another type, which is noted and fails where the reading of all
 * fields ends. */
const struct json_member *object_member(struct reading *, const struct object *, const char *name,
                                        enum json_type);
/* The text of such a member that is a string, or empty. */
struct str object_text(struct reading *, const struct object *, const char *name);

enum field_kind {
    FIELD_READ,       /* by a function of its own */
    FIELD_DEFAULT,    /* likewise, but nothing else than what asks for nothing */
    FIELD_OPTION,     /* an option, as it is … */
    FIELD_WISH,       /* … or read by a function, since some values of it ask for nothing */
    FIELD_MEANINGLESS /* says nothing to a model, or is done here whatever it says */
};

struct field {
    const char *name;
    enum field_kind kind;
    enum option_kind option;
    int (*read)(struct reading *, const struct json_member *, struct sg_error *err);
    const char *why; /* it says nothing, or what becomes of it; for the docs */
};

/* The table of an API's fields at the top of a request, ended by a NULL name; for the reader, the docs and the tests. */
extern const struct field fields_chat[], fields_messages[], fields_responses[];

/* Reads the members by the table. One that it does not have is refused, unless it is null or the operator lets it go. */
int fields_read(struct reading *, const struct json_member *, size_t count, const struct field *,
                struct sg_error *err);

/* The field cannot be carried: INVALID, with its path, unless the operator lets it go. `why` follows the path. */
int refuse_field(const struct reading *, const char *path, const char *why, struct sg_error *err);
bool is_let_go(const struct reading *, const char *path);
/* It is not of the type that the API has. */
int wrong_type(const char *path, const char *expected, struct sg_error *err);

/* Members of an object that are not listed (NULL ends it) are refused as `PATH.name`. */
int members_check(struct reading *, const char *path, const struct json_member *, size_t count,
                  const char *const *known, struct sg_error *err);

void option_set(struct reading *, enum option_kind, const char *path, struct json_value);
/* A value that a reader makes up: JSON of its own, in the arena. */
struct json_value value_of(struct reading *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *path_at(struct reading *, const char *path, const char *name); /* PATH.name */
const char *path_item(struct reading *, const char *path, size_t index);   /* PATH[index] */

struct message *message_add(struct reading *, enum role, const char *path);
struct part *part_add(struct reading *, struct message *, enum part_kind, const char *path);
/* The part that was added last cannot be carried: takes it away again, and refuses it as refuse_field() does. */
int part_refuse(const struct reading *, struct message *, const char *path, const char *why,
                struct sg_error *err);
/* All of them in a row. Texts may hold NUL, which printing would end at. */
struct str words_join(struct reading *, const struct str *words, size_t count);
/* Adds its parts as messages: results are the user's to give, wherever an API has them. */
void message_spread(struct reading *, const struct message *);

/* Fields that all APIs have alike. */
int model_read(struct reading *, const struct json_member *, struct sg_error *err);
int stream_read(struct reading *, const struct json_member *, struct sg_error *err);
/* The elements of `tools`, each by `read`. */
int functions_read(struct reading *, const struct json_member *tools,
                   int (*read)(struct reading *, const char *path, struct json_value,
                               struct function *, struct sg_error *),
                   struct sg_error *err);

/* {"type": "json_schema", …} with name, description, schema, strict at `schema`; "json_object", "text". */
int format_read(struct reading *, const char *path, struct json_value format, bool is_nested,
                struct sg_error *err);

/* `tool_choice`; nested: names stand in an object of their own. */
int read_openai_choice(struct reading *, const struct json_member *, bool is_nested,
                       struct sg_error *err);

/* Parts that both APIs of OpenAI have alike. */
int read_text_part(struct reading *, const struct object *, struct message *, struct sg_error *err);
int read_refusal_part(struct reading *, const struct object *, struct message *,
                      struct sg_error *err);
struct part_form { /* how an API writes a kind of part */
    const char *type;
    int (*read)(struct reading *, const struct object *, struct message *, struct sg_error *);
    const char *members[8]; /* that it may have */
};
/* A string, which is a part of the kind, an array of parts by a table ended by a NULL type, or nothing. */
int read_openai_content(struct reading *, const struct part_form *, const char *path,
                        const struct json_member *content, enum part_kind, struct message *,
                        struct sg_error *);
/* The message that a result goes into: results in a row stand in one. */
bool message_is_results(const struct message *);
struct message *message_for_results(struct reading *, const char *path);

/* The reader of each API: the whole body into the conversation. */
int read_chat(struct reading *, const struct json_text *body, struct sg_error *err);
int read_messages(struct reading *, const struct json_text *body, struct sg_error *err);
int read_responses(struct reading *, const struct json_text *body, struct sg_error *err);

#endif
