/* The sections whose entries name plugins: upstreams, sandboxes, searches, interceptors. Each entry is read by two
 * tables: the core's keys, and the plugin's options. */
#include "gateway/setup_options.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setup {
    struct config *config;
    struct arena *arena;
    struct conf_problems *problems;
};

/* Names of a map's keys that the table does not know: left to the other table. */
static const char *const *keys_not_in(const struct sg_option *table, const struct conf_node *map,
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

/* Loads the plugin that an entry names, fills its options, and makes an instance, yet to be opened. */
static struct instance *make_instance(struct setup *s, const struct conf_node *entry,
                                      enum plugin_kind kind, const char *plugin_name,
                                      const char *name)
{
    const struct conf_node *at = conf_get(entry, "plugin");
    const struct plugin_file *file;
    struct sg_error err = {0};
    if (loader_load(s->config->loader, plugin_name, &file, &err) != 0) {
        conf_problem(s->problems, at, "%s", err.message);
        return NULL;
    }
    const struct sg_plugin *plugin = plugin_of_kind(file, kind);
    if (plugin == NULL) {
        conf_problem(s->problems, at, "plugin '%s' has no %s in it (it is loaded from %s)",
                     plugin_name, plugin_kind_names[kind], file->path);
        return NULL;
    }
    struct instance *instance = arena_get(s->arena, sizeof *instance);
    void *config = arena_get(s->arena, plugin->config_size + 1);
    static const struct sg_option none[] = {{0}};
    conf_fill(plugin->options != NULL ? plugin->options : none, entry, entry, plugin_reserved(kind),
              name, config, s->arena, s->problems);
    *instance = (struct instance){.name = name,
                                  .plugin = plugin,
                                  .sizes = file->set->sizes,
                                  .sizes_count = file->set->sizes_count,
                                  .config = config,
                                  .libexec_dir = file->libexec_dir};
    loader_bind_host(file, host_table());
    s->config->instances[s->config->instances_count++] = instance;
    return instance;
}

static bool name_usable(struct setup *s, const struct conf_node *entry, const char *name)
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

static void check_url(struct setup *s, const struct conf_node *entry, struct upstream *upstream)
{
    size_t len = strlen(upstream->base_url);
    while (len > 0 && upstream->base_url[len - 1] == '/') {
        len--;
    }
    struct str url = {upstream->base_url, len};
    upstream->base_url = arena_copy(s->arena, url);
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

static void read_upstream(struct setup *s, const struct conf_node *entry)
{
    struct upstream_text text = {0};
    const char *plugin = NULL;
    const struct conf_node *plugin_node = conf_get(entry, "plugin");
    const char *const *others = NULL;
    if (plugin_node != NULL) {
        others = keys_not_in(upstream_options, entry, s->arena);
    }
    size_t found = conf_fill(upstream_options, entry, entry, others, "upstreams", &text, s->arena,
                             s->problems);
    plugin = text.plugin;
    if (found > 0 || !name_usable(s, entry, text.name)) {
        return;
    }
    struct upstream *upstream = &s->config->upstreams[s->config->upstreams_count];
    *upstream = (struct upstream){.name = text.name,
                                  .base_url = text.base_url,
                                  .api_key = text.api_key,
                                  .passthrough = text.passthrough,
                                  .models = text.models,
                                  .surfaces = text.surfaces,
                                  .drop_params = text.drop_params,
                                  .replay = strcmp(text.stream, "replay") == 0,
                                  .last_removes = strcmp(text.last_turn, "remove") == 0,
                                  .other_tools =
                                      strcmp(text.other_tools, "drop") == 0     ? OTHER_TOOLS_DROP
                                      : strcmp(text.other_tools, "reject") == 0 ? OTHER_TOOLS_REJECT
                                                                                : OTHER_TOOLS_PASS,
                                  .encrypted_reasoning = text.encrypted_reasoning,
                                  .usage_last = strcmp(text.usage, "last") == 0,
                                  .connect_ms = text.connect_ms,
                                  .first_byte_ms = text.first_byte_ms,
                                  .silence_ms = text.silence_ms};
    if ((plugin != NULL) == (text.base_url != NULL)) {
        conf_problem(s->problems, entry,
                     "upstream '%s' needs exactly one of 'base_url' and 'plugin'", text.name);
        return;
    }
    check_surfaces(s, entry, upstream);
    const char *problem = text.api_key != NULL ? config_key_problem(text.api_key) : NULL;
    if (problem != NULL) {
        conf_problem(s->problems, conf_get(entry, "api_key"), "upstream '%s': 'api_key' %s%s",
                     text.name, problem,
                     text.api_key[0] == '\0' ? "; leave it out where none is wanted" : "");
    }
    check_passthrough(s, entry, upstream);
    upstream_read_way(&text, entry, s->config->file, upstream, s->arena, s->problems);
    if (plugin != NULL) {
        upstream->instance = make_instance(s, entry, PLUGIN_UPSTREAM, plugin, text.name);
    } else {
        check_url(s, entry, upstream);
    }
    s->config->upstreams_count++;
}

static void read_sandbox(struct setup *s, const struct conf_node *entry)
{
    struct sandbox_text text = {0};
    size_t found =
        conf_fill(sandbox_options, entry, entry, keys_not_in(sandbox_options, entry, s->arena),
                  "sandboxes", &text, s->arena, s->problems);
    if (found > 0 || !name_usable(s, entry, text.name)) {
        return;
    }
    struct sandbox *sandbox = &s->config->sandboxes[s->config->sandboxes_count++];
    *sandbox = (struct sandbox){
        .name = text.name, .run_timeout_ms = text.run_timeout_ms, .keep_ms = text.keep_ms};
    sandbox->instance = make_instance(s, entry, PLUGIN_SANDBOX, text.plugin, text.name);
}

static void read_search(struct setup *s, const struct conf_node *entry)
{
    struct search_text text = {0};
    size_t found =
        conf_fill(search_options, entry, entry, keys_not_in(search_options, entry, s->arena),
                  "searches", &text, s->arena, s->problems);
    if (found > 0 || !name_usable(s, entry, text.name)) {
        return;
    }
    struct search *search = &s->config->searches[s->config->searches_count++];
    *search = (struct search){.name = text.name,
                              .timeout_ms = text.search_timeout_ms,
                              .cache_ms = text.cache_ms,
                              .max_per_request = text.max_per_request,
                              .per_minute = text.per_minute};
    search->instance = make_instance(s, entry, PLUGIN_SEARCH, text.plugin, text.name);
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

/* "did you mean 'x'?" or what there is, among names at the start of structs of a size. */
static const char *suggestion(struct setup *s, const char *wanted, const void *first, size_t count,
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

static void check_references(struct setup *s, const struct conf_node *entry,
                             const struct interceptor_text *text, struct interceptor *to)
{
    const struct config *config = s->config;
    if (text->sandbox != NULL) {
        to->sandbox = find_sandbox(config, text->sandbox);
        if (to->sandbox == NULL) {
            conf_problem(s->problems, conf_get(entry, "sandbox"),
                         "interceptors: there is no sandbox '%s'%s", text->sandbox,
                         suggestion(s, text->sandbox, config->sandboxes, config->sandboxes_count,
                                    sizeof *config->sandboxes));
        }
    }
    if (text->search != NULL) {
        to->search = find_search(config, text->search);
        if (to->search == NULL) {
            conf_problem(s->problems, conf_get(entry, "search"),
                         "interceptors: there is no search '%s'%s", text->search,
                         suggestion(s, text->search, config->searches, config->searches_count,
                                    sizeof *config->searches));
        }
    }
    for (const char *const *name = text->upstreams; *name != NULL; name++) {
        bool known = false;
        for (size_t i = 0; i < config->upstreams_count; i++) {
            known = known || strcmp(config->upstreams[i].name, *name) == 0;
        }
        if (!known) {
            conf_problem(s->problems, conf_get(entry, "upstreams"),
                         "interceptors: there is no upstream '%s'%s", *name,
                         suggestion(s, *name, config->upstreams, config->upstreams_count,
                                    sizeof *config->upstreams));
        }
    }
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

static void read_interceptor(struct setup *s, const struct conf_node *entry)
{
    struct interceptor_text text = {0};
    size_t found = conf_fill(interceptor_options, entry, entry,
                             keys_not_in(interceptor_options, entry, s->arena), "interceptors",
                             &text, s->arena, s->problems);
    if (found > 0) {
        return;
    }
    const char *name = text.name != NULL ? text.name : text.plugin;
    struct interceptor *interceptor = &s->config->interceptors[s->config->interceptors_count];
    *interceptor = (struct interceptor){.name = name,
                                        .upstreams = text.upstreams,
                                        .tool_name = text.tool_name,
                                        .show_runs = text.show_runs};
    size_t instances = s->config->instances_count;
    interceptor->instance = make_instance(s, entry, PLUGIN_INTERCEPTOR, text.plugin, name);
    read_offer(s, entry, interceptor);
    check_references(s, entry, &text, interceptor);
    if (interceptor->instance != NULL) {
        check_needs(s, entry, interceptor);
    }
    if (text.enabled) {
        s->config->interceptors_count++;
    } else {
        s->config->instances_count = instances; /* checked, but never opened */
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

static size_t count_entries(const struct conf_node *root, const char *section)
{
    const struct conf_node *list = conf_get(root, section);
    return list != NULL && list->type == CONF_LIST ? list->count : 0;
}

static void names_unique(struct setup *s, const struct conf_node *root, const char *section)
{
    const struct conf_node *list = conf_get(root, section);
    size_t count = count_entries(root, section);
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

/* In mode passthrough the other upstreams are out of reach: with none left, so is the gateway. */
static void check_open(struct setup *s, const struct conf_node *root)
{
    const struct config *config = s->config;
    bool is_open = config->auth.mode != AUTH_PASSTHROUGH || config->upstreams_count == 0;
    for (size_t i = 0; i < config->upstreams_count; i++) {
        is_open = is_open || config->upstreams[i].passthrough;
    }
    if (!is_open) {
        conf_problem(s->problems, conf_get(root, "auth"),
                     "auth: mode 'passthrough' reaches no upstream: mark those that take their "
                     "clients' own keys with 'passthrough: true'");
    }
}

typedef void entry_reader(struct setup *, const struct conf_node *);

static void read_section(struct setup *s, const struct conf_node *root, const char *section,
                         entry_reader *read)
{
    const struct conf_node *list = NULL;
    size_t count = section_entries(s, root, section, &list);
    for (size_t i = 0; i < count; i++) {
        if (is_map(s, list->items[i], section)) {
            read(s, list->items[i]);
        }
    }
}

size_t config_read_plugins(struct config *config, const struct conf_node *root,
                           struct conf_problems *problems)
{
    struct setup s = {config, config->arena, problems};
    size_t before = problems->count, folders_count = 0;
    const char *const *folders = plugin_folders(&s, &folders_count);
    config->loader = loader_new(folders, folders_count);
    size_t upstreams = count_entries(root, "upstreams"),
           sandboxes = count_entries(root, "sandboxes"), searches = count_entries(root, "searches"),
           interceptors = count_entries(root, "interceptors");
    config->upstreams = arena_get(s.arena, (upstreams + 1) * sizeof *config->upstreams);
    config->sandboxes = arena_get(s.arena, (sandboxes + 1) * sizeof *config->sandboxes);
    config->searches = arena_get(s.arena, (searches + 1) * sizeof *config->searches);
    config->interceptors = arena_get(s.arena, (interceptors + 1) * sizeof *config->interceptors);
    config->instances = arena_get(s.arena, (upstreams + sandboxes + searches + interceptors + 1) *
                                               sizeof(struct instance *));
    read_section(&s, root, "upstreams", read_upstream);
    read_section(&s, root, "sandboxes", read_sandbox);
    read_section(&s, root, "searches", read_search);
    read_section(&s, root, "interceptors", read_interceptor);
    check_open(&s, root);
    names_unique(&s, root, "upstreams");
    names_unique(&s, root, "sandboxes");
    names_unique(&s, root, "searches");
    if (upstreams == 0) {
        conf_problem(problems, root, "there is no upstream: add one under 'upstreams:'");
    }
    return problems->count - before;
}
