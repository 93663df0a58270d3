/* The section `auth`: how clients are told apart, and the keys, which may stand in a file of their own. What is read here may
 * be read again while the gateway serves, but for the mode. */
#include "gateway/config.h"

#include "base/check.h"

#include <string.h>

struct auth_text {
    const char *mode;
    bool insecure;
    struct sg_list keys;
    const char *keys_file;
};

const struct sg_option auth_options[] = {
    {.name = "mode",
     .type = SG_CHOICE,
     SG_FIELD(struct auth_text, mode),
     .def = "keys",
     .choices = "keys|none|passthrough",
     .help = "keys: clients present one of the keys; none: everybody is one tenant; passthrough: "
             "clients present their own keys of the upstreams."},
    {.name = "insecure",
     .type = SG_BOOL,
     SG_FIELD(struct auth_text, insecure),
     .def = "false",
     .help = "Allows mode none on an address that is not loopback."},
    {.name = "keys_file",
     .type = SG_STRING,
     SG_FIELD(struct auth_text, keys_file),
     .help = "A file with a list of further keys, in the form of 'keys'; nobody else may write it; "
             "read again on SIGHUP."},
    {.name = "keys",
     .type = SG_LIST,
     SG_FIELD(struct auth_text, keys),
     .help = "The gateway's keys; read again on SIGHUP.",
     .fields = auth_key_options,
     .fields_size = sizeof(struct auth_key_text)},
    {0},
};

struct key_list { /* as filled */
    struct sg_list entries;
    const struct conf_node *node;
    const char *file;
};

/* The entries of the keys' own file; *ret stays empty where it cannot be read. */
static void keys_file_read(const char *path, struct arena *arena, struct key_list *ret,
                           struct conf_problems *problems)
{
    static const struct sg_option list = {.name = "keys",
                                          .type = SG_LIST,
                                          .size = sizeof(struct sg_list),
                                          .fields = auth_key_options,
                                          .fields_size = sizeof(struct auth_key_text)};
    const char *main_file = problems->file;
    ret->file = path;
    ret->node = conf_parse_list_file(path, "who may call the gateway", arena, problems);
    if (ret->node != NULL) {
        conf_fill_one(&list, ret->node, ret->node, NULL, &ret->entries, arena, problems);
    }
    problems->file = main_file;
}

static void key_list_read(const struct key_list *list, struct key_set *set,
                          struct conf_problems *problems)
{
    const char *main_file = problems->file;
    problems->file = list->file;
    keys_read(set, list->node, list->entries.items, list->entries.count, problems);
    problems->file = main_file;
}

static enum auth_mode mode_of(const char *text)
{
    return text == NULL                       ? AUTH_KEYS
           : strcmp(text, "none") == 0        ? AUTH_NONE
           : strcmp(text, "passthrough") == 0 ? AUTH_PASSTHROUGH
                                              : AUTH_KEYS;
}

/* The clients' keys are the upstreams' affair, but for the operator's own. */
static void check_passthrough(const struct key_set *set, struct conf_problems *problems)
{
    const char *main_file = problems->file;
    for (size_t i = 0; i < set->count; i++) {
        if (key_is_for_requests(&set->keys[i])) {
            struct conf_node at = {.line = set->keys[i].line, .column = 1};
            problems->file = set->keys[i].file;
            conf_problem(problems, &at,
                         "auth: in mode 'passthrough' clients have keys of the upstreams: key '%s' "
                         "needs 'use: metrics' or 'use: admin' here",
                         set->keys[i].name);
        }
    }
    problems->file = main_file;
}

static bool has_clients(const struct key_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (key_is_for_requests(&set->keys[i])) {
            return true;
        }
    }
    return false;
}

static void check_mode(const struct auth_config *auth, const struct conf_node *section,
                       const struct conf_node *root, const struct key_set *set,
                       struct conf_problems *problems)
{
    size_t keys = set->count;
    if (auth->mode == AUTH_PASSTHROUGH) {
        check_passthrough(set, problems);
    }
    bool has_file = !conf_is_absent(conf_get(section, "keys_file"));
    if (auth->mode == AUTH_NONE && (has_file || keys > 0)) {
        conf_problem(problems, conf_at(section, "keys"),
                     "auth: mode 'none' lets everybody in, whatever 'keys' says: leave one of the "
                     "two out");
    }
    if (auth->mode == AUTH_KEYS && keys == 0) {
        conf_problem(
            problems, section != NULL ? section : root,
            "auth: mode 'keys' needs at least one entry in 'keys' or in 'keys_file'; for a gateway "
            "that only this machine can reach, 'mode: none' is possible");
    } else if (auth->mode == AUTH_KEYS && !has_clients(set)) {
        conf_problem(problems, conf_at(section != NULL ? section : root, "keys"),
                     "auth: no key here is good for requests, so that no client could come in: add "
                     "one without 'use'");
    }
}

void auth_read(const char *file, const struct conf_node *root, struct auth_config *auth,
               struct settings *settings, struct conf_problems *problems)
{
    struct auth_text text = {0};
    const struct conf_node *section = conf_get(root, "auth");
    size_t before = problems->count;
    conf_fill(auth_options, section, root, NULL, "auth", &text, settings->arena, problems);
    auth->mode = mode_of(text.mode);
    auth->insecure = text.insecure;
    struct key_list lists[] = {
        {text.keys, section != NULL ? conf_get(section, "keys") : NULL, file}, {.file = NULL}};
    if (text.keys_file != NULL) {
        keys_file_read(config_path(file, text.keys_file, settings->arena), settings->arena,
                       &lists[1], problems);
        settings->keys_file = lists[1].node;
    }
    size_t count = lists[0].entries.count + lists[1].entries.count;
    settings->keys.keys = arena_get(settings->arena, (count + 1) * sizeof(struct auth_key));
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        key_list_read(&lists[i], &settings->keys, problems);
    }
    if (problems->count == before) {
        check_mode(auth, section, root, &settings->keys, problems);
    }
}
