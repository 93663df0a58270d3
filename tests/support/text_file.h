/* A test's data that is text: whole, and line by line. */
#ifndef TESTS_SUPPORT_TEXT_FILE_H
#define TESTS_SUPPORT_TEXT_FILE_H

#include "base/buf.h"
#include "cunit_main.h"

#include <stdio.h>

static inline void text_file_read(const char *path, struct buf *ret)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    char piece[4096];
    for (size_t len; (len = fread(piece, 1, sizeof piece, file)) > 0;) {
        (void)buf_append(ret, piece, len); /* far below its bound */
    }
    (void)fclose(file); /* was only read */
}

/* The next line without its end; false behind the last. */
static inline bool text_line(struct str *rest, struct str *ret)
{
    if (rest->len == 0) {
        return false;
    }
    const char *end = memchr(rest->data, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    *ret = (struct str){rest->data, len};
    size_t used = end == NULL ? len : len + 1;
    *rest = (struct str){rest->data + used, rest->len - used};
    return true;
}

#endif
