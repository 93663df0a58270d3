/* Results of calls as text: cut to a size, and told in words where they cannot be told as results. */
#include "surface/results.h"

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

enum { CUT_MARK_BYTES = 80 }; /* of the line that says how much was cut */

bool result_cut(struct buf *result, size_t bytes_max, const char *why)
{
    CHECK(bytes_max > 2 * CUT_MARK_BYTES);
    if (result->len <= bytes_max) {
        return false;
    }
    struct str text = buf_str(result);
    size_t part = (bytes_max - CUT_MARK_BYTES) / 2, head = utf8_cut(text, part);
    size_t tail = text.len - part;
    while (tail < text.len && ((unsigned char)text.data[tail] & 0xC0) == 0x80) {
        tail++;
    }
    BUF_CLEANUP struct buf cut = {0};
    (void)buf_append(&cut, text.data, head); /* small: fits */
    (void)buf_printf(&cut, "\n[… %zu bytes cut: %s …]\n", tail - head, why);
    (void)buf_append(&cut, text.data + tail, text.len - tail);
    CHECK(cut.len <= bytes_max);
    buf_reset(result);
    (void)buf_append_str(result, buf_str(&cut));
    return true;
}

void result_text_put(struct str name, struct str arguments, struct str result, struct buf *out)
{
    (void)buf_puts(out, out->len > 0 ? "\n\n[" : "["); /* overflow is asked for by the owner */
    (void)buf_append_str(out, name);
    (void)buf_puts(out, " was called with ");
    (void)buf_append_str(out, arguments);
    (void)buf_puts(out, " and returned:]\n");
    (void)buf_append_str(out, result);
}

bool result_members_put(struct str json, const char *const *names, struct buf *out)
{
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    bool is_there = false;
    if (json_scan(json, scratch, &text, &err) == SG_OK) {
        for (; *names != NULL; names++) {
            const struct json_member *member =
                json_find_type(text.members, text.count, *names, JSON_STRING);
            if (member != NULL) {
                (void)buf_append_str(out, json_text_of(member->value, scratch)); /* the owner's */
                (void)buf_putc(out, '\n');
                is_there = true;
            }
        }
    }
    arena_free(scratch);
    return is_there;
}
