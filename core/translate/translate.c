/* The way through: a reader and a writer up, a hearer and a voice back. */
#include "translate/translate.h"

#include "base/check.h"
#include "base/limits.h"
#include "surface/reported.h"
#include "surface/turn_stream.h"
#include "translate/said.h"
#include "translate/writing.h"

#include <stdio.h>
#include <stdlib.h>

/* What an upstream's error may speak of beside options: messages, what the system says, tools, the choice among them, the model. */
enum { THINGS = 5 };

/* What each API can: read a request, write one, hear an answer, say one. */
static const struct api {
    const char *name;
    int (*read)(struct reading *, const struct json_text *, struct sg_error *);
    int (*write)(const struct reading *, const struct conversation *, struct buf *,
                 struct sg_error *);
    const char *(*field)(enum option_kind);
    const struct hearer_ops *hearer;
    const struct voice_ops *voice;
    const char *things[THINGS]; /* its fields for them */
} apis[] = {
    {"chat",
     read_chat,
     write_chat,
     write_chat_field,
     &hear_chat,
     &voice_chat,
     {"messages", "messages", "tools", "tool_choice", "model"}},
    {"messages",
     read_messages,
     write_messages,
     write_messages_field,
     &hear_messages,
     &voice_messages,
     {"messages", "system", "tools", "tool_choice", "model"}},
    {"responses",
     read_responses,
     NULL,
     NULL,
     NULL,
     &voice_responses,
     {"input", "instructions", "tools", "tool_choice", "model"}},
};

struct translation {
    struct translation_options options;
    const struct api *from, *to;
    struct arena *arena;
    const char *option_paths[OPTION_KINDS]; /* where the client said them; NULL: it did not */
    bool is_stream;
    void *hearer, *voice;
    struct turn_stream stream;
    struct buf whole; /* an answer that is no stream */
    struct buf *out;  /* of the call that goes on */
};

static const struct api *api_named(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        if (strcmp(apis[i].name, name) == 0) {
            return &apis[i];
        }
    }
    return NULL;
}

bool translation_exists(const char *from, const char *to)
{
    const struct api *one = api_named(from), *other = api_named(to);
    return one != NULL && other != NULL && one != other && one->read != NULL &&
           other->write != NULL && other->hearer != NULL && one->voice != NULL;
}

struct translation *translation_new(const struct translation_options *options)
{
    CHECK(translation_exists(options->from, options->to));
    struct translation *t = check_alloc(calloc(1, sizeof *t));
    t->options = *options;
    t->from = api_named(options->from);
    t->to = api_named(options->to);
    t->arena = arena_new(0);
    t->whole.max = LIMIT_BODY_BYTES;
    turn_stream_init(&t->stream);
    return t;
}

void translation_free(struct translation *t)
{
    if (t == NULL) {
        return;
    }
    if (t->hearer != NULL) {
        t->from->voice->close(t->voice);
    }
    turn_stream_clear(&t->stream);
    buf_clear(&t->whole);
    arena_free(t->arena);
    free(t);
}

int translation_request(struct translation *t, struct str body, struct buf *out,
                        struct sg_error *err)
{
    struct arena *scratch = arena_new(0);
    struct conversation conversation = {.is_counted = t->options.counts};
    struct reading reading = {.arena = scratch, .to = &conversation, .drop = t->options.drop};
    struct json_text text;
    int code = json_scan(body, scratch, &text, err);
    CHECK(code != SG_OK || text.root.type == JSON_OBJECT); /* our own surface wrote it */
    code = code == SG_OK ? t->from->read(&reading, &text, err) : code;
    code = code == SG_OK ? t->to->write(&reading, &conversation, out, err) : code;
    for (int i = 0; i < OPTION_KINDS; i++) {
        const struct option *option = &conversation.options[i];
        t->option_paths[i] = option->is_said ? arena_printf(t->arena, "%s", option->path) : NULL;
    }
    arena_free(scratch);
    if (code == SG_OK && out->overflow) {
        code = error_set(err, SG_E_LIMIT,
                         "The request is larger than %zu MiB in the API of its model's server.",
                         LIMIT_BODY_BYTES / MIB);
    }
    return code;
}

/* Is the path the field, or within it? */
static bool is_within(const char *path, const char *field)
{
    size_t len = field == NULL ? 0 : strlen(field);
    return len > 0 && strncmp(path, field, len) == 0 && strchr(".[", path[len]) != NULL;
}

/* The places of messages and tools differ between the two requests: of those the field alone is told. */
static const char *client_field(const struct translation *t, const char *path)
{
    for (int i = 0; i < OPTION_KINDS; i++) {
        if (t->option_paths[i] != NULL && is_within(path, t->to->field((enum option_kind)i))) {
            return t->option_paths[i];
        }
    }
    for (size_t i = 0; i < THINGS; i++) {
        if (is_within(path, t->to->things[i])) {
            return t->from->things[i];
        }
    }
    return "";
}

void translation_error(const struct translation *t, struct sg_error *err)
{
    const char *field = client_field(t, err->param);
    (void)snprintf(err->param, sizeof err->param, "%s", field); /* paths are short */
}

/* ---- the answer ---- */

static int say(void *translation, const struct said *said, struct sg_error *err)
{
    struct translation *t = translation;
    CHECK(said->kind < SAID_KINDS);
    return t->from->voice->say[said->kind] == NULL
               ? SG_OK
               : t->from->voice->say[said->kind](t->voice, said, t->out, err);
}

void translation_answer_begin(struct translation *t, bool is_stream)
{
    const struct sayer sayer = {say, t};
    t->is_stream = is_stream;
    t->voice = t->from->voice->open(t->arena, t->options.id, is_stream);
    t->hearer = t->to->hearer->open(t->arena, t->options.id, &sayer);
}

static int event_take(void *translation, struct sse_event event, struct sg_error *err)
{
    struct translation *t = translation;
    return t->to->hearer->event(t->hearer, event.data, str_is(event.name, "error"), err);
}

int translation_answer_feed(struct translation *t, struct str bytes, struct buf *out,
                            struct sg_error *err)
{
    t->out = out;
    if (t->is_stream) {
        return turn_stream_feed(&t->stream, bytes, event_take, t, err);
    }
    return buf_append_str(&t->whole, bytes) ? SG_OK : answer_too_large(err);
}

int translation_answer_end(struct translation *t, struct buf *out, struct sg_error *err)
{
    t->out = out;
    if (!t->is_stream) {
        return t->to->hearer->whole(t->hearer, buf_str(&t->whole), err);
    }
    /* A last event may lack its empty line. */
    int code = turn_stream_feed(&t->stream, STR("\n\n"), event_take, t, err);
    return code == SG_OK ? t->to->hearer->end(t->hearer, err) : code;
}

size_t translation_kept(const struct translation *t)
{
    size_t said =
        t->voice == NULL ? 0 : t->from->voice->kept(t->voice) + t->to->hearer->kept(t->hearer);
    return t->whole.len + turn_stream_held(&t->stream) + said;
}
