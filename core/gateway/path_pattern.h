/* Patterns of paths, as `relay_paths` of an upstream lists them: "/files", "/files/" with a star behind it, "/threads/", a star and
 * "/runs". A star stands for one segment, whatever is in it, and at the end for all that is below. Nothing else is special; letters
 * are compared as they are. Pure. */
#ifndef SANDGATE_GATEWAY_PATH_PATTERN_H
#define SANDGATE_GATEWAY_PATH_PATTERN_H

#include "base/str.h"

#include <stdbool.h>

enum { PATH_PATTERN_BYTES_MAX = 256 };

/* The pattern that a text of the configuration means: without /v1, as paths are compared. A part of the text. NULL
 * where it is none; *ret_problem is then what is wrong with it: "does not begin with '/'". */
const char *path_pattern_read(const char *text, const char **ret_problem);

/* Does it stand for this path, which is decoded and without /v1? */
bool path_pattern_matches(const char *pattern, struct str path);

/* Is there a path for which both stand? */
bool path_patterns_meet(const char *a, const char *b);

#endif
