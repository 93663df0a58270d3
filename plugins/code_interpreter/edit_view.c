/* Viewing a file: its lines with their numbers for the model, as they are for the client. What is not text is named by
 * its first bytes. */
#include "edit.h"

#include <stdio.h>
#include <string.h>

/* ---- what it is ---- */

struct signature {
    const char *bytes;
    size_t len, at;
    const char *type;
};

/* "image" or "pdf"; NULL: neither. */
static const char *type_of(const struct text *content)
{
    static const struct signature signatures[] = {
        {"\x89PNG\r\n\x1A\n", 8, 0, "image"},
        {"\xFF\xD8\xFF", 3, 0, "image"},
        {"GIF87a", 6, 0, "image"},
        {"GIF89a", 6, 0, "image"},
        {"WEBP", 4, 8, "image"},
        {"%PDF-", 5, 0, "pdf"},
    };
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const struct signature *one = &signatures[i];
        if (content->len >= one->at + one->len &&
            memcmp(content->data + one->at, one->bytes, one->len) == 0) {
            return one->type;
        }
    }
    return NULL;
}

static void put_base64(struct text *out, const struct text *data)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)data->data;
    for (size_t at = 0; at < data->len; at += 3) {
        size_t left = data->len - at;
        unsigned group = (unsigned)bytes[at] << 16 | (left > 1 ? (unsigned)bytes[at + 1] << 8 : 0) |
                         (left > 2 ? bytes[at + 2] : 0);
        char four[4] = {letters[group >> 18], letters[group >> 12 & 63],
                        left > 1 ? letters[group >> 6 & 63] : '=',
                        left > 2 ? letters[group & 63] : '='};
        text_put(out, four, sizeof four);
    }
}

static int view_picture(struct edit *edit, const char *type, struct sg_error *err)
{
    report_puts(&edit->report, type[0] == 'p' ? "[pdf: " : "[image: ");
    report_name(&edit->report, edit->path);
    report_puts(&edit->report, ", ");
    report_size(&edit->report, edit->content.len);
    report_puts(&edit->report, ", not shown]");
    edit_bundle(edit, "view");
    text_printf(&edit->bundle, ",\"file_type\":\"%s\",\"content\":\"", type);
    put_base64(&edit->bundle, &edit->content);
    text_puts(&edit->bundle, "\",\"num_lines\":null,\"start_line\":null,\"total_lines\":null");
    return edit_end(edit, err);
}

/* ---- text ---- */

/* Behind the line that begins at `at`. */
static size_t line_end(const struct text *content, size_t at)
{
    const char *line_break = memchr(content->data + at, '\n', content->len - at);
    return line_break == NULL ? content->len : (size_t)(line_break - content->data) + 1;
}

struct excerpt {
    size_t from, to; /* bytes */
    int64_t lines, total;
};

/* The lines `first` to `last` (-1: all that follow). */
static struct excerpt excerpt_of(const struct text *content, int64_t first, int64_t last)
{
    struct excerpt found = {.from = content->len, .to = content->len};
    for (size_t at = 0; at < content->len;) {
        size_t end = line_end(content, at);
        found.total++;
        if (found.total == first) {
            found.from = at;
        }
        if (found.total >= first && (last == -1 || found.total <= last)) {
            found.to = end;
            found.lines++;
        }
        at = end;
    }
    return found;
}

static void tell_lines(struct edit *edit, const struct excerpt *excerpt, int64_t first)
{
    for (size_t at = excerpt->from; at < excerpt->to;) {
        char number[32];
        size_t end = line_end(&edit->content, at);
        snprintf(number, sizeof number, "%6lld\t", (long long)first++);
        report_puts(&edit->report, number);
        (void)report_event(&edit->report, SG_OUT_LOG_OUT, edit->content.data + at, end - at);
        at = end;
    }
    if (excerpt->lines == 0) {
        report_puts(&edit->report, "[empty file: ");
        report_name(&edit->report, edit->path);
        report_puts(&edit->report, "]");
    }
}

static int view_text(struct edit *edit, int64_t first, int64_t last, struct sg_error *err)
{
    struct excerpt excerpt = excerpt_of(&edit->content, first, last);
    if (first > 1 && first > excerpt.total) {
        char message[128];
        snprintf(message, sizeof message, "'view_range' begins at line %lld, and the file has %lld",
                 (long long)first, (long long)excerpt.total);
        return edit_wrong(edit, message, err);
    }
    tell_lines(edit, &excerpt, first);
    edit_bundle(edit, "view");
    text_puts(&edit->bundle, ",\"file_type\":\"text\",\"content\":");
    text_json(&edit->bundle, edit->content.data + excerpt.from, excerpt.to - excerpt.from);
    text_printf(&edit->bundle, ",\"num_lines\":%lld,\"start_line\":%lld,\"total_lines\":%lld",
                (long long)excerpt.lines, (long long)first, (long long)excerpt.total);
    return edit_end(edit, err);
}

int edit_view(struct edit *edit, int64_t first, int64_t last, struct sg_error *err)
{
    text_puts(&edit->content, ""); /* also of an empty file there is something to point to */
    const char *type = type_of(&edit->content);
    if (type != NULL) {
        return view_picture(edit, type, err);
    }
    if (memchr(edit->content.data, '\0', edit->content.len) != NULL) {
        return edit_wrong(edit, "the file is binary: look at it with a shell command or with code",
                          err);
    }
    return view_text(edit, first, last, err);
}
