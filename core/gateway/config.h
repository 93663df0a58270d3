/* The configuration as the gateway uses it: read-only once serving has begun. config.c fills it from the YAML tree,
 * setup.c loads and opens the plugins that it names. */
#ifndef SANDGATE_GATEWAY_CONFIG_H
#define SANDGATE_GATEWAY_CONFIG_H

#include "base/arena.h"
#include "base/digest.h"
#include "conf/conf.h"
#include "gateway/accounting.h"
#include "gateway/circuit.h"
#include "gateway/settings.h"
#include "http/forwarded.h"
#include "http/fetch.h"
#include "plugin/call.h"
#include "plugin/load.h"
#include "session/registry.h"
#include "surface/surface.h"

#include <sys/types.h>

struct changes;

enum auth_mode { AUTH_KEYS, AUTH_NONE, AUTH_PASSTHROUGH };

struct server_config {
    const char *const *listen; /* "127.0.0.1:4000", "[::1]:4000", "unix:/run/sandgate.sock" */
    const char *const *plugin_path;
    const char *const *origins;
    const char *const *hosts;
    const char *const *forward_headers;
    int64_t request_timeout_ms;
    int64_t drain_ms;
    int64_t workers;
    const char *memory_budget; /* as written: "25%" or a size … */
    uint64_t memory_bytes;     /* … and what it comes to */
    bool metrics_open;
    const char *socket_mode;            /* as written: "0660" … */
    mode_t socket_mode_bits;            /* … and what it comes to */
    bool has_tls;                       /* settings.tls is there, at the start */
    const char *const *trusted_proxies; /* as written … */
    const char *trusted_header;
    struct http_proxies proxies; /* … and what they come to */
    const char *admin;           /* an address, as in `listen`; NULL: none */
};

struct auth_config {
    enum auth_mode mode;
    bool insecure;
};

struct sessions_config {
    int64_t idle_timeout_ms;
    int64_t per_identity, max_containers, max_containers_total;
    const char *on_shutdown;    /* "delete" or "keep" … */
    const char *state_file;     /* … with its path; NULL with "delete" */
    int64_t state_every_ms;     /* 0: at the end only */
    const char *const *id_from; /* "header:NAME", or what session_id_source_valid() knows */
};

struct loop_config {
    int64_t max_turns;
    int64_t max_calls;
    int64_t keep_alive_ms;
};

enum other_tools { OTHER_TOOLS_PASS, OTHER_TOOLS_DROP, OTHER_TOOLS_REJECT };

struct upstream { /* one entry of `upstreams:`, of settings */
    const char *name;
    const char *base_url;           /* NULL for a plugin's; without a slash at its end */
    const char *api_key;            /* secret; NULL: none is sent */
    bool passthrough;               /* the client's own key is sent, in that mode */
    const char *const *relay_paths; /* patterns (path_pattern.h) of what is relayed as it is */
    const char *const *models;
    const char *const *surfaces;    /* empty: all */
    const char *const *drop_params; /* fields that need not be carried to another API */
    bool replay;                    /* `stream: replay`: cannot stream with tools */
    bool last_removes;              /* `last_turn: remove`: ignores tool choice none */
    enum other_tools other_tools;
    bool encrypted_reasoning; /* asked for on responses */
    bool usage_last;          /* `usage: last`: clients are told the last turn's, not the sum */
    int64_t connect_ms, first_byte_ms, silence_ms;
    const struct fetch_way *way;       /* NULL: none of its own */
    const struct fetch_field *headers; /* of the operator's; the values may be secrets */
    size_t headers_count;
    unsigned tries_max; /* of a call, with the first */
    struct circuit_limits circuit;
    int64_t models_cache_ms;       /* how long its list of models is kept; 0: not at all */
    struct instance *instance;     /* of an upstream plugin, or NULL */
    const struct conf_node *entry; /* as it is written */
    struct upstream_state *state;  /* of its name; once the settings are in force */
};

struct search { /* one entry of `searches:` */
    const char *name;
    struct instance *instance;
    int64_t timeout_ms;
    int64_t cache_ms;                    /* 0: nothing is kept */
    int64_t max_per_request, per_minute; /* 0: as many as come */
};

enum offer_mode { OFFER_REQUESTED, OFFER_ALWAYS, OFFER_MODELS };

struct interceptor { /* one entry of `interceptors:` that is enabled, in YAML order */
    const char *name;
    struct instance *instance;
    const struct sandbox *sandbox; /* NULL: none */
    const struct search *search;   /* NULL: none */
    const char *const *upstreams;  /* empty: all */
    enum offer_mode offer;
    const char *const *offer_models;
    const char *tool_name; /* NULL: the tool's own */
    bool show_runs;
};

