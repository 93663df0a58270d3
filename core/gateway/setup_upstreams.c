/* The section `upstreams`: model servers, and plugins that answer in their place. It is read at the start and again while the
 * gateway serves, when the plugins stay as they are: what would change them is told as needing a restart. */
#include "gateway/setup.h"
#include "gateway/setup_options.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static void check_url(struct setup *s, const struct conf_node *entry, struct upstream *upstream)
{
    size_t len = strlen(upstream->base_url);
    while (len > 0 && upstream->base_url[len - 1] == '/') {
        len--;
    }
    struct str url = {upstream->base_url, len};
    upstream->base_url = arena_copy(s->settings->arena, url);
    config_check_url(upstream, conf_get(entry, "base_url"), s->problems);
}

static void check_surfaces(struct setup *s, const struct conf_node *entry,
                           const struct upstream *upstream)
{
    static const char *const known[] = {"chat", "responses", "messages", NULL};
    for (const char *const *surface = upstream->surfaces; *surface != NULL; surface++) {
        if (!list_has(known, str_of(*surface))) {
            conf_problem(s->problems, conf_get(entry, "surfaces"),
                         "upstream '%s': 'surfaces' may hold chat, responses and messages, not "
                         "'%s'",
                         upstream->name, *surface);
        }
    }
}

/* Whose key goes up must be plain: the operator's, or, where clients bring theirs, the client's. */
static void check_passthrough(struct setup *s, const struct conf_node *entry,
                              const struct upstream *upstream)
{
    const char *problem =
        !upstream->passthrough ? NULL
        : s->config->auth.mode != AUTH_PASSTHROUGH
            ? "means something in auth mode 'passthrough' only: elsewhere the client's key is the "
              "gateway's"
        : upstream->api_key != NULL
            ? "sends the client's key, and 'api_key' is yours: leave one out"
        : upstream->base_url == NULL ? "needs a 'base_url': a plugin gets no key"
                                     : NULL;
    if (problem != NULL) {
        conf_problem(s->problems, conf_get(entry, "passthrough"), "upstream '%s': 'passthrough' %s",
                     upstream->name, problem);
    }
}

/* ---- plugins, once they are open ---- */

/* The entry of that name that the start read; NULL: there was none. */
static const struct conf_node *entry_at_start(const struct setup *s, const char *name)
{
    const struct conf_node *list = conf_get(s->config->root, "upstreams");
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct conf_node *known = conf_get(list->items[i], "name");
        if (known != NULL && strcmp(known->text, name) == 0) {
            return list->items[i];
        }
    }
    return NULL;
}

static struct instance *instance_at_start(const struct setup *s, const char *name)
{
    for (size_t i = 0; i < s->config->instances_count; i++) {
        struct instance *instance = s->config->instances[i];
        if (instance->plugin->upstream != NULL && strcmp(instance->name, name) == 0) {
            return instance;
        }
    }
    return NULL;
}

/* What of an entry is the plugin's. */
static const struct conf_node *plugin_part(struct setup *s, const struct conf_node *entry)
{
    const char *const *keys = setup_keys_beside(upstream_options, entry, s->arena);
    struct conf_node *part = arena_get(s->arena, sizeof *part);
    *part = (struct conf_node){.type = CONF_MAP, .line = entry->line, .column = entry->column};
    part->keys = arena_get(s->arena, (entry->count + 1) * sizeof(struct conf_node *));
    part->items = arena_get(s->arena, (entry->count + 1) * sizeof(struct conf_node *));
    for (size_t i = 0; i < entry->count; i++) {
        if (list_has(keys, str_of(entry->keys[i]->text))) {
            part->keys[part->count] = entry->keys[i];
            part->items[part->count++] = entry->items[i];
        }
    }
    return part;
}

