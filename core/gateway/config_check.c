/* What single values of the configuration may be, beyond their type: addresses, origins, hosts, headers, keys, URLs. Said
 * at the start, as each of them would otherwise be noticed by the first request, or never. */
#include "gateway/config.h"

#include "base/check.h"
#include "gateway/listen.h"
#include "gateway/upstream.h"
#include "session/control_keys.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* As people would write it: without "./" at its start. */
const char *config_path(const char *file, const char *path, struct arena *arena)
{
    if (path[0] == '/') {
        return path;
    }
    while (path[0] == '.' && path[1] == '/') {
        path += 2 + strspn(path + 2, "/");
    }
    const char *base = dirname(arena_copy(arena, str_of(file)));
    return strcmp(base, ".") == 0 && path[0] != '\0' ? path
                                                     : arena_printf(arena, "%s/%s", base, path);
}

/* "https://app.example" or "http://localhost:3000", as a browser writes it. */
static bool is_origin(const char *text)
{
    struct str origin = str_of(text);
    size_t scheme = str_starts(origin, STR("https://"))  ? 8
                    : str_starts(origin, STR("http://")) ? 7
                                                         : 0;
    return scheme > 0 && http_host_valid((struct str){text + scheme, origin.len - scheme});
}

static void check_forwarded(const struct conf_node *at, const char *name,
                            struct conf_problems *problems)
{
    if (!http_token_valid(str_of(name))) {
        conf_problem(problems, at,
                     "server: an entry of 'forward_headers' must be the name of a header such as "
                     "x-team, not '%.80s'",
                     name);
    } else if (field_never_goes_up(str_of(name))) {
        conf_problem(problems, at,
                     "server: 'forward_headers' may not hold '%.80s': credentials, cookies and "
                     "what belongs to one connection are never sent on",
                     name);
    }
}

static void check_listen(struct config *config, const struct conf_node *section,
                         struct conf_problems *problems)
{
    struct listen ignored = {0};
    struct sg_error err = {0};
    size_t entry = 0;
    if (listen_read(config, &ignored, &entry, &err) != 0) {
        const struct conf_node *at = conf_at(section, "listen");
        bool is_list = at->type == CONF_LIST && entry < at->count;
        conf_problem(problems, is_list ? at->items[entry] : at, "%s", err.message);
    } else if (listen_read_admin(config, &ignored, &err) != 0) {
        conf_problem(problems, conf_at(section, "admin"), "%s", err.message);
    }
}

static void check_metrics(const struct config *config, const struct conf_node *section,
                          struct conf_problems *problems)
{
    if (config->server.admin != NULL && config->server.metrics_open) {
        conf_problem(problems, conf_at(section, "metrics_open"),
                     "server: 'metrics_open' is about /metrics at 'listen', where it is not beside "
                     "'admin': leave one of the two out");
    }
}

/* Three digits as chmod(1) has them, and a 0 before: without rights of its owner nobody could connect. */
static bool read_mode(const char *text, mode_t *ret)
{
    text += text[0] == '0';
    if (strlen(text) != 3 || strspn(text, "01234567") != 3) {
        return false;
    }
    *ret = (mode_t)strtoul(text, NULL, 8);
    return (*ret & S_IWUSR) != 0;
}

void config_check_server(struct config *config, const struct conf_node *section,
                         bool listen_is_given, struct conf_problems *problems)
{
    for (const char *const *origin = config->server.origins; *origin != NULL; origin++) {
        if (!is_origin(*origin)) {
            conf_problem(problems, conf_get(section, "origins"),
                         "server: an entry of 'origins' must be as browsers send it, such as "
                         "https://app.example, without a path or a slash at its end, not '%s'",
                         *origin);
        }
    }
    for (const char *const *host = config->server.hosts; *host != NULL; host++) {
        if (!http_host_valid(str_of(*host))) {
            conf_problem(problems, conf_get(section, "hosts"),
                         "server: an entry of 'hosts' must be a name as clients write it in Host, "
                         "such as box.lan or box.lan:4000, not '%.80s'",
                         *host);
        }
    }
    for (const char *const *name = config->server.forward_headers; *name != NULL; name++) {
        check_forwarded(conf_get(section, "forward_headers"), *name, problems);
    }
    check_metrics(config, section, problems);
    if (!read_mode(config->server.socket_mode, &config->server.socket_mode_bits)) {
        conf_problem(problems, conf_at(section, "socket_mode"),
                     "server: 'socket_mode' must be a mode such as 0660 that lets its owner write, "
                     "not '%s'",
                     config->server.socket_mode);
    } else if (!listen_is_given) {
        check_listen(config, section, problems);
    }
}

enum header_source config_header_source(const char *text)
{
    static const char prefix[] = "header:";
    static const char *const secrets[] = {"authorization", "x-api-key", "cookie"};
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) {
        return HEADER_SOURCE_OTHER;
    }
    struct str name = str_of(text + sizeof prefix - 1);
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        if (str_eq_nocase(name, str_of(secrets[i]))) {
            return HEADER_SOURCE_SECRET;
        }
    }
    return http_token_valid(name) ? HEADER_SOURCE_GOOD : HEADER_SOURCE_INVALID;
}

void config_check_id_source(const char *source, const struct conf_node *at,
                            struct conf_problems *problems)
{
    enum header_source kind = config_header_source(source);
    if (strncmp(source, "header:", 7) != 0) {
        if (!session_id_source_valid(source)) {
            conf_problem(problems, at,
                         "sessions: 'id_from' may hold metadata.session_id, "
                         "litellm_metadata.session_id, metadata.user_id, prompt_cache_key and "
                         "header:NAME, not '%.80s'",
                         source);
        }
    } else if (kind == HEADER_SOURCE_SECRET) {
        conf_problem(problems, at,
                     "sessions: 'id_from' may not hold '%s': a secret is no session id, ids are "
                     "listed",
                     source);
    } else if (kind != HEADER_SOURCE_GOOD) {
        conf_problem(problems, at,
                     "sessions: 'header:NAME' in 'id_from' needs the name of a header such as "
                     "header:x-session, not '%.80s'",
                     source);
    }
}

const char *config_key_problem(const char *key)
{
    struct str text = str_of(key);
    if (text.len == 0) {
        return "is empty";
    }
    if (!str_eq(str_trim(text), text) || !http_value_valid(text)) {
        return "has white space around it or control characters in it, which no header can carry "
               "(was it read with the end of its line?)";
    }
    return NULL;
}

void config_check_url(const struct upstream *upstream, const struct conf_node *at,
                      struct conf_problems *problems)
{
    struct str url = str_of(upstream->base_url);
    static const struct str endpoint = STR("/chat/completions");
    struct sg_error err = {0};
    size_t scheme = str_starts(url, STR("https://")) ? 8 : str_starts(url, STR("http://")) ? 7 : 0;
    if (scheme == 0 || scheme == url.len || strpbrk(url.data, "?#@ ") != NULL) {
        conf_problem(problems, at,
                     "upstream '%s': 'base_url' must be a URL such as https://api.openai.com/v1, "
                     "without user, query or fragment",
                     upstream->name);
    } else if (fetch_check_url(url.data, &err) != 0) {
        conf_problem(problems, at, "upstream '%s': 'base_url': %s", upstream->name, err.message);
    } else if (url.len > endpoint.len && str_is(endpoint, url.data + url.len - endpoint.len)) {
        conf_problem(problems, at,
                     "upstream '%s': 'base_url' must end before /chat/completions, as for a client "
                     "library",
                     upstream->name);
    }
}
