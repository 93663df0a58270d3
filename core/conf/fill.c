/* Options filled from a tree by their table: every value is checked, every problem told with its place. Values of
 * SG_SECRET options and of environment variables are never part of a message. */
#include "conf/internal.h"

#include "base/check.h"
#include "base/log.h"

#include <stdalign.h>

/* An item of a list or map of texts: a null in it is a slip. */
static bool item_get(const struct filler *filler, const struct sg_option *option,
                     const struct conf_node *node, const char *suffix, const char **ret)
{
    struct scalar scalar;
    if (conf_is_absent(node)) {
        conf_problem(filler->problems, node,
                     "%s'%s%s%s' has no value; write \"\" for an empty text", filler_where(filler),
                     filler->path, option->name, suffix);
        return false;
    }
    if (!scalar_get(filler, option, node, suffix, &scalar)) {
        return false;
    }
    *ret = scalar.text;
    return true;
}

static bool refuse_many(const struct filler *filler, const struct sg_option *option,
                        const struct conf_node *node)
{
    if (node->count <= CONF_ITEMS_MAX) {
        return false;
    }
    filler_report(filler, node, option,
                  arena_printf(filler->arena, "has %zu items; at most %zu are taken", node->count,
                               CONF_ITEMS_MAX));
    return true;
}

/* A single scalar is a list of one. */
static void fill_strings(const struct filler *filler, const struct sg_option *option,
                         const struct conf_node *node, const char *const **member)
{
    if (node->type == CONF_MAP) {
        filler_report(filler, node, option, "must be a list of texts, not a map");
        return;
    }
    if (refuse_many(filler, option, node)) {
        return;
    }
    size_t count = node->type == CONF_LIST ? node->count : 1, taken = 0;
    const char **texts = arena_get(filler->arena, (count + 1) * sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        bool is_list = node->type == CONF_LIST;
        const struct conf_node *item = is_list ? node->items[i] : node;
        const char *suffix = is_list ? arena_printf(filler->arena, "[%zu]", i) : "";
        taken += item_get(filler, option, item, suffix, &texts[taken]);
    }
    if (count == 0 && (option->flags & SG_REQUIRED) != 0) {
        filler_report(filler, node, option, "must not be empty");
    }
    *member = texts;
}

static void fill_map(const struct filler *filler, const struct sg_option *option,
                     const struct conf_node *node, struct sg_map *member)
{
    if (node->type != CONF_MAP) {
        filler_report(filler, node, option,
                      arena_printf(filler->arena, "must be a map of names to texts, not %s",
                                   node_words(node)));
        return;
    }
    if (refuse_many(filler, option, node)) {
        return;
    }
    const char **keys = arena_get(filler->arena, (node->count + 1) * sizeof *keys);
    const char **values = arena_get(filler->arena, (node->count + 1) * sizeof *values);
    size_t taken = 0;
    for (size_t i = 0; i < node->count; i++) {
        if (node->keys[i]->reported) {
            continue;
        }
        const char *suffix =
            arena_printf(filler->arena, ".%s", key_part(node->keys[i]->text, filler->arena));
        keys[taken] = node->keys[i]->text;
        taken += item_get(filler, option, node->items[i], suffix, &values[taken]);
    }
    *member = (struct sg_map){keys, values, taken};
}

static void fill_table(const struct filler *, const struct sg_option *table,
                       const struct conf_node *map, const char *const *reserved, void *config);

static void fill_item(const struct filler *filler, const struct sg_option *option, size_t index,
                      const struct conf_node *node, void *item)
{
    if (node->reported) {
        return;
    }
    if (node->type != CONF_MAP) {
        conf_problem(filler->problems, node, "%s'%s%s[%zu]' must be a map, not %s",
                     filler_where(filler), filler->path, option->name, index,
                     conf_is_absent(node) ? "empty" : node_words(node));
        return;
    }
    struct filler inner = *filler;
    inner.path = arena_printf(filler->arena, "%s%s[%zu].", filler->path, option->name, index);
    inner.at = node;
    fill_table(&inner, option->fields, node, NULL, item);
}

