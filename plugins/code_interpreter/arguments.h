/* From what a model wrote as arguments to the code that shall run. */
#ifndef CODE_INTERPRETER_ARGUMENTS_H
#define CODE_INTERPRETER_ARGUMENTS_H

#include "json.h"

struct arguments {
    struct json_value code;  /* the string with its quotes */
    const char *problem;     /* for the model: what is wrong; NULL: nothing */
    size_t problem_at;       /* the byte, where the text is not JSON */
    const char *problem_why; /* what is wrong there; NULL: the problem says all */
};

/* Nothing of wrong arguments is used: `code` is set only if `problem` is NULL. */
struct arguments arguments_read(const char *json, size_t len);

/* Where the whole text is one fenced block (```python … ```), what stands inside; else the text itself. Python never
 * starts with a fence, so no valid code is touched, and a fence within it never. */
struct json_value code_without_fence(const char *code, size_t len);

#endif
