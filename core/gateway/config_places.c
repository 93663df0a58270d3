/* Files that the gateway writes must be nobody else's: a state file that is the configuration would be set aside at the start, and
 * accounts would be written into whatever has their name. What is not there yet is told by its folder and its name. */
#include "gateway/config.h"

#include "base/check.h"

#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

struct places {
    const struct config *config;
    const struct conf_node *root;
    struct conf_problems *problems;
};

struct written { /* a file that is written */
    const struct conf_node *section;
    const char *name, *option; /* of the section and of the option */
    const char *path;
};

/* ---- the same file ---- */

static bool is_same_node(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static const char *name_in_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool config_is_same_place(const char *one, const char *other, struct arena *arena)
{
    struct stat a, b;
    if (stat(one, &a) == 0 && stat(other, &b) == 0) {
        return is_same_node(&a, &b);
    }
    return strcmp(name_in_folder(one), name_in_folder(other)) == 0 &&
           stat(dirname(arena_copy(arena, str_of(one))), &a) == 0 &&
           stat(dirname(arena_copy(arena, str_of(other))), &b) == 0 && is_same_node(&a, &b);
}

/* Nothing in it can be lost: /dev/null, or a terminal that is the configuration's too. */
static bool is_device(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISCHR(is.st_mode);
}

/* `whose`: "'auth.keys_file'". False where they meet, which is told. */
static bool check_pair(const struct places *places, const struct written *written,
                       const char *other, const char *whose)
{
    if (other == NULL || !config_is_same_place(written->path, other, places->config->arena)) {
        return true;
    }
    conf_problem(places->problems, conf_at(written->section, written->option),
                 "%s: '%s' would write '%s', which is also %s: give each a file of its own",
                 written->name, written->option, written->path, whose);
    return false;
}

/* ---- what the file names ---- */

/* The path of an option; NULL: none. What is wrong with it is told where its section is read. */
static const char *path_at(const struct places *places, const struct conf_node *section,
                           const char *key)
{
    const struct sg_option option = {.name = key, .type = SG_STRING, .size = sizeof(char *)};
    const struct conf_node *value = conf_get(section, key);
    struct conf_problems ignored = {0};
    struct arena *arena = places->config->arena;
    const char *text = NULL;
    (void)conf_fill_one(&option, value, value, NULL, &text, arena, &ignored); /* as said above */
    bool is_good = ignored.count == 0 && text != NULL && text[0] != '\0';
    conf_problems_clear(&ignored);
    return is_good ? config_path(places->config->file, text, arena) : NULL;
}

static bool check_sockets(const struct places *places, const struct written *written)
{
    static const char prefix[] = "unix:/";
    const struct server_config *server = &places->config->server;
    bool is_good = true;
    for (const char *const *at = server->listen; is_good && at != NULL && *at != NULL; at++) {
        is_good = strncmp(*at, prefix, strlen(prefix)) != 0 ||
                  check_pair(places, written, *at + strlen("unix:"), "'server.listen'");
    }
    bool has_admin = server->admin != NULL && strncmp(server->admin, prefix, strlen(prefix)) == 0;
    return is_good && (!has_admin || check_pair(places, written, server->admin + strlen("unix:"),
                                                "'server.admin'"));
}

static bool check_upstreams(const struct places *places, const struct written *written)
{
    static const struct {
        const char *key, *whose;
    } options[] = {{"ca_file", "'ca_file' of an upstream"},
                   {"client_certificate", "'client_certificate' of an upstream"},
                   {"client_key", "'client_key' of an upstream"}};
    const struct conf_node *list = conf_get(places->root, "upstreams");
    size_t count = list != NULL && list->type == CONF_LIST ? list->count : 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < COUNT_OF(options); k++) {
            const char *path = path_at(places, list->items[i], options[k].key);
            if (!check_pair(places, written, path, options[k].whose)) {
                return false;
            }
        }
    }
    return true;
}

/* Against all that is not written by accounting. */
static bool check_others(const struct places *places, const struct written *written)
{
    const struct conf_node *auth = conf_get(places->root, "auth"),
                           *tls = conf_get(conf_get(places->root, "server"), "tls");
    return check_pair(places, written, places->config->file, "the configuration file") &&
           check_pair(places, written, path_at(places, auth, "keys_file"), "'auth.keys_file'") &&
           check_pair(places, written, path_at(places, tls, "certificate"),
                      "'server.tls.certificate'") &&
           check_pair(places, written, path_at(places, tls, "key"), "'server.tls.key'") &&
           check_pair(places, written, path_at(places, tls, "client_ca"),
                      "'server.tls.client_ca'") &&
           check_sockets(places, written) && check_upstreams(places, written);
}

/* ---- what is written ---- */

static void check_state(const struct places *places, const struct conf_node *accounting)
{
    static const char *const ends[] = {"", ".lock", ".new", ".bad"};
    const char *state = places->config->sessions.state_file;
    const struct conf_node *section = conf_get(places->root, "sessions");
    struct arena *arena = places->config->arena;
    bool is_good = state != NULL && state[0] != '\0';
    for (size_t i = 0; is_good && i < COUNT_OF(ends); i++) {
        const struct written written = {section, "sessions", "state_file",
                                        arena_printf(arena, "%s%s", state, ends[i])};
        is_good = check_others(places, &written) &&
                  check_pair(places, &written, path_at(places, accounting, "file"),
                             "'accounting.file'") &&
                  check_pair(places, &written, path_at(places, accounting, "audit"),
                             "'accounting.audit'");
    }
}

void config_check_places(const struct config *config, const struct conf_node *root,
                         struct conf_problems *problems)
{
    static const char *const options[] = {"file", "audit"};
    const struct places places = {config, root, problems};
    const struct conf_node *accounting = conf_get(root, "accounting");
    check_state(&places, accounting);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        const struct written written = {accounting, "accounting", options[i],
                                        path_at(&places, accounting, options[i])};
        if (written.path != NULL && !is_device(written.path)) {
            (void)check_others(&places, &written); /* one is enough for a file */
        }
    }
}
