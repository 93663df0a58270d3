/* What the three tools share: their options, how they refuse a call, and how they tell the core of a call's end. */
#ifndef CODE_INTERPRETER_TOOL_H
#define CODE_INTERPRETER_TOOL_H

#include "arguments.h"

#include <sandgate/plugin.h>

#include <stdint.h>

struct config {
    uint64_t shown;
    int64_t timeout;
};

/* run.c, editor.c: struct sg_tool's call(); self is a struct config. */
int tool_python(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);
int tool_bash(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);
int tool_editor(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);

/* ---- tool.c ---- */

#define CODE_NONE (-1) /* no exit status to be told */

/* Emits the status of the whole call: state completed, failed or invalid; reason may be NULL. */
int tool_status(struct sg_call *, const char *state, const char *reason, int code,
                struct sg_error *err);

/* Nothing has been done; the model is told what is wrong and what it should have written. */
int tool_refuse(struct sg_call *, const char *problem, const char *expected, struct sg_error *err);

/* The decoded text of a string, ended by a NUL that the length does not count, in the call's memory; NULL if it is too
 * long for that. */
const char *tool_decode(struct sg_call *, struct json_value string, size_t *ret_len);

/* Why sg->run_code() or a file function failed, for the core: "timeout", "limit", "unavailable", … */
const char *tool_reason(int code);

/* What sg->fail() was told, or `otherwise`. */
const char *tool_message(const struct sg_error *err, const char *otherwise);

#endif
