/* Changing a file: one passage, which must be there once, against another. What has changed is told as a unified diff
 * without context. */
#include "edit.h"

#include <stdio.h>
#include <string.h>

struct span {
    const char *data;
    size_t len;
};

/* Places where `part` stands in `whole`, also overlapping ones; counts no further than two. */
static unsigned places(struct span whole, struct span part, size_t *ret_first)
{
    unsigned count = 0;
    for (size_t at = 0; count < 2 && part.len <= whole.len - at;) {
        const char *found = memmem(whole.data + at, whole.len - at, part.data, part.len);
        if (found == NULL) {
            break;
        }
        if (count++ == 0) {
            *ret_first = (size_t)(found - whole.data);
        }
        at = (size_t)(found - whole.data) + 1;
    }
    return count;
}

/* ---- the difference ---- */

struct difference { /* the whole lines from `start` on that are others */
    size_t start, old_len, new_len;
    size_t line; /* lines before them */
};

static bool is_line_start(struct span text, size_t at)
{
    return at == 0 || text.data[at - 1] == '\n';
}

static size_t shorter(struct span a, struct span b)
{
    return a.len < b.len ? a.len : b.len;
}

static struct difference compare(struct span old, struct span new)
{
    size_t start = 0, end = 0, most = shorter(old, new);
    while (start < most && old.data[start] == new.data[start]) {
        start++;
    }
    while (!is_line_start(old, start)) {
        start--;
    }
    while (end < most - start && old.data[old.len - 1 - end] == new.data[new.len - 1 - end]) {
        end++;
    }
    while (end > 0 && !(is_line_start(old, old.len - end) && is_line_start(new, new.len - end))) {
        end--;
    }
    struct difference found = {start, old.len - end - start, new.len - end - start, 0};
    for (size_t i = 0; i < start; i++) {
        found.line += old.data[i] == '\n';
    }
    return found;
}

static size_t count_lines(struct span part)
{
    size_t count = part.len > 0 && part.data[part.len - 1] != '\n';
    for (size_t i = 0; i < part.len; i++) {
        count += part.data[i] == '\n';
    }
    return count;
}

/* Each line of the part with the sign before it, to the model and, as elements of an array, to the client. */
static void put_lines(struct edit *edit, struct span part, char sign, bool *is_first)
{
    static const char unended[] = "\\ No newline at end of file";
    for (size_t at = 0; at < part.len;) {
        const char *line_break = memchr(part.data + at, '\n', part.len - at);
        size_t len = line_break == NULL ? part.len - at : (size_t)(line_break - part.data) - at;
        struct text line = {0};
        text_put(&line, &sign, 1);
        text_put(&line, part.data + at, len);
        text_puts(&edit->bundle, *is_first ? "" : ",");
        *is_first = false;
        if (!line.overflow) {
            text_json(&edit->bundle, line.data, line.len);
            text_puts(&line, "\n");
            (void)report_event(&edit->report, SG_OUT_LOG_OUT, line.data, line.len);
        }
        if (line_break == NULL) {
            text_puts(&edit->bundle, ",");
            text_json(&edit->bundle, unended, sizeof unended - 1);
            report_puts(&edit->report, unended);
            report_puts(&edit->report, "\n");
        }
        text_clear(&line);
        at += len + 1;
    }
}

/* By the custom of diffs, a part without lines stands behind the line before it. */
static int tell_difference(struct edit *edit, struct span old, struct span new,
                           struct sg_error *err)
{
    struct difference found = compare(old, new);
    struct span old_part = {old.data + found.start, found.old_len};
    struct span new_part = {new.data + found.start, found.new_len};
    size_t old_lines = count_lines(old_part), new_lines = count_lines(new_part);
    size_t old_start = found.line + (old_lines > 0), new_start = found.line + (new_lines > 0);
    char head[128];
    snprintf(head, sizeof head, "]\n@@ -%zu,%zu +%zu,%zu @@\n", old_start, old_lines, new_start,
             new_lines);
    report_puts(&edit->report, "[changed: ");
    report_name(&edit->report, edit->path);
    report_puts(&edit->report, head);
    edit_bundle(edit, "str_replace");
    text_printf(
        &edit->bundle,
        ",\"old_start\":%zu,\"old_lines\":%zu,\"new_start\":%zu,\"new_lines\":%zu,\"lines\":[",
        old_start, old_lines, new_start, new_lines);
    bool is_first = true;
    put_lines(edit, old_part, '-', &is_first);
    put_lines(edit, new_part, '+', &is_first);
    text_puts(&edit->bundle, "]");
    return edit_end(edit, err);
}

/* ---- the change ---- */

static const char *not_one_place(unsigned count)
{
    return count == 0
               ? "'old_str' is not in the file: it must stand there exactly so, with the same "
                 "spaces and line breaks; nothing was changed"
               : "'old_str' is in the file more than once: take in lines around it so that it is "
                 "there once; nothing was changed";
}

static int replace(struct edit *edit, struct span old, struct span new, struct sg_error *err)
{
    text_puts(&edit->content, "");
    struct span before = {edit->content.data, edit->content.len};
    size_t at = 0;
    unsigned count = places(before, old, &at);
    if (count != 1) {
        return edit_wrong(edit, not_one_place(count), err);
    }
    TEXT_CLEANUP struct text changed = {.max = 2 * EDIT_BYTES_MAX};
    text_put(&changed, before.data, at);
    text_put(&changed, new.data, new.len);
    text_put(&changed, before.data + at + old.len, before.len - at - old.len);
    if (changed.overflow) {
        return edit_fail(edit, SG_E_LIMIT, "the file would become too large; nothing was changed",
                         err);
    }
    int code = edit_write(edit, changed.data, changed.len, err);
    return code != 0
               ? edit_fail(edit, code, tool_message(err, "the file could not be written"), err)
               : tell_difference(edit, before, (struct span){changed.data, changed.len}, err);
}

static bool decode(struct sg_call *call, struct json_value string, struct span *ret)
{
    ret->data = string.data == NULL ? "" : tool_decode(call, string, &ret->len);
    return ret->data != NULL;
}

int edit_replace(struct edit *edit, struct json_value old_string, struct json_value new_string,
                 struct sg_error *err)
{
    struct span old = {0}, new = {0};
    if (!decode(edit->call, old_string, &old) || !decode(edit->call, new_string, &new)) {
        return edit_wrong(edit, "'old_str' or 'new_str' is too long", err);
    }
    if (old.len == 0) {
        return edit_wrong(edit, "'old_str' is empty", err);
    }
    if (old.len == new.len && memcmp(old.data, new.data, old.len) == 0) {
        return edit_wrong(edit, "'old_str' and 'new_str' are the same", err);
    }
    int code = edit_read(edit, err);
    return code != 0 ? edit_fail(edit, code, edit_read_message(edit, err), err)
                     : replace(edit, old, new, err);
}
