/* A request in no API's form: what a client wants of a model, whatever it was asked in. Each API has a reader that makes
 * one of these, and may have a writer that makes a request of it; none knows another. All texts are decoded, and all of it
 * lives in one arena, as long as the body that was read. */
#ifndef SANDGATE_TRANSLATE_CONVERSATION_H
#define SANDGATE_TRANSLATE_CONVERSATION_H

#include "base/arena.h"
#include "base/json.h"

enum part_kind {
    PART_TEXT,
    PART_REFUSAL,   /* the model's, in words */
    PART_IMAGE,     /* by URL, or as base64 with its media type */
    PART_DOCUMENT,  /* likewise; `name` is its title or file name */
    PART_AUDIO,     /* base64; the media type is its format: "wav" */
    PART_REASONING, /* shown reasoning; `seal`: what proves it to the model that made it */
    PART_CALL,      /* a tool call */
    PART_RESULT     /* … and what came of it: parts of its own */
};

struct part {
    enum part_kind kind;
    const char *path; /* where it stood, for messages: "messages[3].content[0]" */
    struct str text;
    struct str url, media_type, data; /* of images and documents */
    struct str detail;                /* of an image: "low", "high" … */
    struct str name, id;              /* of a call, and the id of a result's call */
    struct str arguments;             /* of a call, as text; of a custom tool its input */
    struct str seal;
    bool is_custom;
    bool is_error; /* the tool failed */
    struct part *parts;
    size_t count;
};

enum role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT };

struct message {
    enum role role;
    const char *path;
    struct str name; /* of who speaks, where an API has one */
    struct part *parts;
    size_t count, room;
    unsigned depth; /* of the parts, while they are read: 0, or how many parts they stand in */
};

struct function {
    const char *path;
    struct str name, description;
    struct str schema; /* raw; empty: none was given */
    struct str strict; /* raw true or false; empty: not said */
    struct str format; /* of a custom tool: raw, or empty */
    bool is_custom;
};

enum choice_kind {
    CHOICE_UNSAID,
    CHOICE_AUTO,
    CHOICE_NONE,
    CHOICE_REQUIRED,
    CHOICE_FUNCTION,
    CHOICE_ALLOWED
};

struct choice {
    enum choice_kind kind;
    struct str name;   /* CHOICE_FUNCTION */
    struct str *names; /* CHOICE_ALLOWED: of these alone … */
    size_t count;
    bool is_required, is_custom; /* … one must be called; the function is a custom tool */
};

/* Options, each a field that at least one API has. Values are raw JSON as the client wrote them, unless said otherwise. */
enum option_kind {
    OPTION_TEMPERATURE,
    OPTION_TOP_P,
    OPTION_TOP_K,
    OPTION_MAX_TOKENS,
    OPTION_STOP, /* an array of strings */
    OPTION_SEED,
    OPTION_PRESENCE_PENALTY,
    OPTION_FREQUENCY_PENALTY,
    OPTION_LOGIT_BIAS,
    OPTION_LOGPROBS,
    OPTION_TOP_LOGPROBS,
    OPTION_PARALLEL, /* may several tools be called in one turn? */
    OPTION_JSON,     /* the answer is to be any JSON; no value */
    OPTION_SCHEMA,   /* … of this schema: the members "name", "description", "schema", "strict" */
    OPTION_EFFORT,   /* "low", "medium" … */
    OPTION_THINKING_TOKENS,
    OPTION_VERBOSITY,
    OPTION_USER,
    OPTION_SAFETY_IDENTIFIER,
    OPTION_CACHE_KEY,
    OPTION_SERVICE_TIER,
    OPTION_KINDS
};

struct option {
    bool is_said;
    const char *path; /* as the client has it: "text.format" */
    struct json_value value;
};

struct conversation {
    struct str model;
    bool stream;
    bool is_counted; /* nothing is to be said to it: its tokens are counted */
    struct message *messages;
    size_t messages_count;
    struct function *functions;
    size_t functions_count;
    struct choice choice;
    const char *choice_path;
    struct option options[OPTION_KINDS];
};

#endif
