/* `sessions.on_shutdown` and where what is kept is written. */
#include "gateway/config.h"
#include "gateway/state_file.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* systemd names the folders of StateDirectory=, with ':' between them: the first is the service's. */
static const char *usual_file(struct arena *arena)
{
    const char *folder = getenv("STATE_DIRECTORY");
    if (folder == NULL || folder[0] != '/') {
        return NULL;
    }
    return arena_printf(arena, "%.*s/sessions.json", (int)strcspn(folder, ":"), folder);
}

/* Beside the file there are others of its name and these ends. */
static bool check_end(const struct sessions_config *sessions, const struct conf_node *at,
                      struct conf_problems *problems)
{
    static const char *const taken[] = {".lock", ".new", ".bad"};
    size_t len = strlen(sessions->state_file);
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        size_t end = strlen(taken[i]);
        if (len >= end && strcmp(sessions->state_file + len - end, taken[i]) == 0) {
            conf_problem(problems, at,
                         "sessions: 'state_file' may not end in %s, which has a meaning beside it: "
                         "choose another name",
                         taken[i]);
            return false;
        }
    }
    return true;
}

static void check_place(const struct sessions_config *sessions, const struct conf_node *at,
                        struct conf_problems *problems)
{
    struct sg_error err = {0};
    if (state_file_check(sessions->state_file, &err) != 0) {
        conf_problem(problems, at, "%s", err.message);
    }
}

void config_check_keep(struct config *config, const struct conf_node *section,
                       struct conf_problems *problems)
{
    struct sessions_config *sessions = &config->sessions;
    bool keeps = strcmp(sessions->on_shutdown, "keep") == 0;
    if (!keeps && sessions->state_file != NULL) {
        conf_problem(problems, conf_get(section, "state_file"),
                     "sessions: 'state_file' means something with 'on_shutdown: keep' only");
    } else if (keeps && sessions->state_file != NULL && sessions->state_file[0] == '\0') {
        conf_problem(problems, conf_get(section, "state_file"),
                     "sessions: 'state_file' is empty: name a file, or leave it out under systemd "
                     "with StateDirectory=");
    } else if (keeps) {
        sessions->state_file = sessions->state_file != NULL
                                   ? config_path(config->file, sessions->state_file, config->arena)
                                   : usual_file(config->arena);
        if (sessions->state_file == NULL) {
            conf_problem(problems, conf_get(section, "on_shutdown"),
                         "sessions: 'on_shutdown: keep' needs 'state_file: PATH' (systemd with "
                         "StateDirectory= gives one by itself)");
        } else if (check_end(sessions, conf_at(section, "state_file"), problems) &&
                   config->serves) {
            check_place(sessions, conf_at(section, "state_file"), problems);
        }
    }
}
