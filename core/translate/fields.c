/* What becomes of each field, in words: from the tables by which requests are read and written. */
#include "translate/translate.h"
#include "translate/writing.h"

static const struct {
    const char *name;
    const struct field *fields;
} sources[] = {
    {"chat", fields_chat}, {"responses", fields_responses}, {"messages", fields_messages}};

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
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
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

void translation_describe(struct buf *out)
{
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        (void)buf_printf(out, "%s:\n", sources[i].name);
        for (const struct field *field = sources[i].fields; field->name != NULL; field++) {
            field_describe(sources[i].name, field, out);
        }
    }
}
