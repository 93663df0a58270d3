/* The sections whose entries name plugins: upstreams, sandboxes, searches, interceptors. Each entry is read by two
 * tables: the core's keys, and the plugin's options. */
#include "gateway/setup.h"
#include "gateway/setup_options.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All of it is the configuration's, which outlives the settings that name it. */
struct instance *setup_instance(struct setup *s, const struct conf_node *entry,
                                enum plugin_kind kind, const char *plugin_name, const char *name)
{
    const struct conf_node *at = conf_get(entry, "plugin");
    const struct plugin_file *file;
    struct sg_error err = {0};
    if (loader_load(s->making->loader, plugin_name, &file, &err) != 0) {
        conf_problem(s->problems, at, "%s", err.message);
        return NULL;
    }
    const struct sg_plugin *plugin = plugin_of_kind(file, kind);
    if (plugin == NULL) {
        conf_problem(s->problems, at, "plugin '%s' has no %s in it (it is loaded from %s)",
                     plugin_name, plugin_kind_names[kind], file->path);
        return NULL;
    }
    struct arena *arena = s->making->arena;
    struct instance *instance = arena_get(arena, sizeof *instance);
    void *config = arena_get(arena, plugin->config_size + 1);
    static const struct sg_option none[] = {{0}};
    conf_fill(plugin->options != NULL ? plugin->options : none, entry, entry, plugin_reserved(kind),
              name, config, arena, s->problems);
    *instance = (struct instance){.name = arena_copy(arena, str_of(name)),
                                  .plugin = plugin,
                                  .sizes = file->set->sizes,
                                  .sizes_count = file->set->sizes_count,
                                  .config = config,
                                  .entry = entry,
                                  .libexec_dir = file->libexec_dir};
    loader_bind_host(file, host_table());
    s->making->instances[s->making->instances_count++] = instance;
    return instance;
}

static void read_sandbox(struct setup *s, const struct conf_node *entry, size_t index)
{
    (void)index; /* each is known by its name */
    struct sandbox_text text = {0};
    size_t found = conf_fill(sandbox_options, entry, entry,
                             setup_keys_beside(sandbox_options, entry, s->arena), "sandboxes",
                             &text, s->arena, s->problems);
    if (found > 0 || !setup_name_usable(s, entry, text.name)) {
        return;
    }
    struct sandbox *sandbox = &s->making->sandboxes[s->making->sandboxes_count++];
    *sandbox = (struct sandbox){
        .name = text.name, .run_timeout_ms = text.run_timeout_ms, .keep_ms = text.keep_ms};
    sandbox->instance = setup_instance(s, entry, PLUGIN_SANDBOX, text.plugin, text.name);
}

static void read_search(struct setup *s, const struct conf_node *entry, size_t index)
{
    (void)index; /* each is known by its name */
    struct search_text text = {0};
    size_t found =
        conf_fill(search_options, entry, entry, setup_keys_beside(search_options, entry, s->arena),
                  "searches", &text, s->arena, s->problems);
    if (found > 0 || !setup_name_usable(s, entry, text.name)) {
        return;
    }
    struct search *search = &s->making->searches[s->making->searches_count++];
    *search = (struct search){.name = text.name,
                              .timeout_ms = text.search_timeout_ms,
                              .cache_ms = text.cache_ms,
                              .max_per_request = text.max_per_request,
                              .per_minute = text.per_minute};
    search->instance = setup_instance(s, entry, PLUGIN_SEARCH, text.plugin, text.name);
}

/* `offer`: requested, always, or { models: [...] }. */
static void read_offer(struct setup *s, const struct conf_node *entry, struct interceptor *to)
{
    const struct conf_node *node = conf_get(entry, "offer");
    static const char *const none[] = {NULL};
    to->offer_models = none;
    if (node == NULL || (node->type == CONF_SCALAR && strcmp(node->text, "requested") == 0)) {
        return;
    }
    if (node->type == CONF_SCALAR && strcmp(node->text, "always") == 0) {
        to->offer = OFFER_ALWAYS;
        return;
    }
    struct offer_text {
        const char *const *models;
    } text = {0};
    static const struct sg_option options[] = {
        {.name = "models",
         .type = SG_STRINGS,
         .flags = SG_REQUIRED,
         SG_FIELD(struct offer_text, models),
         .help = "Models for which the tool is always offered."},
        {0},
    };
    if (node->type != CONF_MAP) {
        conf_problem(s->problems, node,
                     "interceptors: 'offer' must be requested, always or { models: [ … ] }");
    } else if (conf_fill(options, node, node, NULL, "offer", &text, s->arena, s->problems) == 0) {
        to->offer = OFFER_MODELS;
        to->offer_models = text.models;
    }
}

static const struct sandbox *find_sandbox(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->sandboxes_count; i++) {
        if (strcmp(config->sandboxes[i].name, name) == 0) {
            return &config->sandboxes[i];
        }
    }
    return NULL;
}

static const struct search *find_search(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->searches_count; i++) {
        if (strcmp(config->searches[i].name, name) == 0) {
            return &config->searches[i];
        }
    }
    return NULL;
}

