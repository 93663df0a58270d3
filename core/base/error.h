/* Where a failure is described: what happened, where, what to do. The one who knows the cause writes it; a layer adds
 * context at most once; only the place where an error ends logs it. */
#ifndef SANDGATE_BASE_ERROR_H
#define SANDGATE_BASE_ERROR_H

#include "sandgate/plugin.h"

#include <stdarg.h>

#define ERROR_MESSAGE_BYTES 1024

struct sg_error { /* all zero: no error yet */
    int code;     /* enum sg_code */
    char message[ERROR_MESSAGE_BYTES];
    /* For the answer to a client; empty or 0 where the code says enough. */
    char param[96];  /* the field that is wrong, as in "tools[0].type" */
    char reason[48]; /* the machine-readable code, as in "invalid_api_key" */
    int status;      /* the HTTP status, where it is not the code's usual one */
};

/* Describes a failure and returns the code. A message that is too long is cut at a character. */
int error_set(struct sg_error *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int error_vset(struct sg_error *, int code, const char *format, va_list)
    __attribute__((format(printf, 3, 0)));

/* The same, with the field that is wrong (a printf format's result is cut at its end). */
int error_set_param(struct sg_error *, int code, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "context: " in front of the message; returns the code. */
int error_context(struct sg_error *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "INVALID", "LIMIT" … for logs. */
const char *error_code_name(int code);

/* The HTTP status: `status` if set, else by code. */
int error_status(const struct sg_error *);

#endif
