/* A few words of Python: enough that variables, output and errors of a session show without a Python. A pure function
 * over the code and the variables; no clock, no files.
 *
 *   x = 3; y = (x + 4) * -2      64-bit integers with + - * and parentheses, names, also += -= *=
 *   print("x is", x)             strings in either quotes; + joins two
 *   y + 1                        the last expression's value is the result
 *
 * Anything else is a SyntaxError that says so, before anything has run. */
#ifndef MOCK_PYTHON_H
#define MOCK_PYTHON_H

#include "text.h"

#include <stdint.h>

struct python; /* the variables of one container */

struct python *python_new(void); /* NULL without memory */
void python_free(struct python *);

enum python_ending { PYTHON_DONE, PYTHON_RAISED, PYTHON_STOPPED };

struct python_result { /* all zero before python_run(); cleared by its owner */
    enum python_ending ending;
    bool has_value;
    struct text value;     /* the last expression's, as repr() gives it */
    const char *exception; /* its name, a literal */
    struct text message, traceback;
    int stop_code; /* what print() returned */
};

struct python_sink { /* takes what print() prints; non-zero stops the run */
    int (*print)(void *ctx, const char *text, size_t len);
    void *ctx;
};

void python_run(struct python *, const char *code, size_t len, const struct python_sink *,
                struct python_result *ret);
void python_result_clear(struct python_result *);

/* Each variable as the assignment that makes it, in their order. */
typedef void python_assignment(void *context, const char *assignment);
void python_each(const struct python *, python_assignment *, void *context);

#endif
