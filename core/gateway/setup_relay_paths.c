/* `relay_paths` of upstreams: what they may be. Behind such a path stands what a server keeps for whoever asks, so that nothing but the
 * client's own key may say who that is. */
#include "gateway/path_pattern.h"
#include "gateway/request.h"
#include "gateway/setup.h"

#include "base/check.h"

#include <string.h>

static const struct conf_node *paths_node(const struct upstream *upstream)
{
    return conf_at(upstream->entry, "relay_paths");
}

/* NULL where the client's key alone says who asks. */
static const char *asker_problem(const struct upstream *upstream)
{
    if (!upstream->passthrough || upstream->api_key != NULL || upstream->base_url == NULL) {
        return "opens what the server keeps for the key that is sent, which must be the client's: "
               "it needs 'passthrough: true' (in auth mode 'passthrough'), a 'base_url' and no "
               "'api_key'";
    }
    if (!conf_is_absent(conf_get(upstream->entry, "client_certificate"))) {
        return "opens what the server keeps for whoever asks, and 'client_certificate' says that "
               "it is you: leave one out";
    }
    return upstream->headers_count > 0
               ? "opens what the server keeps for whoever asks, and 'headers' may say that it is "
                 "you: leave one out, or have clients send them ('server.forward_headers')"
               : NULL;
}

static void check_pattern(struct setup *s, const struct upstream *upstream, const char *text,
                          const char *pattern)
{
    const char *own = route_own_path(pattern);
    if (own != NULL) {
        conf_problem(s->problems, paths_node(upstream),
                     "upstream '%s': 'relay_paths' holds '%.80s', for which the gateway has a path "
                     "of its own ('%s'): name what lies beside it",
                     upstream->name, text, own);
    }
}

void setup_relay_paths(struct setup *s, const char *const *paths, const struct conf_node *entry,
                       struct upstream *upstream)
{
    size_t count = 0;
    while (paths[count] != NULL) {
        count++;
    }
    const char **patterns = arena_get(s->settings->arena, (count + 1) * sizeof *patterns);
    upstream->relay_paths = patterns;
    const char *problem = count > 0 ? asker_problem(upstream) : NULL;
    if (problem != NULL) {
        conf_problem(s->problems, conf_at(entry, "relay_paths"), "upstream '%s': 'relay_paths' %s",
                     upstream->name, problem);
    }
    for (size_t i = 0; i < count; i++) {
        const char *pattern = path_pattern_read(paths[i], &problem);
        if (pattern == NULL) {
            conf_problem(s->problems, conf_at(entry, "relay_paths"),
                         "upstream '%s': 'relay_paths' holds '%.80s', which %s", upstream->name,
                         paths[i], problem);
            continue;
        }
        check_pattern(s, upstream, paths[i], pattern);
        *patterns++ = pattern;
    }
}

/* A pattern of `a` that has a path in common with one of `b`; NULL: there is none. */
static const char *shared(const struct upstream *a, const struct upstream *b)
{
    for (const char *const *one = a->relay_paths; *one != NULL; one++) {
        for (const char *const *other = b->relay_paths; *other != NULL; other++) {
            if (path_patterns_meet(*one, *other)) {
                return *one;
            }
        }
    }
    return NULL;
}

void setup_check_relay_paths(struct setup *s)
{
    const struct settings *settings = s->settings;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct upstream *upstream = &settings->upstreams[i];
            const char *path = shared(upstream, &settings->upstreams[k]);
            if (path != NULL) {
                conf_problem(s->problems, paths_node(upstream),
                             "upstream '%s': 'relay_paths' has '%s' in common with upstream '%s': "
                             "a request names no model there, so that a path must be one "
                             "upstream's",
                             upstream->name, path, settings->upstreams[k].name);
            }
        }
    }
}
