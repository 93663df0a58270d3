/* JSON as Python's and others' writers let it through, made strict. */
#ifndef E2B_LENIENT_H
#define E2B_LENIENT_H

#include "text.h"

/* Appends `json` as RFC 8259 has it, in valid UTF-8: NaN and the infinities become null, lone surrogates and bytes that are
 * no UTF-8 become U+FFFD, raw control characters within strings are escaped, a backslash that begins no escape stands for
 * itself, and what is nested deeper than json_text.h reads becomes null. What is no JSON at all stays none. */
void lenient_put(struct text *out, const char *json, size_t len);

/* Bytes of the array or object that begins at `json`, up to `end` where it does not end. */
size_t lenient_nested_length(const char *json, const char *end);

#endif
