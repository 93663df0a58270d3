/* What a broken assertion prints before the process ends. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "sandgate: assertion failed: %s (%s:%d, %s)\n", condition, file, line,
            function);
    abort();
}

void check_out_of_memory(void)
{
    static const char said[] = "sandgate: out of memory\n"; /* written without a buffer */
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
    abort();
}

void *check_alloc(void *pointer)
{
    if (pointer == NULL) {
        check_out_of_memory();
    }
    return pointer;
}
