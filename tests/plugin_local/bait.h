/* What there is to find on the machine while attacks run, and whether it was found: listeners on every address, an abstract
 * and a named socket, a secret and a readable file, a key in the environment, a shared memory segment, a process, and a
 * second session with files, a process and a port. */
#ifndef TESTS_PLUGIN_LOCAL_BAIT_H
#define TESTS_PLUGIN_LOCAL_BAIT_H

#include "base/buf.h"

#include <stdbool.h>

/* Before the provider is opened: its broker's environment is this process's at most. */
void bait_lay(void);
/* Asserts that nobody has connected and that all is as it was laid, and takes it away. */
void bait_take_up(void);

/* The second session, once the provider is open. */
void bait_peer_begin(void);
void bait_peer_end(void);
/* Whether it lives and has what it had. May be asked by several fibers: one after the other. */
bool bait_peer_is_well(void);

/* Appends the text with what is laid for @HOST_PORT@ and the other names; in a pattern its special characters are
 * escaped. */
void bait_fill_in(const char *text, bool is_pattern, struct buf *out);

/* Whether a text shows what was to be kept from a box. */
bool bait_is_in(const struct buf *text);

#endif