/* The instance that was made of an entry at the start, with the options that it had then; NULL: there is none. */
static struct instance *instance_kept(struct setup *s, const struct conf_node *entry, size_t index,
                                      const char *plugin, const char *name)
{
    char at[CHANGE_NAME_BYTES];
    const struct conf_node *before = entry_at_start(s, name);
    const struct conf_node *of_before = conf_get(before, "plugin");
    struct instance *instance = instance_at_start(s, name);
    (void)snprintf(at, sizeof at, "upstreams[%zu]", index); /* fits */
    if (instance == NULL || of_before == NULL || strcmp(of_before->text, plugin) != 0) {
        changes_note(s->changes, at, entry);
        s->absent[s->absent_count++] = name;
        return NULL;
    }
    changes_find_in(at, plugin_part(s, before), plugin_part(s, entry), s->changes);
    return instance;
}

/* ---- entries ---- */

static void fill_upstream(const struct upstream_text *text, struct upstream *upstream)
{
    *upstream = (struct upstream){
        .name = text->name,
        .base_url = text->base_url,
        .api_key = text->api_key,
        .passthrough = text->passthrough,
        .models = text->models,
        .surfaces = text->surfaces,
        .drop_params = text->drop_params,
        .replay = strcmp(text->stream, "replay") == 0,
        .last_removes = strcmp(text->last_turn, "remove") == 0,
        .other_tools = strcmp(text->other_tools, "drop") == 0     ? OTHER_TOOLS_DROP
                       : strcmp(text->other_tools, "reject") == 0 ? OTHER_TOOLS_REJECT
                                                                  : OTHER_TOOLS_PASS,
        .encrypted_reasoning = text->encrypted_reasoning,
        .usage_last = strcmp(text->usage, "last") == 0,
        .connect_ms = text->connect_ms,
        .first_byte_ms = text->first_byte_ms,
        .silence_ms = text->silence_ms,
        .circuit = {.failures = text->circuit_failures,
                    .open_ms = text->circuit_ms,
                    .open_ms_max = text->circuit_ms_max},
        .models_cache_ms = text->models_cache_ms};
}

static void check_key(struct setup *s, const struct conf_node *entry,
                      const struct upstream_text *text)
{
    const char *problem = text->api_key != NULL ? config_key_problem(text->api_key) : NULL;
    if (problem != NULL) {
        conf_problem(s->problems, conf_get(entry, "api_key"), "upstream '%s': 'api_key' %s%s",
                     text->name, problem,
                     text->api_key[0] == '\0' ? "; leave it out where none is wanted" : "");
    }
}

static void check_circuit(struct setup *s, const struct conf_node *entry,
                          const struct upstream *upstream)
{
    if (upstream->circuit.open_ms > upstream->circuit.open_ms_max) {
        conf_problem(s->problems, conf_at(entry, "circuit_time"),
                     "upstream '%s': 'circuit_time' is longer than 'circuit_time_max'",
                     upstream->name);
    }
}

static void read_upstream(struct setup *s, const struct conf_node *entry, size_t index)
{
    struct upstream_text text = {0};
    struct arena *arena = s->settings->arena;
    const char *const *others = conf_get(entry, "plugin") != NULL
                                    ? setup_keys_beside(upstream_options, entry, arena)
                                    : NULL;
    size_t found =
        conf_fill(upstream_options, entry, entry, others, "upstreams", &text, arena, s->problems);
    if (found > 0 || !setup_name_usable(s, entry, text.name)) {
        return;
    }
    if ((text.plugin != NULL) == (text.base_url != NULL)) {
        conf_problem(s->problems, entry,
                     "upstream '%s' needs exactly one of 'base_url' and 'plugin'", text.name);
        return;
    }
    struct upstream *upstream = &s->settings->upstreams[s->settings->upstreams_count];
    fill_upstream(&text, upstream);
    upstream->entry = entry;
    check_surfaces(s, entry, upstream);
    check_key(s, entry, &text);
    check_passthrough(s, entry, upstream);
    upstream_read_way(&text, entry, s->config->file, upstream, arena, s->problems);
    check_circuit(s, entry, upstream);
    setup_relay_paths(s, text.relay_paths, entry, upstream);
    if (text.plugin == NULL) {
        check_url(s, entry, upstream);
    } else {
        upstream->instance = s->making != NULL
                                 ? setup_instance(s, entry, PLUGIN_UPSTREAM, text.plugin, text.name)
                                 : instance_kept(s, entry, index, text.plugin, text.name);
    }
    bool is_absent = text.plugin != NULL && upstream->instance == NULL && s->making == NULL;
    s->settings->upstreams_count += !is_absent;
}

