/* The few words of Python: parsing and running are one descent, made twice: first without effect, so that what is not
 * understood stops everything before anything has run, as a SyntaxError does in Python; then for real. */
#include "python.h"

#include "python_lexer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES_MAX ((size_t)1 << 20)
#define STRING_BYTES_MAX ((size_t)64 << 10)
#define PRINT_BYTES_MAX ((size_t)1 << 20)
#define VARIABLES_MAX 256
#define VARIABLES_BYTES_MAX ((size_t)1 << 20)
#define NAME_BYTES_MAX 64
#define NESTING_MAX 64
#define STEPS_MAX 1000000

static const char understood[] =
    "mock sandbox: only assignments, integers with + - * and parentheses, one-line strings, names "
    "and print() are understood; for other code give it a rule, or use a sandbox with Python";

enum value_type { VALUE_NONE, VALUE_INTEGER, VALUE_STRING };

struct value { /* a string owns its bytes */
    enum value_type type;
    int64_t integer;
    struct text string;
};

struct variable {
    char name[NAME_BYTES_MAX];
    struct value value;
};

struct python {
    struct variable *variables;
    size_t count;
    size_t bytes; /* of all strings */
};

struct run {
    struct python *python;
    const struct python_sink *sink;
    struct python_result *result;
    struct lexer lexer;
    struct token token; /* the one to look at */
    bool executing;     /* false: the first descent, without effect */
    unsigned nesting;
    size_t steps;
};

static bool read_expression(struct run *run, struct value *ret);

struct python *python_new(void)
{
    return calloc(1, sizeof(struct python));
}

static void value_clear(struct value *v)
{
    text_clear(&v->string);
    v->type = VALUE_NONE;
}

void python_free(struct python *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        value_clear(&p->variables[i].value);
    }
    free(p->variables);
    free(p);
}

void python_result_clear(struct python_result *r)
{
    text_clear(&r->value);
    text_clear(&r->message);
    text_clear(&r->traceback);
    *r = (struct python_result){0};
}

/* ---- failing ---- */

static bool raise(struct run *run, const char *exception, const char *message)
{
    struct python_result *r = run->result;
    if (r->ending != PYTHON_DONE) {
        return false; /* the first one stands */
    }
    r->ending = PYTHON_RAISED;
    r->exception = exception;
    text_puts(&r->message, message);
    text_puts(&r->traceback, run->executing ? "Traceback (most recent call last):\n" : "");
    text_printf(&r->traceback, "  File \"<cell>\", line %d%s\n%s: %s", run->token.line,
                run->executing ? ", in <module>" : "", exception, message);
    return false;
}

static bool not_understood(struct run *run)
{
    return raise(run, "SyntaxError", understood);
}

static bool count_step(struct run *run, size_t bytes)
{
    run->steps += 1 + bytes / 64;
    return run->steps <= STEPS_MAX ||
           raise(run, "RuntimeError", "mock sandbox: the code takes too many steps");
}

static void advance(struct run *run)
{
    run->token = lexer_next(&run->lexer);
}

/* ---- names ---- */

static bool name_is(struct token t, const char *name)
{
    return t.kind == TOKEN_NAME && t.len == strlen(name) && memcmp(t.at, name, t.len) == 0;
}

/* Words that mean something else in Python than the name of a variable. */
static bool is_reserved(struct token t)
{
    static const char *const words[] = {
        "False", "None",     "True",  "and",    "as",     "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif",   "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",     "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "print", "raise",  "return", "try",    "while",  "with",     "yield"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (name_is(t, words[i])) {
            return true;
        }
    }
    return false;
}

static struct variable *find_variable(struct python *p, struct token name)
{
    for (size_t i = 0; i < p->count; i++) {
        if (name_is(name, p->variables[i].name)) {
            return &p->variables[i];
        }
    }
    return NULL;
}

static bool copy_value(struct run *run, const struct value *from, struct value *ret)
{
    *ret = (struct value){.type = from->type, .integer = from->integer};
    text_put(&ret->string, from->string.data, from->string.len);
    return count_step(run, from->string.len);
}

static bool read_variable(struct run *run, struct token name, struct value *ret)
{
    if (!run->executing) {
        return true;
    }
    struct variable *variable = find_variable(run->python, name);
    if (variable == NULL) {
        char message[NAME_BYTES_MAX + 64];
        snprintf(message, sizeof message, "name '%.*s' is not defined",
                 (int)text_cut(name.at, name.len, NAME_BYTES_MAX), name.at);
        return raise(run, "NameError", message);
    }
    return copy_value(run, &variable->value, ret);
}

