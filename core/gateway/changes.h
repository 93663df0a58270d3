/* What of a configuration file differs from the one that is in force, and needs a restart: compared as it is written. */
#ifndef SANDGATE_GATEWAY_CHANGES_H
#define SANDGATE_GATEWAY_CHANGES_H

#include "conf/conf.h"

enum { CHANGES_MAX = 20, CHANGE_NAME_BYTES = 160 }; /* listed; more are counted */

struct change {
    char name[CHANGE_NAME_BYTES]; /* "server.listen", "upstreams[1].models" */
    int line, column;             /* in the new file */
};

struct changes { /* all zero: none */
    struct change changes[CHANGES_MAX];
    size_t count;
};

/* Is what stands at this name read again, and takes effect? */
bool change_is_reread(const char *name);

/* Of two files. What is read again (settings.h) is left out. */
void changes_find(const struct conf_node *before, const struct conf_node *now, struct changes *);

/* Of two maps that both stand at `name`. */
void changes_find_in(const char *name, const struct conf_node *before, const struct conf_node *now,
                     struct changes *);
/* What stands at `at` needs a restart. */
void changes_note(struct changes *, const char *name, const struct conf_node *at);

#endif
