/* Comparing two configuration files as trees: see changes.h. */
#include "gateway/changes.h"

#include <stdio.h>
#include <string.h>

bool change_is_reread(const char *name)
{
    return strcmp(name, "auth.keys") == 0 || strcmp(name, "auth.keys_file") == 0 ||
           strcmp(name, "upstreams") == 0 || strcmp(name, "models") == 0 ||
           strcmp(name, "server.tls") == 0;
}

void changes_note(struct changes *changes, const char *name, const struct conf_node *at)
{
    if (changes->count < CHANGES_MAX) {
        struct change *change = &changes->changes[changes->count];
        (void)snprintf(change->name, sizeof change->name, "%s", name); /* a long one is cut */
        change->line = at->line;
        change->column = at->column;
    }
    changes->count++;
}

static void compare(const char *name, const struct conf_node *before, const struct conf_node *now,
                    struct changes *changes);

static void name_within(const char *name, const char *key, char ret[CHANGE_NAME_BYTES])
{
    size_t len = strcspn(key, CONF_NAME_ENDS);
    (void)snprintf(ret, CHANGE_NAME_BYTES, "%s%s%.*s", name, name[0] != '\0' ? "." : "", (int)len,
                   key); /* a long one is cut */
}

/* Keys may stand in another order. One that is gone is told at its map. */
static void compare_maps(const char *name, const struct conf_node *before,
                         const struct conf_node *now, struct changes *changes)
{
    char inner[CHANGE_NAME_BYTES];
    for (size_t i = 0; i < now->count; i++) {
        const char *key = now->keys[i]->text;
        const struct conf_node *old = conf_get(before, key);
        name_within(name, key, inner);
        if (change_is_reread(inner) || (conf_is_absent(old) && conf_is_absent(now->items[i]))) {
            continue;
        }
        if (old == NULL) {
            changes_note(changes, inner, now->keys[i]);
        } else {
            compare(inner, old, now->items[i], changes);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        name_within(name, before->keys[i]->text, inner);
        if (!change_is_reread(inner) && !conf_is_absent(before->items[i]) &&
            conf_get(now, before->keys[i]->text) == NULL) {
            changes_note(changes, inner, now);
        }
    }
}

static void compare_lists(const char *name, const struct conf_node *before,
                          const struct conf_node *now, struct changes *changes)
{
    char inner[CHANGE_NAME_BYTES];
    if (before->count != now->count) {
        changes_note(changes, name, now);
        return;
    }
    for (size_t i = 0; i < now->count; i++) {
        (void)snprintf(inner, sizeof inner, "%s[%zu]", name, i); /* a long one is cut */
        compare(inner, before->items[i], now->items[i], changes);
    }
}

static void compare(const char *name, const struct conf_node *before, const struct conf_node *now,
                    struct changes *changes)
{
    if (before->type != now->type) {
        changes_note(changes, name, now);
    } else if (now->type == CONF_MAP) {
        compare_maps(name, before, now, changes);
    } else if (now->type == CONF_LIST) {
        compare_lists(name, before, now, changes);
    } else if (strcmp(before->text, now->text) != 0 || before->quoted != now->quoted) {
        changes_note(changes, name, now);
    }
}

void changes_find(const struct conf_node *before, const struct conf_node *now,
                  struct changes *changes)
{
    compare_maps("", before, now, changes);
}

void changes_find_in(const char *name, const struct conf_node *before, const struct conf_node *now,
                     struct changes *changes)
{
    compare_maps(name, before, now, changes);
}