static void fill_list(const struct filler *filler, const struct sg_option *option,
                      const struct conf_node *node, struct sg_list *member)
{
    if (node->type != CONF_LIST) {
        filler_report(
            filler, node, option,
            arena_printf(filler->arena, "must be a list of maps, not %s", node_words(node)));
        return;
    }
    if (refuse_many(filler, option, node)) {
        return;
    }
    if (node->count == 0 && (option->flags & SG_REQUIRED) != 0) {
        filler_report(filler, node, option, "must not be empty");
    }
    char *items = arena_get(filler->arena, (node->count + 1) * option->fields_size);
    for (size_t i = 0; i < node->count; i++) {
        fill_item(filler, option, i, node->items[i], items + i * option->fields_size);
    }
    *member = (struct sg_list){items, node->count};
}

/* A value that is there. */
static void fill_value(const struct filler *filler, const struct sg_option *option,
                       const struct conf_node *node, void *member)
{
    if (node->reported) {
        return;
    }
    switch (option->type) {
    case SG_STRINGS:
        fill_strings(filler, option, node, member);
        break;
    case SG_MAP:
        fill_map(filler, option, node, member);
        break;
    case SG_LIST:
        fill_list(filler, option, node, member);
        break;
    default:
        scalar_fill(filler, option, node, member);
    }
}

/* ---- tables ---- */

static void fill_default(const struct filler *filler, const struct sg_option *option, void *member)
{
    if (option->def != NULL) {
        struct sg_error err;
        CHECK(conf_value(option, option->def, member, filler->arena, &err) == 0);
    } else if (option->type == SG_STRINGS) {
        *(const char *const **)member = arena_get(filler->arena, sizeof(const char *));
    }
}

static void log_deprecated(const struct filler *filler, const struct sg_option *option,
                           const struct conf_node *node)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "option_deprecated");
    log_text(&line, "file", filler->problems->file);
    log_int(&line, "line", node->line);
    log_text(&line, "where", filler->where);
    log_text(&line, "option", arena_printf(filler->arena, "%s%s", filler->path, option->name));
    log_text(&line, "help", option->help);
    log_end(&line);
}

static void fill_given(const struct filler *filler, const struct sg_option *option,
                       const struct conf_node *node, void *member)
{
    if ((option->flags & SG_DEPRECATED) != 0) {
        log_deprecated(filler, option, node);
    }
    fill_value(filler, option, node, member);
}

static bool is_reserved(const char *const *reserved, const char *key)
{
    for (; reserved != NULL && *reserved != NULL; reserved++) {
        if (strcmp(*reserved, key) == 0) {
            return true;
        }
    }
    return false;
}

static const struct sg_option *option_find(const struct sg_option *table, const char *key)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (strcmp(table->name, key) == 0) {
            return table;
        }
    }
    return NULL;
}

/* All names that a map may hold; deprecated ones are not proposed. */
static const char *const *names_known(const struct sg_option *table, const char *const *reserved,
                                      struct arena *arena, size_t *ret_count)
{
    size_t count = 0, names = 0;
    for (size_t i = 0; table != NULL && table[i].name != NULL; i++) {
        count++;
    }
    for (size_t i = 0; reserved != NULL && reserved[i] != NULL; i++) {
        count++;
    }
    const char **list = arena_get(arena, (count + 1) * sizeof *list);
    for (; reserved != NULL && *reserved != NULL; reserved++) {
        list[names++] = *reserved;
    }
    for (; table != NULL && table->name != NULL; table++) {
        if ((table->flags & SG_DEPRECATED) == 0) {
            list[names++] = table->name;
        }
    }
    *ret_count = names;
    return list;
}

static void report_unknown(const struct filler *filler, const struct sg_option *table,
                           const char *const *reserved, const struct conf_node *key)
{
    enum { LISTED_MAX = 12 };
    if (problems_are_full(filler->problems)) {
        conf_problem(filler->problems, key, "unknown key");
        return;
    }
    size_t count = 0;
    const char *const *names = names_known(table, reserved, filler->arena, &count);
    struct str word = {key->text, strcspn(key->text, CONF_NAME_ENDS)};
    const char *nearest = conf_nearest(arena_copy(filler->arena, word), names, count);
    const char *advice = "";
    if (nearest != NULL && strchr(key->text, ':') == NULL) {
        advice = arena_printf(filler->arena, "; did you mean '%s'?", nearest);
    } else if (count > 0 && count <= LISTED_MAX) {
        advice = arena_printf(filler->arena, "; known are %s",
                              names_joined(names, count, filler->arena));
    }
    conf_problem(filler->problems, key, "%sunknown key %s%s", filler_where(filler),
                 key_shown(filler->path, key->text, filler->arena), advice);
}

