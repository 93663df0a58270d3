/* What tools of interceptors share: how they refuse a call, and how they tell the core of a call's end. */
#ifndef PLUGINS_SUPPORT_TOOL_H
#define PLUGINS_SUPPORT_TOOL_H

#include "arguments.h"

#include <sandgate/plugin.h>

#define CODE_NONE (-1) /* no exit status to be told */

/* Emits the status of the whole call: state completed, failed or invalid; reason may be NULL. */
int tool_status(struct sg_call *, const char *state, const char *reason, int code,
                struct sg_error *err);

/* Nothing has been done; the model is told what is wrong and what it should have written. */
int tool_refuse(struct sg_call *, const char *problem, const char *expected, struct sg_error *err);
/* Likewise, with another reason than "invalid". */
int tool_refuse_as(struct sg_call *, const char *reason, const char *problem, const char *expected,
                   struct sg_error *err);

/* The decoded text of a string, ended by a NUL that the length does not count, in the call's memory; NULL if it is too
 * long for that. */
const char *tool_decode(struct sg_call *, struct json_value string, size_t *ret_len);

/* Why sg->run_code(), sg->search() or a file function failed, for the core: "timeout", "limit", "unavailable", … */
const char *tool_reason(int code);

/* What sg->fail() was told, or `otherwise`. */
const char *tool_message(const struct sg_error *err, const char *otherwise);

#endif
