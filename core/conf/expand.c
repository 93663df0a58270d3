/* ${NAME} and os.environ/NAME in scalars. Messages name the variable, never its value. */
#include "conf/internal.h"

#include "base/utf8.h"

#include <stdlib.h>

static const struct str environ_prefix = {"os.environ/", 11};

static size_t name_length(const char *text)
{
    size_t len = 0;
    while ((text[len] >= 'A' && text[len] <= 'Z') || (text[len] >= 'a' && text[len] <= 'z') ||
           text[len] == '_' || (len > 0 && text[len] >= '0' && text[len] <= '9')) {
        len++;
    }
    return len;
}

/* The variable's value, or NULL with ret_problem set. */
static const char *variable(const char *name, size_t len, struct arena *arena,
                            const char **ret_problem)
{
    const char *whole = arena_copy(arena, (struct str){name, len});
    const char *value = getenv(whole);
    if (value == NULL) {
        *ret_problem = arena_printf(arena, "the environment variable '%s' is not set", whole);
    } else if (!utf8_valid(str_of(value))) {
        *ret_problem =
            arena_printf(arena, "the environment variable '%s' does not hold UTF-8 text", whole);
        value = NULL;
    }
    return value;
}

static struct expansion refused(const char *problem)
{
    return (struct expansion){.problem = problem};
}

static struct expansion expand_whole(const char *name, struct arena *arena)
{
    size_t len = name_length(name);
    if (len == 0 || name[len] != '\0') {
        return refused("'os.environ/' must be followed by the name of an environment variable");
    }
    const char *problem = NULL;
    const char *value = variable(name, len, arena, &problem);
    return (struct expansion){.text = value, .is_expanded = true, .problem = problem};
}

/* One step at a '$': what it stands for goes to `out`. Returns the bytes read, or 0 with ret_problem set. */
static size_t expand_dollar(const char *at, struct buf *out, struct arena *arena,
                            const char **ret_problem)
{
    if (at[1] == '$' && at[2] == '{') {
        (void)buf_puts(out, "${"); /* overflow is asked for at the end */
        return 3;
    }
    if (at[1] != '{') {
        (void)buf_putc(out, '$');
        return 1;
    }
    size_t len = name_length(at + 2);
    if (len == 0 || at[2 + len] != '}') {
        *ret_problem = "'${' must be followed by the name of an environment variable and '}'; "
                       "write $${ for the two characters themselves";
        return 0;
    }
    const char *value = variable(at + 2, len, arena, ret_problem);
    if (value == NULL) {
        return 0;
    }
    (void)buf_puts(out, value);
    return len + 3;
}

struct expansion text_expand(const char *written, struct arena *arena)
{
    if (str_starts(str_of(written), environ_prefix)) {
        return expand_whole(written + environ_prefix.len, arena);
    }
    if (strstr(written, "${") == NULL) {
        return (struct expansion){.text = written};
    }
    BUF_CLEANUP struct buf out = {.max = CONF_BYTES_MAX};
    bool is_expanded = false;
    for (const char *at = written; *at != '\0';) {
        size_t plain = strcspn(at, "$");
        (void)buf_append(&out, at, plain); /* overflow is asked for at the end */
        at += plain;
        if (*at == '$') {
            const char *problem = NULL;
            size_t read = expand_dollar(at, &out, arena, &problem);
            if (read == 0) {
                return refused(problem);
            }
            is_expanded |= read > 3;
            at += read;
        }
    }
    if (out.overflow) {
        return refused("is longer than 1 MiB after the environment was put in");
    }
    return (struct expansion){.text = arena_copy(arena, buf_str(&out)), .is_expanded = is_expanded};
}