/* In mode passthrough the other upstreams are out of reach: with none left, so is the gateway. */
static void check_open(struct setup *s, const struct conf_node *root)
{
    const struct settings *settings = s->settings;
    bool is_open = s->config->auth.mode != AUTH_PASSTHROUGH || settings->upstreams_count == 0;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        is_open = is_open || settings->upstreams[i].passthrough;
    }
    if (!is_open) {
        conf_problem(s->problems, conf_get(root, "auth"),
                     "auth: mode 'passthrough' reaches no upstream: mark those that take their "
                     "clients' own keys with 'passthrough: true'");
    }
}

/* ---- the section ---- */

void setup_upstreams(struct setup *s, const struct conf_node *root)
{
    struct settings *settings = s->settings;
    size_t count = setup_count(root, "upstreams");
    settings->upstreams = arena_get(settings->arena, (count + 1) * sizeof *settings->upstreams);
    s->absent = arena_get(settings->arena, (count + 1) * sizeof *s->absent);
    setup_section(s, root, "upstreams", read_upstream);
    check_open(s, root);
    setup_check_relay_paths(s);
    setup_names_unique(s, root, "upstreams");
    if (count == 0) {
        conf_problem(s->problems, root, "there is no upstream: add one under 'upstreams:'");
    }
}

bool setup_upstream_is_absent(const struct setup *s, const char *name)
{
    bool is_absent = false;
    for (size_t i = 0; i < s->absent_count && !is_absent; i++) {
        is_absent = strcmp(s->absent[i], name) == 0;
    }
    return is_absent;
}

static bool has_upstream(const struct setup *s, const char *name)
{
    bool known = false;
    for (size_t i = 0; i < s->settings->upstreams_count && !known; i++) {
        known = strcmp(s->settings->upstreams[i].name, name) == 0;
    }
    return known || setup_upstream_is_absent(s, name);
}

void setup_check_upstream_names(struct setup *s, const char *const *names,
                                const struct conf_node *at)
{
    const struct settings *settings = s->settings;
    for (; *names != NULL; names++) {
        if (!has_upstream(s, *names)) {
            conf_problem(s->problems, at, "interceptors: there is no upstream '%s'%s", *names,
                         setup_suggestion(s, *names, settings->upstreams, settings->upstreams_count,
                                          sizeof *settings->upstreams));
        }
    }
}

/* Interceptors stay as they are; but a file whose interceptors name an upstream that it has not got could not be started
 * with, and is not taken either. */
static void check_interceptor(struct setup *s, const struct conf_node *entry, size_t index)
{
    (void)index; /* it is told by its place */
    const struct conf_node *node = conf_get(entry, "upstreams");
    const struct sg_option *option = interceptor_options;
    while (strcmp(option->name, "upstreams") != 0) {
        option++;
    }
    const char *const *names = NULL;
    if (conf_fill_one(option, node, entry, "interceptors", &names, s->arena, s->problems) == 0) {
        setup_check_upstream_names(s, names, node);
    }
}

void config_read_upstreams(const struct config *config, const struct conf_node *root,
                           struct settings *settings, struct conf_problems *problems,
                           struct changes *changes)
{
    struct setup s = {.config = config,
                      .settings = settings,
                      .arena = settings->arena,
                      .problems = problems,
                      .changes = changes};
    setup_upstreams(&s, root);
    setup_models(&s, root);
    setup_section(&s, root, "interceptors", check_interceptor);
}
