/* Entries of sections that are lists, whatever is in them: see setup.h. */
#include "gateway/setup.h"

#include "base/check.h"

#include <string.h>

const char *const *setup_keys_beside(const struct sg_option *table, const struct conf_node *map,
                                     struct arena *arena)
{
    const char **names = arena_get(arena, (map->count + 2) * sizeof *names);
    size_t count = 0;
    names[count++] = "offer"; /* read by hand: a word or a map */
    for (size_t i = 0; i < map->count; i++) {
        bool known = false;
        for (const struct sg_option *option = table; option->name != NULL; option++) {
            known = known || strcmp(option->name, map->keys[i]->text) == 0;
        }
        if (!known) {
            names[count++] = map->keys[i]->text;
        }
    }
    return names;
}

/* The entries of a section: a list of maps. */
static size_t section_entries(struct setup *s, const struct conf_node *root, const char *section,
                              const struct conf_node **ret_list)
{
    const struct conf_node *list = conf_get(root, section);
    if (list == NULL || (list->type == CONF_SCALAR && list->text[0] == '\0')) {
        return 0;
    }
    if (list->type != CONF_LIST) {
        conf_problem(s->problems, list, "'%s' must be a list of entries such as '- { name: … }'",
                     section);
        return 0;
    }
    *ret_list = list;
    return list->count;
}

bool setup_name_usable(struct setup *s, const struct conf_node *entry, const char *name)
{
    if (name == NULL || name[0] == '\0') {
        return false; /* reported as missing already */
    }
    if (strlen(name) > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_.-") != strlen(name)) {
        conf_problem(s->problems, conf_get(entry, "name"),
                     "a name is 1 to 64 letters, digits, '_', '-' and '.', not '%.80s'", name);
        return false;
    }
    return true;
}

static bool is_map(struct setup *s, const struct conf_node *entry, const char *section)
{
    if (entry->type != CONF_MAP) {
        conf_problem(s->problems, entry, "an entry of '%s' must be a map such as { name: … }",
                     section);
    }
    return entry->type == CONF_MAP;
}

size_t setup_count(const struct conf_node *root, const char *section)
{
    const struct conf_node *list = conf_get(root, section);
    return list != NULL && list->type == CONF_LIST ? list->count : 0;
}

void setup_names_unique(struct setup *s, const struct conf_node *root, const char *section)
{
    const struct conf_node *list = conf_get(root, section);
    size_t count = setup_count(root, section);
    for (size_t i = 0; i < count; i++) {
        const struct conf_node *name =
            list->items[i]->type == CONF_MAP ? conf_get(list->items[i], "name") : NULL;
        for (size_t k = 0; name != NULL && name->type == CONF_SCALAR && k < i; k++) {
            const struct conf_node *other =
                list->items[k]->type == CONF_MAP ? conf_get(list->items[k], "name") : NULL;
            if (other != NULL && other->type == CONF_SCALAR &&
                strcmp(other->text, name->text) == 0) {
                conf_problem(s->problems, name, "%s: '%s' is used twice (first in line %d)",
                             section, name->text, other->line);
                break;
            }
        }
    }
}

void setup_section(struct setup *s, const struct conf_node *root, const char *section,
                   entry_reader *read)
{
    const struct conf_node *list = NULL;
    size_t count = section_entries(s, root, section, &list);
    for (size_t i = 0; i < count; i++) {
        if (is_map(s, list->items[i], section)) {
            read(s, list->items[i], i);
        }
    }
}

const char *setup_suggestion(struct setup *s, const char *wanted, const void *first, size_t count,
                             size_t stride)
{
    const char **names = arena_get(s->arena, (count + 1) * sizeof *names);
    struct buf text = {0};
    for (size_t i = 0; i < count; i++) {
        names[i] = *(const char *const *)((const char *)first + i * stride);
        buf_printf(&text, "%s%s", i > 0 ? ", " : "; there is ", names[i]);
    }
    const char *near = conf_nearest(wanted, names, count);
    const char *said = near != NULL ? arena_printf(s->arena, "; did you mean '%s'?", near)
                       : count > 0  ? arena_printf(s->arena, "%s", text.data)
                                    : "; none is configured";
    buf_clear(&text);
    return said;
}
