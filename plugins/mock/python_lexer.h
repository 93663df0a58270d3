/* The tokens of the few words of Python. Internal to the mini Python. */
#ifndef MOCK_PYTHON_LEXER_H
#define MOCK_PYTHON_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
    TOKEN_END,
    TOKEN_LINE, /* the end of a line that held something */
    TOKEN_NAME,
    TOKEN_INTEGER,
    TOKEN_STRING, /* `at` and `len` are what stands between the quotes */
    TOKEN_SIGN,   /* one character */
    TOKEN_UNKNOWN,
    TOKEN_INDENT /* white space at the start of a line that holds something */
};

struct token {
    enum token_kind kind;
    const char *at;
    size_t len;
    int line;
    int64_t integer;
    bool too_large; /* an integer beyond 64 bits */
};

struct lexer {
    const char *at, *end;
    int line;
    unsigned parentheses; /* open: line breaks are white space */
    bool in_line;         /* something stands on this line already */
};

struct token lexer_next(struct lexer *);

static inline bool token_is(struct token t, char sign)
{
    return t.kind == TOKEN_SIGN && *t.at == sign;
}

#endif
