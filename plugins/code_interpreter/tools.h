/* What the three tools share: their options, and their calls. */
#ifndef CODE_INTERPRETER_TOOLS_H
#define CODE_INTERPRETER_TOOLS_H

#include "tool.h"

#include <stdint.h>

struct config {
    uint64_t shown;
    int64_t timeout;
};

/* run.c, editor.c: struct sg_tool's call(); self is a struct config. */
int tool_python(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);
int tool_bash(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);
int tool_editor(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *);

#endif
