/* Reading again what may change while the gateway serves (settings.h), whole or not at all. Files are read on a worker
 * thread: the loops go on meanwhile. */
#include "gateway/gateway.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/changes.h"
#include "gateway/named_model.h"
#include "loop/loop.h"

#include <stdio.h>
#include <string.h>

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

struct names { /* counted; as many are named as a line holds */
    size_t count;
    struct buf text;
};

struct differences { /* between what was in force and what is */
    struct names added, removed, changed;
};

static void names_add(struct names *names, const char *name)
{
    names->count++;
    if (names->text.len < LOG_VALUE_BYTES) {
        (void)buf_printf(&names->text, "%s%s", names->text.len > 0 ? ", " : "", name); /* small */
    }
}

/* "added=1 added_names=a", with `of` before both keys. */
static void names_log(struct log_line *line, const char *of, const char *what, struct names *names)
{
    char key[40];
    (void)snprintf(key, sizeof key, "%s%s", of, what); /* fits */
    log_int(line, key, (int64_t)names->count);
    if (names->count > 0) {
        (void)snprintf(key, sizeof key, "%s%s_names", of, what); /* fits */
        log_str(line, key, buf_str(&names->text));
    }
    buf_clear(&names->text);
}

static void differences_log(struct log_line *line, const char *of, struct differences *found)
{
    names_log(line, of, "added", &found->added);
    names_log(line, of, "removed", &found->removed);
    names_log(line, of, "changed", &found->changed);
}

/* Keys are the same where their hash is. */
static void keys_compare(const struct key_set *before, const struct key_set *now,
                         struct differences *ret)
{
    for (size_t i = 0; i < now->count; i++) {
        const struct auth_key *key = &now->keys[i], *old = keys_find(before, key->sha256);
        if (old == NULL) {
            names_add(&ret->added, key->name);
        } else if (!keys_alike(old, key)) {
            names_add(&ret->changed, key->name);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        if (keys_find(now, before->keys[i].sha256) == NULL) {
            names_add(&ret->removed, before->keys[i].name);
        }
    }
}

/* An entry of a list of the file, which is the same where its name is. */
struct named {
    const char *name;
    const struct conf_node *entry;
    const struct fetch_way *way; /* what was read of files that it names; NULL: nothing */
};

struct named_list {
    struct named (*at)(const struct settings *, size_t index);
    size_t count;
    const struct settings *settings;
};

static struct named upstream_at(const struct settings *settings, size_t index)
{
    const struct upstream *upstream = &settings->upstreams[index];
    return (struct named){upstream->name, upstream->entry, upstream->way};
}

static struct named model_at(const struct settings *settings, size_t index)
{
    return (struct named){settings->models[index].name, settings->models[index].entry, NULL};
}

/* Without an entry: it is not there. */
static struct named find_named(const struct named_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        struct named one = list->at(list->settings, i);
        if (strcmp(one.name, name) == 0) {
            return one;
        }
    }
    return (struct named){0};
}

static bool named_alike(const struct named *a, const struct named *b)
{
    struct changes changes = {0};
    changes_find_in("entry", a->entry, b->entry, &changes);
    return changes.count == 0 && fetch_way_id(a->way) == fetch_way_id(b->way);
}

static struct differences lists_compare(const struct named_list *before,
                                        const struct named_list *now)
{
    struct differences ret = {0};
    for (size_t i = 0; i < now->count; i++) {
        struct named one = now->at(now->settings, i);
        struct named old = find_named(before, one.name);
        if (old.entry == NULL) {
            names_add(&ret.added, one.name);
        } else if (!named_alike(&old, &one)) {
            names_add(&ret.changed, one.name);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        struct named one = before->at(before->settings, i);
        if (find_named(now, one.name).entry == NULL) {
            names_add(&ret.removed, one.name);
        }
    }
    return ret;
}

static void taken_log(const struct settings *before, const struct settings *now)
{
    const struct named_list upstreams[] = {{upstream_at, before->upstreams_count, before},
                                           {upstream_at, now->upstreams_count, now}};
    const struct named_list models[] = {{model_at, before->models_count, before},
                                        {model_at, now->models_count, now}};
    struct differences keys = {0}, of_upstreams = lists_compare(&upstreams[0], &upstreams[1]),
                       of_models = lists_compare(&models[0], &models[1]);
    keys_compare(&before->keys, &now->keys, &keys);
    struct log_line line;
    log_begin(&line, SG_INFO, "reloaded");
    log_int(&line, "keys", (int64_t)now->keys.count);
    differences_log(&line, "", &keys);
    log_int(&line, "upstreams", (int64_t)now->upstreams_count);
    differences_log(&line, "upstreams_", &of_upstreams);
    log_int(&line, "models", (int64_t)now->models_count);
    differences_log(&line, "models_", &of_models);
    log_end(&line);
}

/* ---- doing it ---- */

/* Where a certificate has come or gone a restart is needed: what the addresses have stays. */
static void keep_tls(const struct config *config, const struct settings *before,
                     struct settings *now)
{
    if ((now->tls != NULL) != config->server.has_tls) {
        http_tls_unref(now->tls);
        now->tls = before->tls == NULL ? NULL : http_tls_ref(before->tls);
    }
}

void gateway_reload(struct gateway *gateway)
{
    struct reload reload = {.config = gateway->config};
    struct sg_error err = {0};
    int rc = fiber_blocking(reload_read, &reload, &err);
    if (rc != 0) { /* no thread takes it now */
        conf_problem(&reload.problems, NULL, "%s", err.message);
    }
    if (reload.problems.count > 0) {
        atomic_store(&gateway->reload_failed_unix_ms, clock_unix_ms());
        problems_log(&reload.problems);
    } else {
        changes_log(gateway->config, &reload.changes);
    }
    if (reload.settings != NULL) {
        atomic_store(&gateway->reload_failed_unix_ms, 0);
        reload.settings->pending = reload.changes;
        struct settings *before = settings_take(&gateway->settings);
        struct settings *now = settings_ref(reload.settings);
        if (keys_open_admin(&now->keys)) { /* before it can be asked for */
            atomic_store(&gateway->admin_by_key, true);
        }
        keep_tls(gateway->config, before, now);
        settings_put_in_force(&gateway->settings, TAKE(reload.settings), gateway->quotas,
                              gateway->upstream_states);
        if (now->tls != before->tls) {
            http_server_set_tls(gateway->server, now->tls);
            config_tls_log(now->tls);
        }
        taken_log(before, now);
        settings_unref(before);
        settings_unref(now);
    }
    conf_problems_clear(&reload.problems);
}