static struct variable *add_variable(struct run *run, struct token name)
{
    struct python *p = run->python;
    if (p->count == VARIABLES_MAX || name.len >= NAME_BYTES_MAX) {
        raise(run, "MemoryError", "mock sandbox: at most 256 variables of 63 bytes a name");
        return NULL;
    }
    if (p->variables == NULL) {
        p->variables = calloc(VARIABLES_MAX, sizeof *p->variables);
        if (p->variables == NULL) {
            raise(run, "MemoryError", "mock sandbox: no memory");
            return NULL;
        }
    }
    struct variable *variable = &p->variables[p->count++];
    memcpy(variable->name, name.at, name.len);
    return variable;
}

/* Takes the value. */
static bool assign_take(struct run *run, struct token name, struct value *value)
{
    struct variable *variable = find_variable(run->python, name);
    size_t before = variable == NULL ? 0 : variable->value.string.len;
    if (run->python->bytes - before + value->string.len > VARIABLES_BYTES_MAX) {
        value_clear(value);
        return raise(run, "MemoryError", "mock sandbox: the variables hold more than 1 MiB");
    }
    if (variable == NULL) {
        variable = add_variable(run, name);
    }
    if (variable == NULL) {
        value_clear(value);
        return false;
    }
    run->python->bytes += value->string.len - before;
    value_clear(&variable->value);
    variable->value = *value;
    *value = (struct value){0};
    return true;
}

/* ---- operations ---- */

static const char *type_name(const struct value *v)
{
    return v->type == VALUE_STRING ? "str" : "int";
}

static bool operate_integers(struct run *run, char sign, struct value *left, int64_t right)
{
    bool overflow = sign == '+'   ? __builtin_add_overflow(left->integer, right, &left->integer)
                    : sign == '-' ? __builtin_sub_overflow(left->integer, right, &left->integer)
                                  : __builtin_mul_overflow(left->integer, right, &left->integer);
    return !overflow || raise(run, "OverflowError", "mock sandbox: integers have 64 bits");
}

/* left = left SIGN right; right is cleared. */
static bool operate(struct run *run, char sign, struct value *left, struct value *right)
{
    bool good = true;
    if (!run->executing) {
        good = true;
    } else if (!count_step(run, right->string.len)) {
        good = false;
    } else if (left->type == VALUE_INTEGER && right->type == VALUE_INTEGER) {
        good = operate_integers(run, sign, left, right->integer);
    } else if (left->type == VALUE_STRING && right->type == VALUE_STRING && sign == '+') {
        if (left->string.len + right->string.len > STRING_BYTES_MAX) {
            good = raise(run, "MemoryError", "mock sandbox: a string has at most 64 KiB");
        } else {
            text_put(&left->string, right->string.data, right->string.len);
        }
    } else {
        char message[96];
        snprintf(message, sizeof message, "unsupported operand type(s) for %c: '%s' and '%s'", sign,
                 type_name(left), type_name(right));
        good = raise(run, "TypeError", message);
    }
    value_clear(right);
    return good;
}

static bool read_string(struct run *run, struct token t, struct value *ret)
{
    static const char letters[] = "nrt\\'\"\n", values[] = "\n\r\t\\'\"";
    ret->type = VALUE_STRING;
    if (t.len > STRING_BYTES_MAX) {
        return raise(run, "MemoryError", "mock sandbox: a string has at most 64 KiB");
    }
    for (size_t i = 0; i < t.len; i++) {
        if (t.at[i] != '\\') {
            text_put(&ret->string, &t.at[i], 1);
            continue;
        }
        const char *letter = t.at[++i] == '\0' ? NULL : strchr(letters, t.at[i]);
        if (letter == NULL) {
            return not_understood(run);
        }
        if (*letter != '\n') { /* a joined line is nothing */
            text_put(&ret->string, &values[letter - letters], 1);
        }
    }
    return count_step(run, t.len);
}

/* ---- expressions ---- */

static bool read_parentheses(struct run *run, struct value *ret)
{
    advance(run);
    if (!read_expression(run, ret)) {
        return false;
    }
    if (!token_is(run->token, ')')) {
        return not_understood(run);
    }
    advance(run);
    return true;
}

