/* GET /admin/config: the settings in force, from which files and since when, without secrets (conf_show()). What is read again on SIGHUP
 * is the last reading's, all else the start's. */
#include "gateway/request.h"
#include "gateway/setup_options.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

struct showing {
    const struct config *config;
    const struct settings *settings;
    struct buf *out;
};

static void put(const struct showing *s, const char *text)
{
    (void)buf_puts(s->out, text); /* overflow shows in the buffer */
}

static void put_name(const struct showing *s, const char *name)
{
    (void)buf_put_json(s->out, str_of(name));
    put(s, ":");
}

/* Seconds since 1970; 0: null. */
static void put_time(const struct showing *s, const char *name, int64_t unix_ms)
{
    put(s, ",");
    put_name(s, name);
    if (unix_ms == 0) {
        put(s, "null");
    } else {
        (void)buf_printf(s->out, "%lld", (long long)(unix_ms / 1000));
    }
}

/* ---- sections that are maps ---- */

/* The value in force of "section.option"; where the command line has another it is written to `given`. */
static const struct conf_node *value_of(const struct showing *s, const char *section,
                                        const char *option, struct conf_node *given)
{
    char name[CHANGE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s.%s", section, option); /* fits */
    if (s->config->listen != NULL && strcmp(name, "server.listen") == 0) {
        *given = (struct conf_node){.type = CONF_SCALAR, .text = s->config->listen, .quoted = true};
        return given;
    }
    const struct conf_node *root = change_is_reread(name) ? s->settings->root : s->config->root;
    return conf_get(conf_get(root, section), option);
}

/* NULL for a section that is not one of these. */
static const struct sg_option *own_options(const char *section)
{
    for (size_t i = 0; i < CONFIG_OWN_SECTIONS; i++) {
        if (strcmp(config_own_sections[i].name, section) == 0) {
            return config_own_sections[i].options;
        }
    }
    return NULL;
}

static void put_tls(const struct showing *s)
{
    const struct conf_node *tls = conf_get(conf_get(s->settings->root, "server"), "tls");
    if (conf_is_absent(tls)) { /* one that is gone from the file goes with a restart */
        tls = conf_get(conf_get(s->config->root, "server"), "tls");
    }
    put(s, ",\"tls\":");
    if (s->settings->tls == NULL || conf_is_absent(tls)) {
        put(s, "null");
        return;
    }
    put(s, "{");
    conf_show_all(own_options("server.tls"), tls, s->out);
    put(s, "}");
}

/* The keys that stand in a file of their own. */
static void put_keys_file(const struct showing *s)
{
    const struct conf_node *list = s->settings->keys_file;
    put(s, ",\"keys_of_keys_file\":[");
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        put(s, i > 0 ? ",{" : "{");
        conf_show_all(auth_key_options, list->items[i], s->out);
        put(s, "}");
    }
    put(s, "]");
}

static void put_map(const struct showing *s, const char *section)
{
    struct conf_node given;
    put_name(s, section);
    put(s, "{");
    const struct sg_option *option = own_options(section);
    CHECK(option != NULL);
    for (; option->name != NULL; option++) {
        conf_show(option, value_of(s, section, option->name, &given), s->out);
    }
    if (strcmp(section, "server") == 0) {
        put_tls(s);
    } else if (strcmp(section, "auth") == 0) {
        put_keys_file(s);
    }
    put(s, "}");
}

/* ---- sections that are lists ---- */

static void put_plugin(const struct showing *s, const struct instance *instance)
{
    if (instance != NULL) { /* as it was opened, at the start */
        conf_show_all(instance->plugin->options, instance->entry, s->out);
    }
}

static void put_upstreams(const struct showing *s)
{
    put(s, ",\"upstreams\":[");
    for (size_t i = 0; i < s->settings->upstreams_count; i++) {
        const struct upstream *upstream = &s->settings->upstreams[i];
        put(s, i > 0 ? ",{" : "{");
        conf_show_all(upstream_options, upstream->entry, s->out);
        put_plugin(s, upstream->instance);
        put(s, "}");
    }
    put(s, "]");
}

static void put_models(const struct showing *s)
{
    const struct conf_node *list = conf_get(s->settings->root, "models");
    size_t count = conf_is_absent(list) ? 0 : list->count;
    put(s, ",\"models\":[");
    for (size_t i = 0; i < count; i++) {
        put(s, i > 0 ? ",{" : "{");
        conf_show_all(model_options, list->items[i], s->out);
        put(s, "}");
    }
    put(s, "]");
}

/* A word, or a map of one list. */
static void put_offer(const struct showing *s, const struct conf_node *entry)
{
    static const struct sg_option word = {.name = "offer", .type = SG_STRING, .def = "requested"};
    static const struct sg_option models = {.name = "models", .type = SG_STRINGS};
    const struct conf_node *offer = conf_get(entry, "offer");
    if (conf_is_absent(offer) || offer->type == CONF_SCALAR) {
        conf_show(&word, offer, s->out);
        return;
    }
    put(s, ",\"offer\":{");
    conf_show(&models, conf_get(offer, "models"), s->out);
    put(s, "}");
}

/* Those that were opened: an interceptor that is not enabled is not in force. */
static void put_instances(const struct showing *s, const char *section, enum plugin_kind kind,
                          const struct sg_option *options)
{
    size_t count = 0;
    put(s, ",");
    put_name(s, section);
    put(s, "[");
    for (size_t i = 0; i < s->config->instances_count; i++) {
        const struct instance *instance = s->config->instances[i];
        if (plugin_kind_of(instance->plugin) != kind) {
            continue;
        }
        put(s, count++ > 0 ? ",{" : "{");
        conf_show_all(options, instance->entry, s->out);
        if (kind == PLUGIN_INTERCEPTOR) {
            put_offer(s, instance->entry);
        }
        put_plugin(s, instance);
        put(s, "}");
    }
    put(s, "]");
}

/* ---- all of it ---- */

static void put_settings(const struct showing *s)
{
    put(s, ",\"settings\":{");
    put_map(s, "server");
    put(s, ",");
    put_map(s, "auth");
    put_upstreams(s);
    put_models(s);
    put_instances(s, "sandboxes", PLUGIN_SANDBOX, sandbox_options);
    put_instances(s, "searches", PLUGIN_SEARCH, search_options);
    put(s, ",");
    put_map(s, "sessions");
    put(s, ",");
    put_map(s, "loop");
    put_instances(s, "interceptors", PLUGIN_INTERCEPTOR, interceptor_options);
    put(s, ",");
    put_map(s, "accounting");
    put(s, "}");
}

/* What of the file that was read last has no effect yet. */
static void put_pending(const struct showing *s)
{
    const struct changes *pending = &s->settings->pending;
    put(s, ",\"needs_restart\":[");
    for (size_t i = 0; i < pending->count && i < CHANGES_MAX; i++) {
        put(s, i > 0 ? "," : "");
        (void)buf_put_json(s->out, str_of(pending->changes[i].name));
    }
    put(s, "]");
}

int admin_config_answer(struct request *r, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    struct gateway *gateway = r->gateway;
    const struct showing s = {gateway->config, r->settings, &out};
    put(&s, "{\"object\":\"config\",\"file\":");
    (void)buf_put_json(&out, str_of(s.config->file));
    put_time(&s, "started_at", s.config->read_unix_ms);
    put_time(&s, "read_at", s.settings->read_unix_ms);
    put_time(&s, "reload_failed_at", atomic_load(&gateway->reload_failed_unix_ms));
    put_pending(&s);
    put_settings(&s);
    put(&s, "}");
    return answer_json(r, 200, buf_str(&out), err);
}
