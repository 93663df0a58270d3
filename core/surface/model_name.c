/* The model's name as it passes: see model_name.h. Lenient: what is no JSON passes unchanged. */
#include "surface/model_name.h"

#include <string.h>

static const struct str data_field = STR("data:");

static void line_begin(struct model_name *m)
{
    m->field_len = 0;
    m->in_data = m->is_line_other = false;
    m->is_line_empty = true;
}

static void object_begin(struct model_name *m)
{
    m->depth = 0;
    m->in_string = m->is_escaped = m->is_key = m->awaits_value = m->is_cut = false;
    m->is_list = m->is_inner = false;
    m->key_len = 0;
}

void model_name_init(struct model_name *m, struct str name_json, bool is_stream)
{
    *m = (struct model_name){.name_json = name_json, .is_stream = is_stream};
    line_begin(m);
    object_begin(m);
}

static bool key_is(const struct model_name *m, struct str name)
{
    return m->key_len == name.len && memcmp(m->key, name.data, name.len) == 0;
}

/* Are the keys here looked at? */
static bool is_looked_at(const struct model_name *m)
{
    return (m->depth == 1 && !m->is_list) || (m->depth == 2 && m->is_inner);
}

static void bracket_open(struct model_name *m, char c)
{
    bool is_value = is_looked_at(m) && m->awaits_value;
    m->depth++;
    if (m->depth == 1) {
        m->is_list = c == '[';
    } else if (m->depth == 2) {
        m->is_inner =
            is_value && c == '{' && (key_is(m, STR("response")) || key_is(m, STR("message")));
    }
    m->awaits_value = false;
}

static void bracket_close(struct model_name *m)
{
    m->depth -= m->depth > 0;
    m->awaits_value = false;
}

enum verdict { BYTE_PASSES, BYTE_GOES, BYTE_IS_REPLACED };

static enum verdict string_begin(struct model_name *m)
{
    m->in_string = true;
    if (!is_looked_at(m)) {
        return BYTE_PASSES;
    }
    m->is_key = !m->awaits_value;
    if (m->is_key) {
        m->key_len = 0;
        return BYTE_PASSES;
    }
    m->is_cut = key_is(m, STR("model"));
    return m->is_cut ? BYTE_IS_REPLACED : BYTE_PASSES;
}

static enum verdict string_byte(struct model_name *m, char c)
{
    enum verdict verdict = m->is_cut ? BYTE_GOES : BYTE_PASSES;
    if (m->is_escaped) {
        m->is_escaped = false;
    } else if (c == '\\') {
        m->is_escaped = true;
    } else if (c == '"') {
        m->in_string = m->is_key = m->is_cut = false;
        return verdict;
    }
    if (m->is_key && m->key_len <= sizeof m->key) {
        if (m->key_len < sizeof m->key) {
            m->key[m->key_len] = c;
        }
        m->key_len++;
    }
    return verdict;
}

static enum verdict object_byte(struct model_name *m, char c)
{
    if (m->in_string) {
        return string_byte(m, c);
    }
    switch (c) {
    case '{':
    case '[':
        bracket_open(m, c);
        break;
    case '}':
    case ']':
        bracket_close(m);
        break;
    case ':':
        m->awaits_value = is_looked_at(m);
        break;
    case ',':
        m->awaits_value = false;
        break;
    case '"':
        return string_begin(m);
    default:
        break;
    }
    return BYTE_PASSES;
}

/* LF, CR, or both. An empty line ends the event. */
static void line_end(struct model_name *m, char c)
{
    bool is_second = c == '\n' && m->is_behind_cr;
    m->is_behind_cr = c == '\r';
    if (is_second) {
        return;
    }
    if (m->is_line_empty) {
        object_begin(m);
    }
    line_begin(m);
}

static enum verdict line_byte(struct model_name *m, char c)
{
    if (c == '\n' || c == '\r') {
        line_end(m, c);
        return BYTE_PASSES;
    }
    m->is_behind_cr = m->is_line_empty = false;
    if (m->in_data) {
        return object_byte(m, c);
    }
    m->is_line_other = m->is_line_other || c != data_field.data[m->field_len];
    m->field_len += !m->is_line_other;
    m->in_data = m->field_len == data_field.len;
    return BYTE_PASSES;
}

void model_name_feed(struct model_name *m, struct str bytes, struct buf *out)
{
    size_t from = 0; /* of what passes and is not yet copied */
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.data[i];
        enum verdict verdict = m->is_stream ? line_byte(m, c) : object_byte(m, c);
        if (verdict == BYTE_PASSES) {
            continue;
        }
        (void)buf_append(out, bytes.data + from, i - from); /* overflow shows in the buffer */
        from = i + 1;
        if (verdict == BYTE_IS_REPLACED) {
            (void)buf_append_str(out, m->name_json);
        }
    }
    if (from < bytes.len) {
        (void)buf_append(out, bytes.data + from, bytes.len - from);
    }
}
