/* What the writers of requests share. The owner of the text asks for overflow. */
#include "translate/writing.h"

void json_comma_put(struct buf *out)
{
    char last = out->len > 0 ? out->data[out->len - 1] : '[';
    (void)buf_puts(out, last == '[' || last == '{' ? "" : ",");
}

void json_member_put(struct buf *out, const char *name, struct str text)
{
    json_comma_put(out);
    (void)buf_printf(out, "\"%s\":", name);
    (void)buf_put_json(out, text);
}

void json_raw_put(struct buf *out, const char *name, struct str raw)
{
    json_comma_put(out);
    (void)buf_printf(out, "\"%s\":", name);
    (void)buf_append_str(out, raw);
}

bool choice_allows(const struct choice *choice, struct str name)
{
    bool is_among = choice->kind != CHOICE_ALLOWED;
    for (size_t i = 0; !is_among && i < choice->count; i++) {
        is_among = str_eq(choice->names[i], name);
    }
    return is_among;
}