struct config {
    const char *file;
    const char *listen; /* the command line's, instead of the file's; NULL: none was given */
    const struct conf_node *root; /* what the start read: later changes are told apart from it */
    bool serves;                  /* it is read to be served by, or to be checked for that */
    int64_t read_unix_ms;         /* when the start did */
    struct server_config server;
    struct auth_config auth;
    struct settings *settings; /* that the start reads; a reference */
    struct sessions_config sessions;
    struct loop_config loop;
    struct accounting_config accounting;
    struct sandbox *sandboxes;
    size_t sandboxes_count;
    struct search *searches;
    size_t searches_count;
    struct interceptor *interceptors;
    size_t interceptors_count;
    struct instance **instances; /* all, in the order of the file: opened so, closed in reverse */
    size_t instances_count;
    struct loader *loader;
    struct arena *arena; /* all of the above */
};

/* Reads and checks a file and loads the plugins that it names; opens nothing. `listen` (NULL: none) stands for the file's
 * and is checked when it is used. With `serves` the places on disk that serving needs are looked at too, by what opens them
 * later: those of Unix sockets and of the state file; and whether two of the places are one. On failure every problem stands in `problems`, and NULL is returned. */
struct config *config_read(const char *path, const char *listen, bool serves,
                           struct conf_problems *problems);
void config_free(struct config *); /* NULL is fine; instances must be closed */

/* The settings of the file as it is now, for a configuration that is in force. Nothing else of the file is read anew, nor are
 * plugins touched. Problems, and the keys (of `changes`) whose change needs a restart, are told; NULL where there was a
 * problem, or where another auth.mode leaves nothing to take. Any thread. */
struct settings *config_read_settings(const struct config *, struct conf_problems *,
                                      struct changes *);

/* An identity's share of the worker threads, and of runs at a time; of the memory for requests: all where there is one
 * tenant. */
size_t config_worker_share(const struct config *);
uint64_t config_memory_share(const struct config *);

/* A path as the file means it: from the file's own folder. */
const char *config_path(const char *file, const char *path, struct arena *);

/* Does `pattern` (an exact name, or one with '*') match the model? */
bool model_matches(const char *pattern, struct str model);
/* Is a name in a list ended by NULL? */
bool list_has(const char *const *list, struct str name);

/* What `sandgate describe core` prints: the sections and their keys, from the tables that read them. */
void config_describe(struct buf *out);

struct config_section { /* one that the file may have */
    const char *name, *help;
    const struct sg_option *options;
    const char
        *more; /* keys that are read by hand, in the form of options_describe(); NULL: none */
};
enum { CONFIG_PLUGIN_SECTIONS = 5, CONFIG_OWN_SECTIONS = 6 };
extern const struct config_section config_own_sections[CONFIG_OWN_SECTIONS]; /* no lists */
extern const struct config_section config_plugin_sections[CONFIG_PLUGIN_SECTIONS];

/* config_auth.c: who may use it. Fills `settings` with the keys. */
void auth_read(const char *file, const struct conf_node *root, struct auth_config *,
               struct settings *, struct conf_problems *);
extern const struct sg_option auth_options[];

/* config_tls.c: the certificate. NULL where the file has none, or with problems. Reads files. */
struct http_tls;
struct http_tls *config_read_tls(const char *file, const struct conf_node *root, struct arena *,
                                 struct conf_problems *);
extern const struct sg_option tls_options[];
void config_tls_say(const struct http_tls *); /* on standard error, where its time is nearly over */
void config_tls_log(const struct http_tls *);

/* config_check.c: what single values may be. */
void config_check_server(struct config *, const struct conf_node *section, bool listen_is_given,
                         struct conf_problems *);
void config_check_id_source(const char *source, const struct conf_node *at, struct conf_problems *);
enum header_source { /* "header:NAME" */
                     HEADER_SOURCE_GOOD,
                     HEADER_SOURCE_OTHER, /* no "header:" */
                     HEADER_SOURCE_INVALID,
                     HEADER_SOURCE_SECRET
};
enum header_source config_header_source(const char *text);
const char *config_key_problem(const char *key); /* "is empty"; NULL: a header can carry it */
void config_check_url(const struct upstream *, const struct conf_node *at, struct conf_problems *);

/* config_proxies.c: whose word counts for a client's address. */
void config_check_proxies(struct config *, const struct conf_node *section, struct conf_problems *);

/* config_keep.c: what a shutdown leaves for the next start. */
void config_check_keep(struct config *, const struct conf_node *section, struct conf_problems *);

/* config_places.c: files that are written are nobody else's. Each that is told names both. */
void config_check_places(const struct config *, const struct conf_node *root,
                         struct conf_problems *);
/* Is it one file, by whatever names, or would it be one once it is made? Looks at the disk. */
bool config_is_same_place(const char *one, const char *other, struct arena *);

/* Sections read elsewhere (setup.c): lists whose entries name plugins. */
size_t config_read_plugins(struct config *, const struct conf_node *root, struct conf_problems *);
/* `upstreams` again, for a configuration that is in force: plugins stay as they are, and what would change them is among the
 * changes that need a restart. */
void config_read_upstreams(const struct config *, const struct conf_node *root, struct settings *,
                           struct conf_problems *, struct changes *);

#endif
