/* Reading again what may change while the gateway serves (settings.h), whole or not at all. Files are read on a worker
 * thread: the loops go on meanwhile. */
#include "gateway/gateway.h"

#include "base/check.h"
#include "base/log.h"
#include "gateway/changes.h"
#include "loop/loop.h"

#include <stdio.h>

struct reload {
    const struct config *config;
    struct settings
        *settings; /* NULL: what was read cannot be taken, or there is nothing to take */
    struct conf_problems problems;
    struct changes changes;
};

static int reload_read(void *arg)
{
    struct reload *reload = arg;
    reload->settings = config_read_settings(reload->config, &reload->problems, &reload->changes);
    return 0;
}

/* ---- what is said of it ---- */

/* "keys.yaml:3:5: what is wrong": place and message apart, since each value of a line is cut by itself. */
static void problem_log(struct str problem)
{
    const char *colon = memmem(problem.data, problem.len, ": ", 2);
    size_t place = colon == NULL ? 0 : (size_t)(colon - problem.data);
    size_t skip = colon == NULL ? 0 : place + 2;
    struct log_line line;
    log_begin(&line, SG_ERROR, "reload_problem");
    log_str(&line, "place", (struct str){problem.data, place});
    log_str(&line, "message", (struct str){problem.data + skip, problem.len - skip});
    log_end(&line);
}

static void problems_log(const struct conf_problems *problems)
{
    for (const char *at = problems->text.data; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        problem_log((struct str){at, len});
        at += len + (at[len] == '\n');
    }
    struct log_line line;
    log_begin(&line, SG_ERROR, "reload_failed");
    log_int(&line, "problems", (int64_t)problems->count);
    log_text(&line, "message", "nothing was changed: what was read before stays in force");
    log_end(&line);
}

static void changes_log(const struct config *config, const struct changes *changes)
{
    struct log_line line;
    for (size_t i = 0; i < changes->count && i < CHANGES_MAX; i++) {
        const struct change *change = &changes->changes[i];
        char place[300];
        (void)snprintf(place, sizeof place, "%.250s:%d:%d", config->file, change->line,
                       change->column); /* fits */
        log_begin(&line, SG_WARN, "needs_restart");
        log_text(&line, "place", place);
        log_text(&line, "option", change->name);
        log_end(&line);
    }
    if (changes->count > CHANGES_MAX) {
        log_begin(&line, SG_WARN, "needs_restart");
        log_int(&line, "more", (int64_t)(changes->count - CHANGES_MAX));
        log_end(&line);
    }
}

struct names { /* of keys, counted; as many are named as a line holds */
    size_t count;
    struct buf text;
};

static void names_add(struct names *names, const struct auth_key *key)
{
    names->count++;
    if (names->text.len < LOG_VALUE_BYTES) {
        (void)buf_printf(&names->text, "%s%s", names->text.len > 0 ? ", " : "",
                         key->name); /* small */
    }
}

static void names_log(struct log_line *line, const char *count, const char *text,
                      struct names *names)
{
    log_int(line, count, (int64_t)names->count);
    if (names->count > 0) {
        log_str(line, text, buf_str(&names->text));
    }
    buf_clear(&names->text);
}

/* Keys are the same where their hash is. */
static void taken_log(const struct key_set *before, const struct key_set *now)
{
    struct names added = {0}, removed = {0}, changed = {0};
    for (size_t i = 0; i < now->count; i++) {
        const struct auth_key *key = &now->keys[i], *old = keys_find(before, key->sha256);
        if (old == NULL) {
            names_add(&added, key);
        } else if (!keys_alike(old, key)) {
            names_add(&changed, key);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        if (keys_find(now, before->keys[i].sha256) == NULL) {
            names_add(&removed, &before->keys[i]);
        }
    }
    struct log_line line;
    log_begin(&line, SG_INFO, "reloaded");
    log_int(&line, "keys", (int64_t)now->count);
    names_log(&line, "added", "added_names", &added);
    names_log(&line, "removed", "removed_names", &removed);
    names_log(&line, "changed", "changed_names", &changed);
    log_end(&line);
}

/* ---- doing it ---- */

void gateway_reload(struct gateway *gateway)
{
    struct reload reload = {.config = gateway->config};
    struct sg_error err = {0};
    int rc = fiber_blocking(reload_read, &reload, &err);
    if (rc != 0) { /* no thread takes it now */
        conf_problem(&reload.problems, NULL, "%s", err.message);
    }
    if (reload.problems.count > 0) {
        problems_log(&reload.problems);
    } else {
        changes_log(gateway->config, &reload.changes);
    }
    if (reload.settings != NULL) {
        struct settings *before = settings_take(&gateway->settings);
        struct settings *now = settings_ref(reload.settings);
        settings_put_in_force(&gateway->settings, TAKE(reload.settings), gateway->quotas);
        taken_log(&before->keys, &now->keys);
        settings_unref(before);
        settings_unref(now);
    }
    conf_problems_clear(&reload.problems);
}
