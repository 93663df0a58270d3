/* Problems of a configuration: one line each, with a position, and the nearest name for a mistyped one. */
#include "conf/internal.h"

#include "base/check.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

enum { NAME_BYTES_MAX = 64 }; /* longer names are no typing mistake of ours */

/* Text from the file may hold anything: what would end the line or speak to the terminal is escaped. */
static void put_one_line(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        unsigned char c = (unsigned char)text.data[i];
        size_t length = utf8_length(text.data + i, text.len - i);
        bool is_c1 = length == 2 && c == 0xC2 && (unsigned char)text.data[i + 1] < 0xA0;
        if (length == 0 || c < 0x20 || c == 0x7F || is_c1) {
            (void)buf_printf(out, "\\x%02x", c); /* overflow shows in the buffer */
            length = 1;
        } else {
            (void)buf_append(out, text.data + i, length);
        }
        i += length;
    }
}

static void put_position(struct conf_problems *problems, const struct conf_node *at)
{
    if (problems->file == NULL) {
        return;
    }
    put_one_line(&problems->text, str_of(problems->file));
    if (at != NULL && at->line > 0) {
        (void)buf_printf(&problems->text, ":%d:%d", at->line, at->column);
    }
    (void)buf_puts(&problems->text, ": ");
}

bool problems_are_full(const struct conf_problems *problems)
{
    return problems->count >= CONF_PROBLEMS_MAX;
}

void conf_problem(struct conf_problems *problems, const struct conf_node *at, const char *format,
                  ...)
{
    if (problems_are_full(problems)) {
        if (problems->count++ == CONF_PROBLEMS_MAX) {
            put_position(problems, NULL);
            (void)buf_printf(&problems->text, "more than %zu problems; the rest is not shown\n",
                             CONF_PROBLEMS_MAX);
        }
        return;
    }
    BUF_CLEANUP struct buf message = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)buf_vprintf(&message, format, arguments);
    va_end(arguments);
    put_position(problems, at);
    put_one_line(&problems->text, buf_str(&message));
    (void)buf_putc(&problems->text, '\n');
    problems->count++;
}

void conf_problems_clear(struct conf_problems *problems)
{
    buf_clear(&problems->text);
    problems->count = 0;
}

const char *text_shown(const char *text, struct arena *arena)
{
    size_t len = strlen(text), cut = utf8_cut(str_of(text), NAME_BYTES_MAX);
    return arena_printf(arena, "'%.*s%s'", (int)cut, text, cut < len ? "…" : "");
}

const char *key_part(const char *key, struct arena *arena)
{
    struct str name = {key, strcspn(key, CONF_NAME_ENDS)};
    size_t cut = utf8_cut(name, NAME_BYTES_MAX);
    return arena_printf(arena, "%.*s%.*s%s", (int)cut, key, key[name.len] != '\0', key + name.len,
                        cut < strlen(key) ? "…" : "");
}

const char *key_shown(const char *prefix, const char *key, struct arena *arena)
{
    return arena_printf(arena, "'%s%s'%s", prefix, key_part(key, arena),
                        strchr(key, ':') == NULL ? "" : " (is a space missing after ':'?)");
}

static char folded(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c + 32);
    }
    return c == '-' || c == ' ' ? '_' : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, changes and swaps of neighbours that lead from one name to the other. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][NAME_BYTES_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            char x = folded(a[i - 1]), y = folded(b[j - 1]);
            row[j] = least(least(last[j] + 1, row[j - 1] + 1), last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

const char *conf_nearest(const char *name, const char *const *candidates, size_t count)
{
    size_t len = strlen(name), best = SIZE_MAX;
    const char *nearest = NULL;
    if (len == 0 || len > NAME_BYTES_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t candidate_len = strlen(candidates[i]);
        if (candidate_len > NAME_BYTES_MAX) {
            continue;
        }
        size_t steps = distance(name, len, candidates[i], candidate_len);
        size_t allowed = least(len, candidate_len) < 3 ? 0 : 1 + least(len, candidate_len) / 4;
        if (steps <= allowed && steps < best) {
            best = steps;
            nearest = candidates[i];
        }
    }
    return nearest;
}