static void report_missing(const struct filler *filler, const struct sg_option *option,
                           const struct conf_node *at)
{
    filler_report(
        filler, at, option,
        option->type == SG_CHOICE
            ? arena_printf(filler->arena, "is required: %s", option->choices)
            : arena_printf(filler->arena, "is required: %s", conf_type_words(option->type)));
}

/* Required ones that are not there, in the table's order. */
static void report_all_missing(const struct filler *filler, const struct sg_option *table,
                               const struct conf_node *map)
{
    for (; table != NULL && table->name != NULL; table++) {
        const struct conf_node *value = conf_get(map, table->name);
        if ((table->flags & SG_REQUIRED) != 0 && conf_is_absent(value)) {
            report_missing(filler, table, value != NULL ? value : filler->at);
        }
    }
}

static void fill_table(const struct filler *filler, const struct sg_option *table,
                       const struct conf_node *map, const char *const *reserved, void *config)
{
    for (const struct sg_option *option = table; option != NULL && option->name != NULL; option++) {
        CHECK(option->size == conf_type_size(option->type));
        fill_default(filler, option, (char *)config + option->offset);
    }
    for (size_t i = 0; map != NULL && i < map->count; i++) {
        const struct conf_node *key = map->keys[i];
        const struct sg_option *option = option_find(table, key->text);
        if (key->reported) {
            continue;
        }
        if (option == NULL && !is_reserved(reserved, key->text)) {
            report_unknown(filler, table, reserved, key);
        } else if (option != NULL && !conf_is_absent(map->items[i])) {
            fill_given(filler, option, map->items[i], (char *)config + option->offset);
        }
    }
    report_all_missing(filler, table, map);
}

size_t conf_fill(const struct sg_option *table, const struct conf_node *map,
                 const struct conf_node *at, const char *const *reserved, const char *where,
                 void *config, struct arena *arena, struct conf_problems *problems)
{
    struct filler filler = {where, "", false, at, arena, problems};
    size_t before = problems->count;
    if (conf_is_absent(map)) {
        map = NULL;
    } else if (map->type != CONF_MAP) {
        if (!map->reported) { /* text is not shown: it may be a secret in the wrong place */
            conf_problem(problems, map, "%smust be a map of keys and values, not %s",
                         filler_where(&filler), node_words(map));
        }
        return problems->count - before;
    }
    filler.at = at != NULL ? at : map;
    fill_table(&filler, table, map, reserved, config);
    return problems->count - before;
}

size_t conf_fill_one(const struct sg_option *option, const struct conf_node *value,
                     const struct conf_node *at, const char *where, void *member,
                     struct arena *arena, struct conf_problems *problems)
{
    struct filler filler = {where, "", false, at, arena, problems};
    size_t before = problems->count;
    CHECK(conf_type_size(option->type) != 0);
    fill_default(&filler, option, member);
    if (!conf_is_absent(value)) {
        fill_given(&filler, option, value, member);
    } else if ((option->flags & SG_REQUIRED) != 0) {
        report_missing(&filler, option, value != NULL ? value : at);
    }
    return problems->count - before;
}

/* Texts are taken as they are; lists and maps are read as YAML. */
static struct conf_node *value_node(const struct sg_option *option, const char *text,
                                    struct arena *arena, struct conf_problems *problems)
{
    if (option->type == SG_STRINGS || option->type == SG_MAP || option->type == SG_LIST) {
        return node_parse(str_of(text), arena, problems);
    }
    struct conf_node *node = arena_get(arena, sizeof *node);
    *node = (struct conf_node){.type = CONF_SCALAR, .text = text};
    return node;
}

int conf_value(const struct sg_option *option, const char *text, void *ret, struct arena *arena,
               struct sg_error *err)
{
    struct conf_problems problems = {0};
    struct filler filler = {NULL, "", true, NULL, arena, &problems};
    CHECK(conf_type_size(option->type) != 0);
    const struct conf_node *node = value_node(option, text, arena, &problems);
    if (node != NULL && problems.count == 0) {
        alignas(max_align_t) char member[sizeof(struct sg_map)] = {0}; /* the largest of them */
        fill_value(&filler, option, node, member);
        if (problems.count == 0) {
            memcpy(ret, member, conf_type_size(option->type));
        }
    }
    int code = 0;
    if (problems.count > 0) {
        struct str first = {problems.text.data, strcspn(problems.text.data, "\n")};
        code = error_set(err, SG_E_CONFIG, "%.*s", (int)first.len, first.data);
    }
    conf_problems_clear(&problems);
    return code;
}
