/* One scalar into one option's C member: the environment put in, the type and bounds checked. What a message may show of a
 * value is decided here alone (found()). */
#include "conf/internal.h"

#include "base/check.h"

const char *filler_where(const struct filler *filler)
{
    return filler->where == NULL || filler->where[0] == '\0'
               ? ""
               : arena_printf(filler->arena, "%s: ", filler->where);
}

void filler_report(const struct filler *filler, const struct conf_node *at,
                   const struct sg_option *option, const char *what)
{
    conf_problem(filler->problems, at, "%s'%s%s' %s", filler_where(filler), filler->path,
                 option->name, what);
}

const char *node_words(const struct conf_node *node)
{
    return node->type == CONF_LIST ? "a list" : node->type == CONF_MAP ? "a map" : "text";
}

/* What stands there, as far as it may be shown: "'5'". */
static const char *found(const struct filler *filler, const struct sg_option *option,
                         const struct scalar *scalar)
{
    if ((option->flags & SG_SECRET) != 0) {
        return "what is given (a secret, not shown)";
    }
    const char *shown = text_shown(scalar->node->text, filler->arena);
    return scalar->is_expanded ? arena_printf(filler->arena, "what %s holds", shown) : shown;
}

/* "'name' must be …, not '5'". */
static void report_value(const struct filler *filler, const struct sg_option *option,
                         const struct scalar *scalar, const char *expected)
{
    const char *what =
        arena_printf(filler->arena, "must be %s, not %s", expected, found(filler, option, scalar));
    filler_report(filler, scalar->node, option, what);
}

bool scalar_get(const struct filler *filler, const struct sg_option *option,
                const struct conf_node *node, const char *suffix, struct scalar *ret)
{
    const char *name = arena_printf(filler->arena, "%s%s%s", filler->path, option->name, suffix);
    if (node->reported) {
        return false;
    }
    if (node->type != CONF_SCALAR) {
        const char *words = suffix[0] != '\0' ? "text" : conf_type_words(option->type);
        conf_problem(filler->problems, node, "%s'%s' must be %s, not %s", filler_where(filler),
                     name, words, node_words(node));
        return false;
    }
    struct expansion expansion = {.text = node->text};
    if (!filler->literal) {
        expansion = text_expand(node->text, filler->arena);
    }
    if (expansion.text == NULL) {
        conf_problem(filler->problems, node, "%s'%s': %s", filler_where(filler), name,
                     expansion.problem);
        return false;
    }
    *ret = (struct scalar){node, expansion.text, expansion.is_expanded};
    return true;
}

static void fill_string(const struct filler *filler, const struct sg_option *option,
                        const struct scalar *scalar, const char **member)
{
    if (scalar->text[0] == '\0' && (option->flags & SG_REQUIRED) != 0) {
        filler_report(filler, scalar->node, option,
                      scalar->is_expanded
                          ? arena_printf(filler->arena, "must not be empty, and %s is",
                                         text_shown(scalar->node->text, filler->arena))
                          : "must not be empty");
        return;
    }
    *member = scalar->text;
}

/* In quotes it is text, unless it comes from the environment: "${PORT}" has to be quoted within { }. */
static bool refuse_quoted(const struct filler *filler, const struct sg_option *option,
                          const struct scalar *scalar)
{
    if (!scalar->node->quoted || scalar->is_expanded) {
        return false;
    }
    const char *shown = (option->flags & SG_SECRET) != 0
                            ? found(filler, option, scalar)
                            : arena_printf(filler->arena, "the quoted text %s",
                                           text_shown(scalar->node->text, filler->arena));
    filler_report(filler, scalar->node, option,
                  arena_printf(filler->arena, "must be %s, not %s; leave the quotes off",
                               conf_type_words(option->type), shown));
    return true;
}

static void fill_bool(const struct filler *filler, const struct sg_option *option,
                      const struct scalar *scalar, bool *member)
{
    if (refuse_quoted(filler, option, scalar)) {
        return;
    }
    if (!value_is_bool(scalar->text, member)) {
        report_value(filler, option, scalar, conf_type_words(option->type));
    }
}

/* Bounds are texts of the option's own type; those of plugins were read at load, ours are our own. */
static bool amount_within(const struct filler *filler, const struct sg_option *option,
                          const struct scalar *scalar, bool (*read)(const char *, int64_t *),
                          int64_t value)
{
    int64_t bound = 0;
    if (option->min != NULL) {
        CHECK(read(option->min, &bound));
        if (value < bound) {
            report_value(filler, option, scalar,
                         arena_printf(filler->arena, "at least %s", option->min));
            return false;
        }
    }
    if (option->max != NULL) {
        CHECK(read(option->max, &bound));
        if (value > bound) {
            report_value(filler, option, scalar,
                         arena_printf(filler->arena, "at most %s", option->max));
            return false;
        }
    }
    return true;
}

