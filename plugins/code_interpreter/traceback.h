/* A traceback as short as it helps a model: its last lines, without colours and without the line that the label
 * repeats. */
#ifndef CODE_INTERPRETER_TRACEBACK_H
#define CODE_INTERPRETER_TRACEBACK_H

#include "json_text.h"

#define TRACEBACK_BYTES 2048

/* `traceback` and `name` (the exception's; may be no string) as JSON. Returns the bytes written to `out`. */
size_t traceback_shorten(struct json_value traceback, struct json_value name,
                         char out[TRACEBACK_BYTES]);

#endif
