/* What becomes of each field, in words: from the tables by which requests are read and written. */
#include "translate/translate.h"

#include "base/check.h"
#include "translate/writing.h"

#include <string.h>

static const char none[] = "not needed";

static const struct {
    const char *name;
    const struct field *fields;
} sources[] = {
    {"chat", fields_chat}, {"responses", fields_responses}, {"messages", fields_messages}};

/* What is within the fields and says nothing to a server of another API. Each has its line in tests/data/translate/meaningless.txt. */
static const struct {
    const char *name, *path;
    const char *fates[2]; /* over each of the targets */
    const char *why;
} inside[] = {
    {"chat", "messages[].cache_control", {NULL, none}, "the server caches what it caches"},
    {"chat", "messages[].content[].cache_control", {NULL, none}, "likewise"},
    {"chat",
     "messages[].content[].image_url.detail",
     {NULL, none},
     "each image is looked at as closely as can be; low only saves tokens"},
    {"chat", "messages[].reasoning_content", {NULL, none}, "another model's: it has no signature"},
    {"chat", "messages[].reasoning", {NULL, none}, "likewise"},
    {"chat", "messages[].annotations", {NULL, none}, "notes at an answer, for the client"},
    {"chat", "messages[].executed_tools", {NULL, none}, "likewise"},
    {"chat",
     "messages[].name",
     {NULL, "refused"},
     "of a tool's result not needed: its call has it"},
    {"chat", "response_format.json_schema.name", {NULL, none}, "a name for the client"},
    {"chat",
     "response_format.json_schema.strict",
     {NULL, none},
     "the server always keeps to the schema"},
    {"responses", "input[].id", {none, none}, "of the vendor's own storage"},
    {"responses", "input[].status", {none, none}, "what is sent back is over"},
    {"responses", "input[].phase", {none, none}, "a note at an answer, for the client"},
    {"responses",
     "input[].encrypted_content",
     {none, "carried"},
     "only the model that made it can read it"},
    {"responses",
     "input[].content[].annotations",
     {none, none},
     "notes at an answer, for the client"},
    {"responses", "input[].content[].logprobs", {none, none}, "likewise"},
    {"responses",
     "input[].content[].detail",
     {"carried", none},
     "each image is looked at as closely as can be; low only saves tokens"},
    {"responses", "tools[].defer_loading", {none, none}, "the tool is there from the start"},
    {"responses", "reasoning.summary", {none, none}, "what is shown is shown as a summary"},
    {"responses", "reasoning.generate_summary", {none, none}, "its older name"},
    {"responses", "text.format.name", {"carried", none}, "a name for the client"},
    {"responses", "text.format.strict", {"carried", none}, "the server always keeps to the schema"},
    {"messages", "system[].cache_control", {none, NULL}, "other servers cache by themselves"},
    {"messages", "messages[].content[].cache_control", {none, NULL}, "likewise"},
    {"messages",
     "messages[].content[].citations",
     {none, NULL},
     "those of a text; where they are asked for they are refused"},
    {"messages", "messages[].content[].caller", {none, NULL}, "a note at a call, for the client"},
    {"messages",
     "messages[].content[].data",
     {none, NULL},
     "of redacted_thinking: only the model that made it can read it"},
    {"messages", "tools[].cache_control", {none, NULL}, "other servers cache by themselves"},
    {"messages", "tools[].allowed_callers", {none, NULL}, "refused where direct is not among them"},
    {"messages", "tools[].eager_input_streaming", {none, NULL}, "input is streamed as it comes"},
    {"messages", "tools[].defer_loading", {none, NULL}, "the tool is there from the start"},
    {"messages", "thinking.display", {none, NULL}, "what is shown is shown"},
    {"messages", "metadata.*", {none, NULL}, "all but user_id"},
};

static const struct {
    const char *name;
    enum option_fate (*fate)(enum option_kind);
} targets[] = {{"chat", write_chat_fate}, {"messages", write_messages_fate}};

static const char *fate_of(const struct field *field, enum option_fate (*fate)(enum option_kind))
{
    static const char *const words[] = {[OPTION_CARRIED] = "carried",
                                        [OPTION_REFUSED] = "refused",
                                        [OPTION_NOT_NEEDED] = "not needed"};
    switch (field->kind) {
    case FIELD_READ:
        return "carried";
    case FIELD_DEFAULT:
        return "refused, but for its default";
    case FIELD_OPTION:
    case FIELD_WISH:
        return words[fate(field->option)];
    default:
        return "not needed";
    }
}

static void field_describe(const char *source, const struct field *field, struct buf *out)
{
    (void)buf_printf(out, "  %s:", field->name); /* the owner asks for overflow */
    const char *between = " ";
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        if (!translation_exists(source, targets[i].name)) {
            continue;
        }
        (void)buf_printf(out, "%sover %s %s", between, targets[i].name,
                         fate_of(field, targets[i].fate));
        between = "; ";
    }
    (void)buf_printf(out, "%s%s\n", field->why == NULL ? "" : " | ",
                     field->why == NULL ? "" : field->why);
}

static void inside_describe(const char *source, struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(inside); i++) {
        if (strcmp(inside[i].name, source) != 0) {
            continue;
        }
        (void)buf_printf(out, "  %s:", inside[i].path); /* the owner asks for overflow */
        const char *between = " ";
        for (size_t k = 0; k < COUNT_OF(targets); k++) {
            if (inside[i].fates[k] != NULL) {
                (void)buf_printf(out, "%sover %s %s", between, targets[k].name, inside[i].fates[k]);
                between = "; ";
            }
        }
        (void)buf_printf(out, " | %s\n", inside[i].why);
    }
}

void translation_describe(struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        (void)buf_printf(out, "%s:\n", sources[i].name);
        for (const struct field *field = sources[i].fields; field->name != NULL; field++) {
            field_describe(sources[i].name, field, out);
        }
        inside_describe(sources[i].name, out);
    }
}