/* A number that is one, but not within int64, is told so. */
static const char *amount_words(const struct sg_option *option, const char *text)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    size_t len = strlen(digits);
    if (option->type == SG_INT && len >= 19 && strspn(digits, "0123456789") == len) {
        return "between -9223372036854775808 and 9223372036854775807";
    }
    return conf_type_words(option->type);
}

static void fill_amount(const struct filler *filler, const struct sg_option *option,
                        const struct scalar *scalar, bool (*read)(const char *, int64_t *),
                        int64_t *member)
{
    int64_t value = 0;
    if (!read(scalar->text, &value)) {
        bool may_show = (option->flags & SG_SECRET) == 0 && !scalar->is_expanded;
        const char *advice =
            may_show ? amount_advice(option->type, scalar->text, filler->arena) : "";
        filler_report(filler, scalar->node, option,
                      arena_printf(filler->arena, "must be %s, not %s%s",
                                   amount_words(option, scalar->text),
                                   found(filler, option, scalar), advice));
    } else if (amount_within(filler, option, scalar, read, value)) {
        *member = value;
    }
}

/* Sizes share the way of the signed: nobody has more than 8 EiB. */
static bool size_read(const char *text, int64_t *ret)
{
    uint64_t bytes = 0;
    if (!conf_size(text, &bytes) || bytes > INT64_MAX) {
        return false;
    }
    *ret = (int64_t)bytes;
    return true;
}

static void fill_size(const struct filler *filler, const struct sg_option *option,
                      const struct scalar *scalar, uint64_t *member)
{
    int64_t bytes = (int64_t)*member; /* stays if the value is refused */
    fill_amount(filler, option, scalar, size_read, &bytes);
    *member = (uint64_t)bytes;
}

/* "fast|slow" as a list. */
static const char *const *choices_split(const char *choices, struct arena *arena, size_t *ret_count)
{
    size_t count = 1;
    for (const char *at = choices; (at = strchr(at, '|')) != NULL; at++) {
        count++;
    }
    const char **list = arena_get(arena, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        size_t len = strcspn(choices, "|");
        list[i] = arena_copy(arena, (struct str){choices, len});
        choices += len + (choices[len] != '\0');
    }
    *ret_count = count;
    return list;
}

const char *names_joined(const char *const *list, size_t count, struct arena *arena)
{
    BUF_CLEANUP struct buf out = {0};
    for (size_t i = 0; i < count; i++) {
        (void)buf_printf(&out, "%s%s", i == 0 ? "" : ", ", list[i]); /* bounded by the table */
    }
    return arena_copy(arena, buf_str(&out));
}

static void fill_choice(const struct filler *filler, const struct sg_option *option,
                        const struct scalar *scalar, const char **member)
{
    size_t count = 0;
    CHECK(option->choices != NULL);
    const char *const *choices = choices_split(option->choices, filler->arena, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(scalar->text, choices[i]) == 0) {
            *member = choices[i];
            return;
        }
    }
    bool may_show = (option->flags & SG_SECRET) == 0 && !scalar->is_expanded;
    const char *nearest = may_show ? conf_nearest(scalar->text, choices, count) : NULL;
    filler_report(
        filler, scalar->node, option,
        arena_printf(
            filler->arena, "must be %s%s, not %s%s", count > 1 ? "one of " : "",
            names_joined(choices, count, filler->arena), found(filler, option, scalar),
            nearest == NULL ? "" : arena_printf(filler->arena, "; did you mean '%s'?", nearest)));
}

void scalar_fill(const struct filler *filler, const struct sg_option *option,
                 const struct conf_node *node, void *member)
{
    struct scalar scalar;
    if (!scalar_get(filler, option, node, "", &scalar)) {
        return;
    }
    switch (option->type) {
    case SG_STRING:
        fill_string(filler, option, &scalar, member);
        break;
    case SG_BOOL:
        fill_bool(filler, option, &scalar, member);
        break;
    case SG_INT:
        if (!refuse_quoted(filler, option, &scalar)) {
            fill_amount(filler, option, &scalar, value_is_int, member);
        }
        break;
    case SG_DURATION:
        fill_amount(filler, option, &scalar, conf_duration, member);
        break;
    case SG_SIZE:
        fill_size(filler, option, &scalar, member);
        break;
    default:
        CHECK(option->type == SG_CHOICE);
        fill_choice(filler, option, &scalar, member);
    }
}
