/* Tracebacks come from a process that the user's code controls: any length, any bytes. Only the last of it is kept. */
#include "traceback.h"

#include <string.h>

static const char cut_line[] = "[earlier lines of the traceback cut]\n";
#define KEEP_BYTES (TRACEBACK_BYTES - sizeof cut_line)

/* Decodes the whole, keeping the last KEEP_BYTES; returns their number. */
static size_t decode_end(struct json_value string, char *out, bool *ret_cut)
{
    struct json_value rest = json_inside(string);
    char piece[KEEP_BYTES / 2];
    size_t len = 0, part;
    *ret_cut = false;
    while ((part = json_decode(&rest, piece, sizeof piece)) > 0) {
        if (len + part > KEEP_BYTES) {
            size_t drop = len + part - KEEP_BYTES;
            memmove(out, out + drop, len - drop);
            len -= drop;
            *ret_cut = true;
        }
        memcpy(out + len, piece, part);
        len += part;
    }
    return len;
}

/* Takes the colour codes of terminals out: ESC [ … letter. */
static size_t strip_colours(char *text, size_t len)
{
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == 0x1B && i + 1 < len && text[i + 1] == '[') {
            i += 2;
            while (i < len && (text[i] < 0x40 || text[i] > 0x7E)) {
                i++;
            }
            continue;
        }
        text[kept++] = text[i];
    }
    return kept;
}

/* True if the line names the exception, as in "json.decoder.JSONDecodeError: …". */
static bool line_names(const char *line, size_t len, const char *name, size_t name_len)
{
    size_t word = 0;
    while (word < len && line[word] != ':' && line[word] != ' ' && line[word] != '\n') {
        word++;
    }
    if (word < name_len || memcmp(line + word - name_len, name, name_len) != 0) {
        return false;
    }
    bool whole = word == name_len || line[word - name_len - 1] == '.';
    return whole && (word == len || line[word] == ':' || line[word] == '\n');
}

/* Up to the last line that names the exception: the label says the same. */
static size_t without_last_line(const char *text, size_t len, struct json_value name)
{
    char decoded[128];
    if (!json_is_string(name) || name.len < 3 || name.len > sizeof decoded - 4) {
        return len;
    }
    struct json_value rest = json_inside(name);
    size_t name_len = json_decode(&rest, decoded, sizeof decoded);
    size_t found = len;
    for (size_t at = 0; at < len;) {
        if (line_names(text + at, len - at, decoded, name_len)) {
            found = at;
        }
        const char *line_break = memchr(text + at, '\n', len - at);
        at = line_break == NULL ? len : (size_t)(line_break - text) + 1;
    }
    return found;
}

static size_t trim_end(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL && text[len - 1] != '\0') {
        len--;
    }
    return len;
}

size_t traceback_shorten(struct json_value traceback, struct json_value name,
                         char out[TRACEBACK_BYTES])
{
    char end[KEEP_BYTES];
    bool cut;
    size_t len = strip_colours(end, decode_end(traceback, end, &cut));
    size_t from = 0;
    if (cut) { /* from the first whole line on */
        const char *line_break = memchr(end, '\n', len);
        from = line_break == NULL ? 0 : (size_t)(line_break - end) + 1;
    }
    size_t to = from + without_last_line(end + from, len - from, name);
    size_t kept = trim_end(end + from, to - from);
    size_t marker = cut ? sizeof cut_line - 1 : 0;
    memcpy(out, cut_line, marker);
    memcpy(out + marker, end + from, kept);
    return marker + kept;
}