static bool read_primary(struct run *run, struct value *ret)
{
    struct token t = run->token;
    bool good;
    if (token_is(t, '(')) {
        return read_parentheses(run, ret);
    }
    if (t.kind == TOKEN_INTEGER) {
        *ret = (struct value){.type = VALUE_INTEGER, .integer = t.integer};
        good = !t.too_large || !run->executing ||
               raise(run, "OverflowError", "mock sandbox: integers have 64 bits");
    } else if (t.kind == TOKEN_STRING) {
        good = read_string(run, t, ret);
    } else if (t.kind == TOKEN_NAME && !is_reserved(t)) {
        good = read_variable(run, t, ret);
    } else {
        return not_understood(run);
    }
    if (good) {
        advance(run);
    }
    return good;
}

static bool negate(struct run *run, struct value *v)
{
    if (!run->executing) {
        return true;
    }
    if (v->type != VALUE_INTEGER) {
        return raise(run, "TypeError", "bad operand type for unary -: 'str'");
    }
    struct value zero = {.type = VALUE_INTEGER};
    if (!operate_integers(run, '-', &zero, v->integer)) {
        return false;
    }
    v->integer = zero.integer;
    return true;
}

static bool read_factor(struct run *run, struct value *ret)
{
    if (++run->nesting > NESTING_MAX) {
        return raise(run, "SyntaxError", "mock sandbox: nested too deeply");
    }
    bool good;
    if (token_is(run->token, '-') || token_is(run->token, '+')) {
        bool minus = token_is(run->token, '-');
        advance(run);
        good = read_factor(run, ret) && (!minus || negate(run, ret));
    } else {
        good = read_primary(run, ret);
    }
    run->nesting--;
    return good && count_step(run, 0);
}

static bool read_term(struct run *run, struct value *ret)
{
    if (!read_factor(run, ret)) {
        return false;
    }
    while (token_is(run->token, '*')) {
        advance(run);
        struct value right = {0};
        if (!read_factor(run, &right)) {
            value_clear(&right);
            return false;
        }
        if (!operate(run, '*', ret, &right)) {
            return false;
        }
    }
    return true;
}

/* On failure too *ret is to be cleared. */
static bool read_expression(struct run *run, struct value *ret)
{
    if (!read_term(run, ret)) {
        return false;
    }
    while (token_is(run->token, '+') || token_is(run->token, '-')) {
        char sign = *run->token.at;
        advance(run);
        struct value right = {0};
        if (!read_term(run, &right)) {
            value_clear(&right);
            return false;
        }
        if (!operate(run, sign, ret, &right)) {
            return false;
        }
    }
    return true;
}

/* ---- statements ---- */

static void put_value(struct text *out, const struct value *v)
{
    if (v->type == VALUE_STRING) {
        text_put(out, v->string.data, v->string.len);
    } else {
        text_printf(out, "%" PRId64, v->integer);
    }
}

