/* The section `accounting`. */
#include "gateway/accounting.h"
#include "gateway/config.h"

#include "base/check.h"

#include <string.h>

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
        if (*paths[i] != NULL && strcmp(*paths[i], "-") != 0) {
            *paths[i] = config_path(config_file, *paths[i], arena);
        }
    }
    if (ret->audit != NULL && strcmp(ret->audit, "-") == 0) {
        conf_problem(
            problems, conf_at(section, "audit"),
            "accounting: 'audit' must be a file of its own, not '-': what clients say does "
            "not belong into the log");
    } else if (ret->audit != NULL && ret->file != NULL && strcmp(ret->file, ret->audit) == 0) {
        conf_problem(problems, conf_at(section, "audit"),
                     "accounting: 'audit' must be another file than 'file': who settles accounts "
                     "need not read what clients say");
    }
}
