/* Options as they are given, for who operates the gateway: members of a JSON object, without secrets. What the environment holds is
 * shown by its variable's name, as it is written. */
#include "conf/internal.h"

#include "base/check.h"

#define HIDDEN "\"***\""

/* ---- texts ---- */

/* A word with a URL in it: its user, password and query may be secrets. Whatever an '@' in the path would mean, what is before it
 * goes. */
static void put_word(struct str word, struct buf *out)
{
    const char *mark = memmem(word.data, word.len, "://", 3);
    if (mark == NULL) {
        (void)buf_append_str(out, word); /* overflow shows in the buffer */
        return;
    }
    struct str head = {word.data, (size_t)(mark - word.data) + 3};
    struct str rest = {head.data + head.len, word.len - head.len};
    const char *at = rest.len > 0 ? memrchr(rest.data, '@', rest.len) : NULL;
    (void)buf_append_str(out, head);
    if (at != NULL) {
        (void)buf_puts(out, "***");
        rest = (struct str){at, rest.len - (size_t)(at - rest.data)};
    }
    const char *query = rest.len > 0 ? memchr(rest.data, '?', rest.len) : NULL;
    if (query != NULL) {
        rest.len = (size_t)(query - rest.data);
    }
    (void)buf_append_str(out, rest);
    (void)buf_puts(out, query != NULL ? "?***" : "");
}

static void put_text(const char *text, struct buf *out)
{
    BUF_CLEANUP struct buf shown = {0};
    struct str rest = str_of(text);
    while (rest.len > 0) {
        const char *space = memchr(rest.data, ' ', rest.len);
        size_t len = space == NULL ? rest.len : (size_t)(space - rest.data);
        put_word((struct str){rest.data, len}, &shown);
        (void)buf_puts(&shown, space != NULL ? " " : "");
        len += space != NULL;
        rest = (struct str){rest.data + len, rest.len - len};
    }
    (void)buf_put_json(out, buf_str(&shown));
}

/* What is none of its type comes from the environment. */
static void put_scalar(const struct sg_option *option, const char *text, struct buf *out)
{
    bool flag = false;
    int64_t number = 0;
    if (option->type == SG_BOOL && value_is_bool(text, &flag)) {
        (void)buf_puts(out, flag ? "true" : "false");
    } else if (option->type == SG_INT && value_is_int(text, &number)) {
        (void)buf_printf(out, "%lld", (long long)number);
    } else {
        put_text(text, out);
    }
}

/* ---- values ---- */

static void put_member_name(const char *name, size_t len, struct buf *out)
{
    bool is_first = out->len > 0 && out->data[out->len - 1] == '{';
    (void)buf_puts(out, is_first ? "" : ",");
    (void)buf_put_json(out, (struct str){name, len});
    (void)buf_putc(out, ':');
}

static void put_strings(const struct sg_option *option, const struct conf_node *value,
                        struct buf *out)
{
    bool is_list = value->type == CONF_LIST;
    (void)buf_putc(out, '[');
    for (size_t i = 0; i < (is_list ? value->count : 1); i++) {
        const struct conf_node *item = is_list ? value->items[i] : value;
        (void)buf_puts(out, i > 0 ? "," : "");
        put_scalar(option, item->type == CONF_SCALAR ? item->text : "", out);
    }
    (void)buf_putc(out, ']');
}

/* Of a secret one the names are shown, as far as they are names. */
static void put_map(const struct sg_option *option, const struct conf_node *value, struct buf *out)
{
    bool is_secret = (option->flags & SG_SECRET) != 0;
    (void)buf_putc(out, '{');
    for (size_t i = 0; i < value->count; i++) {
        const struct conf_node *item = value->items[i];
        put_member_name(value->keys[i]->text, strcspn(value->keys[i]->text, CONF_NAME_ENDS), out);
        if (is_secret) {
            (void)buf_puts(out, HIDDEN);
        } else {
            put_text(item->type == CONF_SCALAR ? item->text : "", out);
        }
    }
    (void)buf_putc(out, '}');
}

static void put_list(const struct sg_option *option, const struct conf_node *value, struct buf *out)
{
    (void)buf_putc(out, '[');
    for (size_t i = 0; i < value->count; i++) {
        (void)buf_puts(out, i > 0 ? ",{" : "{");
        conf_show_all(option->fields, value->items[i], out);
        (void)buf_putc(out, '}');
    }
    (void)buf_putc(out, ']');
}

static void put_value(const struct sg_option *option, const struct conf_node *value,
                      struct buf *out)
{
    if (option->type == SG_MAP && value->type == CONF_MAP) {
        put_map(option, value, out);
    } else if ((option->flags & SG_SECRET) != 0) {
        (void)buf_puts(out, HIDDEN);
    } else if (option->type == SG_LIST && value->type == CONF_LIST) {
        put_list(option, value, out);
    } else if (option->type == SG_STRINGS && value->type != CONF_MAP) {
        put_strings(option, value, out);
    } else if (value->type == CONF_SCALAR) {
        put_scalar(option, value->text, out);
    } else {
        (void)buf_puts(out, "null");
    }
}

/* Defaults were read once already: when the table was, or a configuration. */
static void put_default(const struct sg_option *option, struct buf *out)
{
    bool is_many = option->type == SG_STRINGS || option->type == SG_LIST || option->type == SG_MAP;
    if (option->def == NULL) {
        (void)buf_puts(out, option->type == SG_MAP ? "{}" : is_many ? "[]" : "null");
        return;
    }
    if (!is_many) {
        put_scalar(option, option->def, out);
        return;
    }
    struct arena *arena = arena_new(0);
    struct conf_problems problems = {0};
    const struct conf_node *value = node_parse(str_of(option->def), arena, &problems);
    CHECK(value != NULL && problems.count == 0);
    put_value(option, value, out);
    arena_free(arena);
}

void conf_show(const struct sg_option *option, const struct conf_node *value, struct buf *out)
{
    put_member_name(option->name, strlen(option->name), out);
    if (conf_is_absent(value)) {
        put_default(option, out);
    } else {
        put_value(option, value, out);
    }
}

void conf_show_all(const struct sg_option *table, const struct conf_node *map, struct buf *out)
{
    for (; table != NULL && table->name != NULL; table++) {
        const struct conf_node *value = conf_get(map, table->name);
        if ((table->flags & SG_DEPRECATED) == 0 || !conf_is_absent(value)) {
            conf_show(table, value, out);
        }
    }
}
