/* The configuration file's sections as tables of options, and the rules between them. What names plugins is read in
 * setup.c. All problems are collected; nothing stops at the first. */
#include "gateway/config.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "gateway/changes.h"
#include "http/admission.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BUDGET_MIN (MIB)

static const char *const section_names[] = {"server",       "auth",      "upstreams", "models",
                                            "sandboxes",    "searches",  "sessions",  "loop",
                                            "interceptors", "accounting"};

static const struct sg_option server_options[] = {
    {.name = "listen",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, listen),
     .def = "127.0.0.1:4000",
     .help = "Where to serve, one or several: ADDRESS:PORT, [IPV6]:PORT, or a Unix socket as "
             "unix:/PATH or unix:@NAME. A host name stands for all of its addresses; [::] takes "
             "IPv6 alone."},
    {.name = "plugin_path",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, plugin_path),
     .help = "Folders with plugins, searched before the installed one; relative to this file."},
    {.name = "origins",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, origins),
     .help = "Web origins that may call the gateway where authentication is off."},
    {.name = "hosts",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, hosts),
     .help = "Further names that clients may use in Host where authentication is off."},
    {.name = "forward_headers",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, forward_headers),
     .help = "Further request headers that are sent on to upstreams."},
    {.name = "request_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct server_config, request_timeout_ms),
     .def = "9m",
     .min = "1s",
     .max = "2h",
     .help = "Longest time for a whole request, all its turns and runs included."},
    {.name = "drain",
     .type = SG_DURATION,
     SG_FIELD(struct server_config, drain_ms),
     .def = "30s",
     .min = "0s",
     .max = "1h",
     .help = "How long a shutdown waits for requests in progress."},
    {.name = "workers",
     .type = SG_INT,
     SG_FIELD(struct server_config, workers),
     .def = "32",
     .min = "1",
     .max = "1024",
     .help = "Most threads for plugins' code that may block; an identity has half of them, and may "
             "run as much code at a time."},
    {.name = "memory_budget",
     .type = SG_STRING,
     SG_FIELD(struct server_config, memory_budget),
     .def = "25%",
     .help = "Most memory that requests may hold: a size, or a part of what there is, as in 25%; "
             "an identity may hold a quarter of it."},
    {.name = "metrics_open",
     .type = SG_BOOL,
     SG_FIELD(struct server_config, metrics_open),
     .def = "false",
     .help = "true: whoever reaches the address may read /metrics, without a key."},
    {.name = "socket_mode",
     .type = SG_STRING,
     SG_FIELD(struct server_config, socket_mode),
     .def = "0660",
     .help = "Mode of the files of Unix sockets: who may write to one can connect."},
    {.name = "trusted_proxies",
     .type = SG_STRINGS,
     SG_FIELD(struct server_config, trusted_proxies),
     .help = "Addresses and networks of proxies whose word on a client's address counts, for the "
             "log; 'unix' for those that come by Unix sockets."},
    {.name = "trusted_header",
     .type = SG_CHOICE,
     SG_FIELD(struct server_config, trusted_header),
     .def = "x-forwarded-for",
     .choices = "x-forwarded-for|forwarded",
     .help = "The header in which they say it; the other one is a client's, and not read."},
    {.name = "admin",
     .type = SG_STRING,
     SG_FIELD(struct server_config, admin),
     .help = "An address of its own for /metrics and /admin, as in 'listen'. Of this machine "
             "alone, unless a key has 'use: admin'; /metrics is not at 'listen' then."},
    {0},
};

static const struct sg_option sessions_options[] = {
    {.name = "idle_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct sessions_config, idle_timeout_ms),
     .def = "15m",
     .min = "1s",
     .max = "24h",
     .help = "A session's container is deleted after so long without use."},
    {.name = "per_identity",
     .type = SG_INT,
     SG_FIELD(struct sessions_config, per_identity),
     .def = "10",
     .min = "1",
     .max = "100000",
     .help = "Most session containers of one identity; the least recently used makes room."},
    {.name = "max_containers",
     .type = SG_INT,
     SG_FIELD(struct sessions_config, max_containers),
     .def = "100",
     .min = "1",
     .max = "100000",
     .help = "Most containers of one key, its users together, those without a session included."},
    {.name = "max_containers_total",
     .type = SG_INT,
     SG_FIELD(struct sessions_config, max_containers_total),
     .def = "1000",
     .min = "1",
     .max = "1000000",
     .help = "Most containers of all."},
    {.name = "id_from",
     .type = SG_STRINGS,
     SG_FIELD(struct sessions_config, id_from),
     .help = "Where the session id is read from, the first that has one: metadata.session_id, "
             "litellm_metadata.session_id (these two by default), metadata.user_id, "
             "prompt_cache_key, header:NAME."},
    {.name = "on_shutdown",
     .type = SG_CHOICE,
     SG_FIELD(struct sessions_config, on_shutdown),
     .def = "delete",
     .choices = "delete|keep",
     .help = "keep: sessions whose sandboxes outlive the gateway (e2b) go on after a restart."},
    {.name = "state_file",
     .type = SG_STRING,
     SG_FIELD(struct sessions_config, state_file),
     .help = "With keep: where they are written, in a folder that nobody else may write; relative "
             "to this file. Default: sessions.json in the folder that systemd gives "
             "(StateDirectory=)."},
    {.name = "state_every",
     .type = SG_DURATION,
     SG_FIELD(struct sessions_config, state_every_ms),
     .def = "10s",
     .min = "0s",
     .max = "1h",
     .help = "With keep: how often changes are written while it serves, for a crash loses what is "
             "newer; 0s: at the end only."},
    {0},
};

