/* The section `accounting`. */
#include "gateway/accounting.h"
#include "gateway/config.h"

#include "base/check.h"

#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as many as the kernel follows */

const struct sg_option accounting_options[] = {
    {.name = "file",
     .type = SG_STRING,
     SG_FIELD(struct accounting_config, file),
     .help = "A file to which each request appends a line of JSON: who, which model, tokens, runs, "
             "times, bytes; never what was said. \"-\": standard error. Default: none."},
    {.name = "audit",
     .type = SG_STRING,
     SG_FIELD(struct accounting_config, audit),
     .help = "A file to which all that goes up to models, and all code and its output, is appended "
             "as lines of JSON. Default: none."},
    {0},
};

/* Where opening it would make a file: behind all links, each of which means its own folder. NULL: they lead in a circle. */
static const char *behind_links(const char *path, struct arena *arena)
{
    char target[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len < 0) {
            return path;
        }
        target[len] = '\0';
        path = config_path(path, arena_copy(arena, str_of(target)), arena);
    }
    return NULL;
}

/* Of a file that is not there, whose name may be that of a link. */
static const char *folder_problem(const char *path, struct arena *arena)
{
    struct stat is;
    const char *made = behind_links(path, arena);
    if (made == NULL) {
        return "is a link that leads to no place: remove it";
    }
    bool is_link = made != path;
    const char *folder = dirname(arena_copy(arena, str_of(made)));
    if (stat(folder, &is) != 0 || !S_ISDIR(is.st_mode)) {
        return is_link
                   ? "is a link into a folder that is not there, or not for the gateway to look "
                     "into: make it, or remove the link"
                   : "is in a folder that is not there, or not for the gateway to look into: "
                     "make it";
    }
    return access(folder, W_OK | X_OK) == 0 ? NULL
           : is_link ? "is a link into a folder that the gateway may not write"
                     : "is in a folder that the gateway may not write";
}

/* What opening it will find, without making it. NULL: nothing. */
static const char *place_problem(const char *path, bool is_private, struct arena *arena)
{
    struct stat is;
    if (path[0] == '\0') {
        return "is empty: name a file, or leave it out";
    }
    if (stat(path, &is) == 0) {
        return S_ISDIR(is.st_mode)       ? "is a folder: name a file in it"
               : access(path, W_OK) != 0 ? "is a file that the gateway may not write"
               : !is_private || !S_ISREG(is.st_mode) || (is.st_mode & (S_IRWXG | S_IRWXO)) == 0
                   ? NULL
                   : "is a file that is open to others: chmod 600 it";
    }
    return folder_problem(path, arena);
}

static void check_place(const char *option, const char *path, const struct conf_node *section,
                        struct arena *arena, struct conf_problems *problems)
{
    bool is_file = path != NULL && strcmp(path, "-") != 0;
    const char *problem = is_file ? place_problem(path, strcmp(option, "audit") == 0, arena) : NULL;
    if (problem != NULL) {
        conf_problem(problems, conf_at(section, option), "accounting: '%s' %s", option, problem);
    }
}

void accounting_read_config(const char *config_file, const struct conf_node *root,
                            struct accounting_config *ret, struct arena *arena,
                            struct conf_problems *problems)
{
    const struct conf_node *section = conf_get(root, "accounting");
    if (conf_fill(accounting_options, section, root, NULL, "accounting", ret, arena, problems) >
        0) {
        return;
    }
    const char **const paths[] = {&ret->file, &ret->audit};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        if (*paths[i] != NULL && **paths[i] != '\0' && strcmp(*paths[i], "-") != 0) {
            *paths[i] = config_path(config_file, *paths[i], arena);
        }
    }
    if (ret->audit != NULL && strcmp(ret->audit, "-") == 0) {
        conf_problem(
            problems, conf_at(section, "audit"),
            "accounting: 'audit' must be a file of its own, not '-': what clients say does "
            "not belong into the log");
    } else if (ret->audit != NULL && ret->file != NULL &&
               config_is_same_place(ret->file, ret->audit, arena)) {
        conf_problem(problems, conf_at(section, "audit"),
                     "accounting: 'audit' must be another file than 'file': who settles accounts "
                     "need not read what clients say");
    }
    check_place("file", ret->file, section, arena, problems);
    if (ret->audit == NULL || strcmp(ret->audit, "-") != 0) {
        check_place("audit", ret->audit, section, arena, problems);
    }
}
