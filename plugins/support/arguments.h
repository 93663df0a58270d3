/* From what a model wrote as arguments to the values that a tool works with. */
#ifndef PLUGINS_SUPPORT_ARGUMENTS_H
#define PLUGINS_SUPPORT_ARGUMENTS_H

#include "json_text.h"

struct argument { /* one that a tool knows; others are ignored */
    const char *name;
    bool is_required;
    bool is_any; /* a value of any type; else a string */
    struct json_value
        value; /* as written, a string with its quotes; {NULL, 0}: absent, or null where not required */
};

struct problem {
    char text[256]; /* for the model: what is wrong; "": nothing */
};

/* False with the problem; then nothing of the arguments is used. */
bool arguments_read(const char *json, size_t len, struct argument *wanted, size_t count,
                    struct problem *ret_problem);

/* Where the whole text is one fenced block (```python … ```), what stands inside; else the text itself. Neither Python
 * nor a shell command starts with a fence, so no valid code is touched, and a fence within it never. */
struct json_value code_without_fence(const char *code, size_t len);

#endif
