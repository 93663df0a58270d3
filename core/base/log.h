/* Logs: one line of key=value on standard error, written by one write(2). Values from outside are quoted, escaped and
 * cut at 256 bytes, so that a line is always one line. Secrets, handles and user data never go here.
 *
 *   struct log_line line;
 *   log_begin(&line, SG_WARN, "container_lost");
 *   log_text(&line, "sandbox", sandbox->name);
 *   log_int(&line, "waited_ms", waited_ms);
 *   log_end(&line);
 */
#ifndef SANDGATE_BASE_LOG_H
#define SANDGATE_BASE_LOG_H

#include "base/str.h"
#include "sandgate/plugin.h"

#include <stdint.h>

#define LOG_LINE_BYTES 2048
#define LOG_VALUE_BYTES 256

struct log_line { /* on the stack; what does not fit is left out */
    bool wanted;
    size_t len;
    char text[LOG_LINE_BYTES];
};

void log_set_level(enum sg_level); /* default SG_INFO; before any thread */
void log_set_fd(int fd);           /* default 2; before any thread */
bool log_wants(enum sg_level);

void log_begin(struct log_line *, enum sg_level, const char *event);
void log_str(struct log_line *, const char *key, struct str value);
void log_text(struct log_line *, const char *key, const char *value); /* NULL: left out */
void log_int(struct log_line *, const char *key, int64_t value);
void log_count(struct log_line *, const char *key, int64_t value); /* negative: unknown, left out */
void log_end(struct log_line *);

#endif