static const struct sg_option loop_options[] = {
    {.name = "max_turns",
     .type = SG_INT,
     SG_FIELD(struct loop_config, max_turns),
     .def = "10",
     .min = "2",
     .max = "100",
     .help = "Most calls of the upstream for one request; the last is made without tools."},
    {.name = "max_calls",
     .type = SG_INT,
     SG_FIELD(struct loop_config, max_calls),
     .def = "32",
     .min = "1",
     .max = "1000",
     .help = "Most tool calls run for one request, at most 8 in a turn."},
    {.name = "keep_alive",
     .type = SG_DURATION,
     SG_FIELD(struct loop_config, keep_alive_ms),
     .def = "15s",
     .min = "100ms",
     .max = "5m",
     .help = "While a tool runs, a streaming client is sent a comment this often."},
    {0},
};

bool list_has(const char *const *list, struct str name)
{
    for (; *list != NULL; list++) {
        if (str_is(name, *list)) {
            return true;
        }
    }
    return false;
}

bool model_matches(const char *pattern, struct str model)
{
    const char *star = NULL;
    size_t at = 0, resume = 0;
    while (at < model.len) { /* the usual matcher: on a mismatch the last '*' takes one more byte */
        if (*pattern == '*') {
            star = pattern++;
            resume = at;
        } else if (*pattern != '\0' && *pattern == model.data[at]) {
            pattern++;
            at++;
        } else if (star != NULL) {
            pattern = star + 1;
            at = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

static void check_sections(const struct conf_node *root, struct conf_problems *problems)
{
    for (size_t i = 0; i < root->count; i++) {
        const char *name = root->keys[i]->text;
        bool known = false;
        for (size_t k = 0; k < COUNT_OF(section_names); k++) {
            known = known || strcmp(section_names[k], name) == 0;
        }
        if (known) {
            continue;
        }
        const char *near = conf_nearest(name, section_names, COUNT_OF(section_names));
        if (near != NULL) {
            conf_problem(problems, root->keys[i], "unknown section '%s'; did you mean '%s'?", name,
                         near);
        } else {
            conf_problem(
                problems, root->keys[i],
                "unknown section '%s'; there are server, auth, upstreams, models, sandboxes, "
                "searches, sessions, loop, interceptors, accounting",
                name);
        }
    }
}

static void read_sessions(struct config *config, const struct conf_node *root,
                          struct conf_problems *problems)
{
    static const char *const usual[] = {"metadata.session_id", "litellm_metadata.session_id", NULL};
    const struct conf_node *section = conf_get(root, "sessions");
    if (conf_fill(sessions_options, section, root, NULL, "sessions", &config->sessions,
                  config->arena, problems) > 0) {
        return;
    }
    if (config->sessions.id_from[0] == NULL) {
        config->sessions.id_from = usual;
    }
    config_check_keep(config, section != NULL ? section : root, problems);
    for (const char *const *source = config->sessions.id_from; *source != NULL; source++) {
        config_check_id_source(*source, conf_get(section, "id_from"), problems);
    }
}

/* "25%" of the machine's memory, or a size. */
static bool parse_budget(const char *text, uint64_t *ret)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    long percent = strtol(text, &end, 10); /* at most LONG_MAX: compared, not multiplied */
    if (strcmp(end, "%") == 0) {
        *ret =
            percent < 1 || percent > 100 ? 0 : admission_machine_bytes() / 100 * (uint64_t)percent;
        return *ret > 0;
    }
    return conf_size(text, ret) && *ret >= MEMORY_BUDGET_MIN;
}

static void read_budget(struct config *config, const struct conf_node *section,
                        struct conf_problems *problems)
{
    struct server_config *server = &config->server;
    if (!parse_budget(server->memory_budget, &server->memory_bytes)) {
        conf_problem(
            problems, conf_get(section, "memory_budget"),
            "server: 'memory_budget' must be 1%% to 100%%, or a size of at least 1MiB such "
            "as 2GiB, not '%s'",
            server->memory_budget);
    }
}

/* What is filled stays unchecked if something of the section is wrong: it may be half of what was meant. */
static void read_server(struct config *config, const struct conf_node *root, const char *listen,
                        struct conf_problems *problems)
{
    const struct conf_node *section = conf_get(root, "server");
    static const char *const by_hand[] = {"tls", NULL};
    size_t found = conf_fill(server_options, section, root, by_hand, "server", &config->server,
                             config->arena, problems);
    if (listen != NULL) {
        const char **only = arena_get(config->arena, 2 * sizeof *only); /* ended by NULL */
        only[0] = listen;
        config->server.listen = only;
    }
    if (found == 0) {
        config_check_server(config, section != NULL ? section : root, listen != NULL, problems);
        read_budget(config, section, problems);
        config_check_proxies(config, section != NULL ? section : root, problems);
    }
}

static void settings_note_file(struct settings *settings, const struct conf_node *root)
{
    settings->root = root;
    settings->read_unix_ms = clock_unix_ms();
}

struct config *config_read(const char *path, const char *listen, bool serves,
                           struct conf_problems *problems)
{
    struct arena *arena = arena_new(0);
    struct config *config = arena_get(arena, sizeof *config);
    config->arena = arena;
    config->file = path;
    config->serves = serves;
    config->listen = listen;
    config->settings = settings_new();
    struct conf_node *root = conf_parse_file(path, arena, problems);
    if (root != NULL) {
        config->root = root;
        settings_note_file(config->settings, root);
        config->read_unix_ms = config->settings->read_unix_ms;
        check_sections(root, problems);
        auth_read(path, root, &config->auth, config->settings, problems);
        read_server(config, root, listen, problems); /* what it may be depends on auth */
        config->settings->tls = config_read_tls(path, root, arena, problems);
        config->server.has_tls = config->settings->tls != NULL;
        read_sessions(config, root, problems);
        conf_fill(loop_options, conf_get(root, "loop"), root, NULL, "loop", &config->loop, arena,
                  problems);
        accounting_read_config(path, root, &config->accounting, arena, problems);
        if (serves) {
            config_check_places(config, root, problems);
        }
        config_read_plugins(config, root, problems);
    }
    if (problems->count > 0) {
        config_free(config);
        return NULL;
    }
    return config;
}

/* Addresses have it or have it not, from the start on. */
static void read_tls_again(const struct config *config, const struct conf_node *root,
                           struct settings *settings, struct conf_problems *problems,
                           struct changes *changes)
{
    const struct conf_node *server = conf_get(root, "server");
    settings->tls = config_read_tls(config->file, root, settings->arena, problems);
    if ((settings->tls != NULL) != config->server.has_tls) {
        changes_note(changes, "server.tls", conf_at(server != NULL ? server : root, "tls"));
    }
}

struct settings *config_read_settings(const struct config *config, struct conf_problems *problems,
                                      struct changes *changes)
{
    struct settings *settings = settings_new();
    struct auth_config auth = {0};
    struct conf_node *root = conf_parse_file(config->file, settings->arena, problems);
    if (root != NULL) {
        settings_note_file(settings, root);
        check_sections(root, problems);
        changes_find(config->root, root, changes);
        auth_read(config->file, root, &auth, settings, problems);
    }
    if (root != NULL && auth.mode == config->auth.mode) { /* what they may be depends on it */
        config_read_upstreams(config, root, settings, problems, changes);
    }
    if (root != NULL) {
        read_tls_again(config, root, settings, problems, changes);
    }
    if (problems->count > 0 || auth.mode != config->auth.mode) {
        settings_unref(settings);
        return NULL;
    }
    return settings;
}

size_t config_worker_share(const struct config *config)
{
    size_t workers = (size_t)config->server.workers;
    return config->auth.mode == AUTH_NONE || workers < 2 ? workers : workers / 2;
}

uint64_t config_memory_share(const struct config *config)
{
    uint64_t bytes = config->server.memory_bytes;
    return config->auth.mode == AUTH_NONE ? bytes : bytes / 4;
}

void config_free(struct config *config)
{
    if (config == NULL) {
        return;
    }
    loader_free(config->loader);
    settings_unref(config->settings);
    arena_free(config->arena);
}

/* ---- describing ---- */

const struct config_section config_own_sections[] = {
    {"server", "Where the gateway serves, and its limits as a whole.", server_options, NULL},
    {"server.tls",
     "A certificate: then all TCP addresses speak HTTPS and nothing else. SIGHUP reads it again.",
     tls_options, NULL},
    {"auth", "Who may use it.", auth_options, NULL},
    {"sessions", "How long containers live, and how many there may be.", sessions_options, NULL},
    {"loop", "What one request with tools of ours may use.", loop_options, NULL},
    {"accounting", "What requests used, for whoever settles accounts.", accounting_options, NULL},
};
_Static_assert(COUNT_OF(config_own_sections) == CONFIG_OWN_SECTIONS, "the header says how many");

static void put_section(const struct config_section *section, const char *before, struct buf *out)
{
    (void)buf_printf(out, "%s%s\n%s\n\noptions:\n", before, section->name,
                     section->help); /* overflow shows in the buffer */
    options_describe(section->options, out);
    (void)buf_puts(out, section->more != NULL ? section->more : "");
}

void config_describe(struct buf *out)
{
    for (size_t i = 0; i < CONFIG_OWN_SECTIONS; i++) {
        put_section(&config_own_sections[i], i == 0 ? "" : "\n", out);
    }
    for (size_t i = 0; i < CONFIG_PLUGIN_SECTIONS; i++) {
        put_section(&config_plugin_sections[i], "\n", out);
    }
}