static void check_references(struct setup *s, const struct conf_node *entry,
                             const struct interceptor_text *text, struct interceptor *to)
{
    const struct config *config = s->config;
    if (text->sandbox != NULL) {
        to->sandbox = find_sandbox(config, text->sandbox);
        if (to->sandbox == NULL) {
            conf_problem(s->problems, conf_get(entry, "sandbox"),
                         "interceptors: there is no sandbox '%s'%s", text->sandbox,
                         setup_suggestion(s, text->sandbox, config->sandboxes,
                                          config->sandboxes_count, sizeof *config->sandboxes));
        }
    }
    if (text->search != NULL) {
        to->search = find_search(config, text->search);
        if (to->search == NULL) {
            conf_problem(s->problems, conf_get(entry, "search"),
                         "interceptors: there is no search '%s'%s", text->search,
                         setup_suggestion(s, text->search, config->searches, config->searches_count,
                                          sizeof *config->searches));
        }
    }
    setup_check_upstream_names(s, text->upstreams, conf_get(entry, "upstreams"));
}

static bool is_one_of(const char *hosted, const char *const *kinds)
{
    while (hosted != NULL && *kinds != NULL && strcmp(hosted, *kinds) != 0) {
        kinds++;
    }
    return hosted != NULL && *kinds != NULL;
}

/* A tool that answers hosted code or files needs a sandbox, one that answers web search a search. Each is said once. */
static void check_needs(struct setup *s, const struct conf_node *entry,
                        const struct interceptor *interceptor)
{
    static const char *const of_sandbox[] = {"code_interpreter", "bash_code_execution",
                                             "text_editor_code_execution", NULL};
    static const char *const of_search[] = {"web_search", NULL};
    const struct sg_tool *tool = interceptor->instance->plugin->interceptor->tools;
    bool needs_sandbox = false, needs_search = false;
    for (; tool != NULL && tool->name != NULL; tool++) {
        needs_sandbox = needs_sandbox || is_one_of(tool->hosted, of_sandbox);
        needs_search = needs_search || is_one_of(tool->hosted, of_search);
    }
    if (needs_sandbox && interceptor->sandbox == NULL && conf_get(entry, "sandbox") == NULL) {
        conf_problem(s->problems, entry, "interceptors: '%s' needs 'sandbox: NAME'",
                     interceptor->name);
    }
    if (needs_search && interceptor->search == NULL && conf_get(entry, "search") == NULL) {
        conf_problem(s->problems, entry, "interceptors: '%s' needs 'search: NAME'",
                     interceptor->name);
    }
}

static void read_interceptor(struct setup *s, const struct conf_node *entry, size_t index)
{
    (void)index; /* each is known by its name */
    struct interceptor_text text = {0};
    size_t found = conf_fill(interceptor_options, entry, entry,
                             setup_keys_beside(interceptor_options, entry, s->arena),
                             "interceptors", &text, s->arena, s->problems);
    if (found > 0) {
        return;
    }
    const char *name = text.name != NULL ? text.name : text.plugin;
    struct interceptor *interceptor = &s->making->interceptors[s->making->interceptors_count];
    *interceptor = (struct interceptor){.name = name,
                                        .upstreams = text.upstreams,
                                        .tool_name = text.tool_name,
                                        .show_runs = text.show_runs};
    size_t instances = s->making->instances_count;
    interceptor->instance = setup_instance(s, entry, PLUGIN_INTERCEPTOR, text.plugin, name);
    read_offer(s, entry, interceptor);
    check_references(s, entry, &text, interceptor);
    if (interceptor->instance != NULL) {
        check_needs(s, entry, interceptor);
    }
    if (text.enabled) {
        s->making->interceptors_count++;
    } else {
        s->making->instances_count = instances; /* checked, but never opened */
    }
}

/* Folders of plugins: the configured ones (relative to the file), then the installed one. */
static const char *const *plugin_folders(struct setup *s, size_t *ret_count)
{
    const struct config *config = s->config;
    size_t count = 0;
    while (config->server.plugin_path != NULL && config->server.plugin_path[count] != NULL) {
        count++;
    }
    const char **folders = arena_get(s->arena, (count + 2) * sizeof *folders);
    for (size_t i = 0; i < count; i++) {
        folders[i] = config_path(config->file, config->server.plugin_path[i], s->arena);
    }
    const char *installed = loader_installed_folder(s->arena);
    if (installed != NULL) {
        folders[count++] = installed;
    }
    *ret_count = count;
    return folders;
}

size_t config_read_plugins(struct config *config, const struct conf_node *root,
                           struct conf_problems *problems)
{
    struct setup s = {.config = config,
                      .making = config,
                      .settings = config->settings,
                      .arena = config->arena,
                      .problems = problems};
    size_t before = problems->count, folders_count = 0;
    const char *const *folders = plugin_folders(&s, &folders_count);
    config->loader = loader_new(folders, folders_count);
    size_t upstreams = setup_count(root, "upstreams"), sandboxes = setup_count(root, "sandboxes"),
           searches = setup_count(root, "searches"),
           interceptors = setup_count(root, "interceptors");
    config->sandboxes = arena_get(s.arena, (sandboxes + 1) * sizeof *config->sandboxes);
    config->searches = arena_get(s.arena, (searches + 1) * sizeof *config->searches);
    config->interceptors = arena_get(s.arena, (interceptors + 1) * sizeof *config->interceptors);
    config->instances = arena_get(s.arena, (upstreams + sandboxes + searches + interceptors + 1) *
                                               sizeof(struct instance *));
    setup_upstreams(&s, root);
    setup_models(&s, root);
    setup_section(&s, root, "sandboxes", read_sandbox);
    setup_section(&s, root, "searches", read_search);
    setup_section(&s, root, "interceptors", read_interceptor);
    setup_names_unique(&s, root, "sandboxes");
    setup_names_unique(&s, root, "searches");
    return problems->count - before;
}
