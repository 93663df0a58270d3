/* What the core itself reads of the entries that name plugins: one struct and one table for each section. The rest of an
 * entry is the plugin's. */
#ifndef SANDGATE_GATEWAY_SETUP_OPTIONS_H
#define SANDGATE_GATEWAY_SETUP_OPTIONS_H

#include "gateway/config.h"

struct upstream_text {
    const char *name, *plugin, *base_url, *api_key, *stream, *last_turn, *usage, *other_tools;
    const char *const *models, *const *surfaces, *const *drop_params, *const *relay_paths;
    bool encrypted_reasoning, passthrough;
    int64_t connect_ms, first_byte_ms, silence_ms;
    const char *ca_file, *client_certificate, *client_key, *proxy;
    struct sg_map headers;
    int64_t retries;
    int64_t circuit_failures, circuit_ms, circuit_ms_max, models_cache_ms;
};

struct sandbox_text {
    const char *name, *plugin;
    int64_t run_timeout_ms, keep_ms;
};

struct search_text {
    const char *name, *plugin;
    int64_t search_timeout_ms, cache_ms, max_per_request, per_minute;
};

struct interceptor_text {
    const char *plugin, *name, *sandbox, *search, *tool_name;
    const char *const *upstreams;
    bool enabled, show_runs;
};

/* upstream_way.c: what the entry says of certificates, proxy and headers, checked and with its files read, into `upstream`, whose
 * other members are there. Relative paths are `file`'s. */
void upstream_read_way(const struct upstream_text *, const struct conf_node *entry,
                       const char *file, struct upstream *, struct arena *, struct conf_problems *);

extern const struct sg_option upstream_options[], sandbox_options[], search_options[],
    interceptor_options[], model_options[];

#endif
