/* The commands of the command line: each gets what was parsed and gives the exit code. Results go to standard output,
 * messages to standard error; 0: done, 1: it failed, 2: the command line is wrong. main.c has their table. */
#ifndef SANDGATE_GATEWAY_COMMAND_H
#define SANDGATE_GATEWAY_COMMAND_H

#include "gateway/config.h"

struct command_line {
    const char *config;                                           /* never NULL */
    const char *listen, *plugin_path, *name, *sandbox, *language; /* NULL: not given */
    const char *argument;
};

int command_serve(const struct command_line *);
int command_check(const struct command_line *);
int command_plugins(const struct command_line *);
int command_describe(const struct command_line *);
int command_run(const struct command_line *); /* exit codes of its own: see its help */
int command_keygen(const struct command_line *);

/* Reads the file; on failure all problems are printed, their number last, and NULL is returned. */
struct config *command_read_config(const struct command_line *, bool serves);

/* "sg-" and 256 random bits in base64url, ended by a NUL. */
#define KEY_BYTES (3 + 43 + 1)
void key_generate(char out[KEY_BYTES]);

/* What a run's results show: the text/plain of a MIME bundle, or the whole of an exception. Appends to `out`. */
void run_put_result(struct str bundle_json, struct buf *out);
void run_put_exception(struct str exception_json, struct buf *out);
/* A status that says how a shell command ended, where that was not well: as a model is told it. Whether it is one. */
bool run_put_exit(struct str status_json, struct buf *out);

#endif
