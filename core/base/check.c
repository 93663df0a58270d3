/* What a broken assertion prints before the process ends. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "sandgate: assertion failed: %s (%s:%d, %s)\n", condition, file, line,
            function);
    abort();
}

void *check_alloc(void *pointer)
{
    if (pointer == NULL) {
        fprintf(stderr, "sandgate: out of memory\n");
        abort();
    }
    return pointer;
}
