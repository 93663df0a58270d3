/* Tokens: names, integers, one-line strings, single signs and ends of lines. */
#include "python_lexer.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    char lower = (char)(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || c == '_' || is_digit(c) || (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static char peek(const struct lexer *x, size_t ahead)
{
    return (size_t)(x->end - x->at) > ahead ? x->at[ahead] : '\0';
}

/* Blanks, comments and joined lines; true if the line began with blanks. */
static bool skip_blanks(struct lexer *x)
{
    const char *from = x->at;
    while (x->at < x->end) {
        if (is_blank(*x->at)) {
            x->at++;
        } else if (*x->at == '#') {
            while (x->at < x->end && *x->at != '\n') {
                x->at++;
            }
        } else if (*x->at == '\\' && peek(x, 1) == '\n') {
            x->at += 2;
            x->line++;
        } else if (*x->at == '\n' && (x->parentheses > 0 || !x->in_line)) {
            x->at++;
            x->line++;
            from = x->at;
        } else {
            break;
        }
    }
    return !x->in_line && x->at > from;
}

static struct token take(struct lexer *x, enum token_kind kind, size_t len)
{
    struct token t = {.kind = kind, .at = x->at, .len = len, .line = x->line};
    x->at += len;
    return t;
}

static struct token take_integer(struct lexer *x)
{
    size_t len = 0;
    int64_t value = 0;
    bool too_large = false;
    while (is_digit(peek(x, len))) {
        too_large |= __builtin_mul_overflow(value, 10, &value) ||
                     __builtin_add_overflow(value, peek(x, len) - '0', &value);
        len++;
    }
    bool wrong = is_name(peek(x, len)) || peek(x, len) == '.' ||
                 (*x->at == '0' && len > 1 && value > 0); /* 1x, 1.5, 007 */
    struct token t = take(x, wrong ? TOKEN_UNKNOWN : TOKEN_INTEGER, len);
    t.integer = value;
    t.too_large = too_large;
    return t;
}

/* One line, either quotes; three of them are not understood. */
static struct token take_string(struct lexer *x)
{
    char quote = *x->at;
    if (peek(x, 1) == quote && peek(x, 2) == quote) {
        return take(x, TOKEN_UNKNOWN, 3);
    }
    size_t len = 1;
    while (x->at + len < x->end && x->at[len] != quote && x->at[len] != '\n') {
        len += x->at[len] == '\\' ? 2 : 1;
    }
    if (x->at + len >= x->end || x->at[len] != quote) {
        return take(x, TOKEN_UNKNOWN, 1);
    }
    struct token t = take(x, TOKEN_STRING, len + 1);
    t.at++;
    t.len -= 2;
    return t;
}

static struct token take_sign(struct lexer *x)
{
    if (*x->at == '(') {
        x->parentheses++;
    } else if (*x->at == ')' && x->parentheses > 0) {
        x->parentheses--;
    }
    bool known = *x->at != '\0' && strchr("()=+-*;,", *x->at) != NULL;
    return take(x, known ? TOKEN_SIGN : TOKEN_UNKNOWN, 1);
}

struct token lexer_next(struct lexer *x)
{
    bool indented = skip_blanks(x);
    if (x->at == x->end) {
        return (struct token){.kind = TOKEN_END, .at = x->at, .line = x->line};
    }
    if (*x->at == '\n') {
        struct token t = take(x, TOKEN_LINE, 1);
        x->line++;
        x->in_line = false;
        return t;
    }
    x->in_line = true;
    if (indented) {
        return take(x, TOKEN_INDENT, 0);
    }
    if (is_digit(*x->at)) {
        return take_integer(x);
    }
    if (*x->at == '"' || *x->at == '\'') {
        return take_string(x);
    }
    if (is_name(*x->at)) {
        size_t len = 1;
        while (is_name(peek(x, len)) && x->at + len < x->end) {
            len++;
        }
        /* "…" directly behind a name is a prefix such as f or r: another kind of string. */
        bool prefix = peek(x, len) == '"' || peek(x, len) == '\'';
        return take(x, prefix ? TOKEN_UNKNOWN : TOKEN_NAME, len);
    }
    return take_sign(x);
}
