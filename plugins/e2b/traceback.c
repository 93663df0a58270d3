/* Tracebacks for a model. IPython shows several lines of code around each place and marks the one that ran with an arrow;
 * of these the marked ones are kept. E2B's server joins the parts of a traceback without separators: the breaks that are
 * lost by it are put back.
 *
 *   -----…-----ZeroDivisionError     Traceback (most recent call last)Cell In[10], line 4
 *         3 print("before")
 *   ----> 4 f()
 *   ZeroDivisionError: division by zero */
#include "event.h"

#include <string.h>

static const char cut_line[] = "[earlier lines of the traceback cut]\n";
static const char title[] = "Traceback (most recent call last)";

static bool starts_with(const char *line, size_t len, const char *start)
{
    size_t start_len = strlen(start);
    return len >= start_len && memcmp(line, start, start_len) == 0;
}

/* "      2     return 1/0": spaces and a line number. */
static bool is_code_around(const char *line, size_t len)
{
    size_t at = 0;
    while (at < len && line[at] == ' ') {
        at++;
    }
    size_t digits = at;
    while (at < len && line[at] >= '0' && line[at] <= '9') {
        at++;
    }
    return at > digits && (at == len || line[at] == ' ');
}

static bool is_marked(const char *line, size_t len)
{
    size_t at = 0;
    while (at < len && line[at] == '-') {
        at++;
    }
    return at > 0 && at < len && line[at] == '>';
}

static void put_line(struct text *out, const char *line, size_t len)
{
    text_put(out, line, len);
    text_put(out, "\n", 1);
}

/* Where the title stands in a line: at its start, or behind the exception's name and spaces. NULL if it does not. */
static const char *title_find(const char *line, size_t len)
{
    const char *found = memmem(line, len, title, sizeof title - 1);
    size_t before = found == NULL ? 0 : (size_t)(found - line);
    while (before > 0 && line[before - 1] == ' ') {
        before--;
    }
    return before > 0 && memchr(line, ' ', before) != NULL ? NULL : found;
}

/* One line, or what was joined to one. `in_place` is true behind the line that names a place. */
static void put_shortened(struct text *out, const char *line, size_t len, bool *in_place)
{
    const char *found = title_find(line, len);
    if (found != NULL) {
        put_line(out, "Traceback (most recent call last):", sizeof title);
        len -= (size_t)(found - line) + sizeof title - 1;
        line = found + sizeof title - 1;
        if (len == 0 || (len == 1 && *line == ':')) {
            return;
        }
    }
    if (*in_place && is_code_around(line, len)) {
        return;
    }
    *in_place = starts_with(line, len, "Cell In[") || starts_with(line, len, "File ") ||
                (*in_place && is_marked(line, len));
    put_line(out, line, len);
}

/* Terminals' colours: ESC [ … letter. */
static void put_without_colours(struct text *out, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != 0x1B || i + 1 == len || data[i + 1] != '[') {
            text_put(out, data + i, 1);
            continue;
        }
        i += 2;
        while (i < len && (data[i] < 0x40 || data[i] > 0x7E)) {
            i++;
        }
    }
}

/* JavaScript's has lost all of its line breaks. */
static void put_with_breaks(struct text *out, const char *data, size_t len)
{
    static const char place[] = "    at ";
    const char *end = data + len, *found;
    if (memchr(data, '\n', len) == NULL) {
        while ((found = memmem(data, (size_t)(end - data), place, sizeof place - 1)) != NULL) {
            put_line(out, data, (size_t)(found - data));
            text_put(out, place, sizeof place - 1);
            data = found + sizeof place - 1;
        }
    }
    text_put(out, data, (size_t)(end - data));
}

/* The last of it, from the first whole line on if there is one. */
static void put_end(struct text *out, const char *data, size_t len, bool is_cut)
{
    while (len > 0 && data[len - 1] != '\0' && strchr(" \t\r\n", data[len - 1]) != NULL) {
        len--;
    }
    if (len <= TRACEBACK_BYTES_MAX && !is_cut) {
        text_put(out, data, len);
        return;
    }
    size_t room = TRACEBACK_BYTES_MAX - (sizeof cut_line - 1);
    const char *from = data + (len > room ? len - room : 0);
    const char *line_break = memchr(from, '\n', (size_t)(data + len - from));
    from = line_break != NULL ? line_break + 1 : from;
    while (from < data + len && ((unsigned char)*from & 0xC0) == 0x80) {
        from++;
    }
    text_puts(out, cut_line);
    text_put(out, from, (size_t)(data + len - from));
}

void traceback_put(struct text *out, const char *traceback, size_t len, bool is_cut)
{
    TEXT_CLEANUP struct text plain = {0}, lines = {0}, shortened = {0};
    put_without_colours(&plain, traceback, len);
    if (plain.len > 0) {
        put_with_breaks(&lines, plain.data, plain.len);
    }
    bool in_place = false;
    for (size_t at = 0; at < lines.len;) {
        const char *line = lines.data + at;
        const char *line_break = memchr(line, '\n', lines.len - at);
        size_t line_len = line_break == NULL ? lines.len - at : (size_t)(line_break - line);
        put_shortened(&shortened, line, line_len, &in_place);
        at += line_len + 1;
    }
    if (shortened.len > 0) {
        put_end(out, shortened.data, shortened.len, is_cut);
    }
}