static void put_repr(struct text *out, const struct value *v)
{
    if (v->type != VALUE_STRING) {
        return put_value(out, v);
    }
    const char *data = v->string.len == 0 ? "" : v->string.data;
    char quote = strchr(data, '\'') != NULL && strchr(data, '"') == NULL ? '"' : '\'';
    text_put(out, &quote, 1);
    for (size_t i = 0; i < v->string.len; i++) {
        char c = data[i];
        if (c == quote || c == '\\') {
            text_printf(out, "\\%c", c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            text_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else {
            text_put(out, &c, 1);
        }
    }
    text_put(out, &quote, 1);
}

static bool print_line(struct run *run, struct text *line)
{
    if (!run->executing) {
        return true;
    }
    text_put(line, "\n", 1);
    if (line->overflow) {
        return raise(run, "MemoryError", "mock sandbox: a print has at most 1 MiB");
    }
    run->result->stop_code = run->sink->print(run->sink->ctx, line->data, line->len);
    if (run->result->stop_code != 0) {
        run->result->ending = PYTHON_STOPPED;
        return false;
    }
    return true;
}

/* print( arguments ) */
static bool read_print(struct run *run)
{
    TEXT_CLEANUP struct text line = {.max = PRINT_BYTES_MAX};
    advance(run);
    if (!token_is(run->token, '(')) {
        return not_understood(run);
    }
    advance(run);
    bool first = true;
    while (!token_is(run->token, ')')) {
        struct value value = {0};
        bool good = read_expression(run, &value);
        text_puts(&line, first ? "" : " ");
        put_value(&line, &value);
        value_clear(&value);
        if (!good) {
            return false;
        }
        first = false;
        if (token_is(run->token, ',')) {
            advance(run);
        } else if (!token_is(run->token, ')')) {
            return not_understood(run);
        }
    }
    advance(run);
    return print_line(run, &line);
}

/* NAME = …, NAME += …: at the sign, `name` taken. */
static bool read_assignment(struct run *run, struct token name, char sign)
{
    struct value value = {0};
    bool good = true;
    if (sign != '=') {
        good = read_variable(run, name, &value);
    }
    if (good && sign == '=') {
        good = read_expression(run, &value);
    } else if (good) {
        struct value right = {0};
        good = read_expression(run, &right) && operate(run, sign, &value, &right);
        value_clear(&right);
    }
    if (!good || !run->executing) {
        value_clear(&value);
        return good;
    }
    return assign_take(run, name, &value);
}

/* The sign of an assignment that starts at this name ('=' for a plain one), or 0. Moves behind it. */
static char take_assignment(struct run *run)
{
    struct lexer lexer = run->lexer;
    struct token sign = lexer_next(&lexer);
    if (run->token.kind != TOKEN_NAME || is_reserved(run->token) || sign.kind != TOKEN_SIGN ||
        strchr("=+-*", *sign.at) == NULL) {
        return 0;
    }
    if (*sign.at != '=') {
        struct token equals = lexer_next(&lexer);
        if (!token_is(equals, '=') || equals.at != sign.at + 1) {
            return 0;
        }
    }
    run->lexer = lexer;
    advance(run);
    return *sign.at;
}

static bool ends_statement(const struct run *run)
{
    return run->token.kind == TOKEN_END || run->token.kind == TOKEN_LINE ||
           token_is(run->token, ';');
}

static bool read_statement(struct run *run, struct value *last)
{
    value_clear(last);
    struct token name = run->token;
    bool good;
    char sign;
    if (run->token.kind == TOKEN_INDENT) {
        return raise(run, "IndentationError", "unexpected indent");
    }
    if (name_is(run->token, "print")) {
        good = read_print(run);
    } else if ((sign = take_assignment(run)) != 0) {
        good = read_assignment(run, name, sign);
    } else {
        good = read_expression(run, last);
    }
    return good && (ends_statement(run) || not_understood(run));
}

/* One descent through the whole code. */
static void read_code(struct run *run, const char *code, size_t len, struct value *last)
{
    run->lexer = (struct lexer){.at = code, .end = code + len, .line = 1};
    advance(run);
    while (run->token.kind != TOKEN_END) {
        if (run->token.kind == TOKEN_LINE) { /* behind a closing ; */
            advance(run);
            continue;
        }
        if (!read_statement(run, last)) {
            return;
        }
        if (run->token.kind != TOKEN_END) {
            advance(run);
        }
    }
}

void python_run(struct python *python, const char *code, size_t len, const struct python_sink *sink,
                struct python_result *ret)
{
    struct run run = {.python = python, .sink = sink, .result = ret, .token.line = 1};
    struct value last = {0};
    if (len > CODE_BYTES_MAX) {
        raise(&run, "MemoryError", "mock sandbox: the code is longer than 1 MiB");
    } else if (len > 0 && memchr(code, '\0', len) != NULL) {
        raise(&run, "SyntaxError", "source code cannot contain null bytes");
    } else {
        read_code(&run, code, len, &last);
    }
    if (ret->ending == PYTHON_DONE) {
        value_clear(&last);
        run.executing = true;
        run.steps = 0;
        run.nesting = 0;
        read_code(&run, code, len, &last);
    }
    ret->has_value = ret->ending == PYTHON_DONE && last.type != VALUE_NONE;
    if (ret->has_value) {
        put_repr(&ret->value, &last);
    }
    value_clear(&last);
}

void python_each(const struct python *p, python_assignment *each, void *context)
{
    for (size_t i = 0; i < p->count; i++) {
        struct value value = p->variables[i].value; /* its string is borrowed */
        TEXT_CLEANUP struct text assignment = {0};
        bool is_least = value.integer == INT64_MIN; /* whose digits are too many without a sign */
        value.integer += is_least;
        text_printf(&assignment, "%s = %s", p->variables[i].name, is_least ? "-1 + " : "");
        put_repr(&assignment, &value);
        if (value.type != VALUE_NONE && !assignment.overflow) {
            each(context, assignment.data);
        }
    }
}
