/* A client's wishes for the hosted search: checked, and written in one form. */
#include "surface/search_options.h"

#include "base/buf.h"
#include "base/domain.h"

#include <stdio.h>

enum { DOMAINS_MAX = 100 }; /* in one list; OpenAI takes as many */

struct writing {
    struct buf *out;
    const char *where;
    struct arena *arena;
};

static bool is_said(const struct search_option *option)
{
    return option->value != NULL && option->value->type != JSON_NULL;
}

static int refuse(const struct writing *w, const char *name, const char *what, struct sg_error *err)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s%s", w->where, w->where[0] == '\0' ? "" : ".", name);
    return error_set_param(err, SG_E_INVALID, path, "%s %s", path, what);
}

static void begin_member(const struct writing *w, const char *name)
{
    (void)buf_printf(w->out, "%s\"%s\":", w->out->len > 1 ? "," : "",
                     name); /* bounded by the body */
}

static int put_uses(const struct writing *w, const struct search_option *option,
                    struct sg_error *err)
{
    int64_t uses;
    if (!is_said(option)) {
        return SG_OK;
    }
    if (option->value->type != JSON_NUMBER || !json_int_of(*option->value, &uses) || uses < 1) {
        return refuse(w, option->name, "must be a whole number from 1 on", err);
    }
    begin_member(w, "max_uses");
    (void)buf_printf(w->out, "%lld", (long long)uses); /* small: fits */
    return SG_OK;
}

static int check_domains(const struct writing *w, const struct search_option *option,
                         size_t *ret_count, struct sg_error *err)
{
    struct json_value domain;
    struct json_walk walk = json_walk_of(*option->value);
    while (json_walk_element(&walk, &domain)) {
        struct place ignored;
        if (domain.type != JSON_STRING ||
            !domain_read(json_text_of(domain, w->arena), w->arena, &ignored)) {
            return refuse(w, option->name,
                          "must hold domains alone, as in \"example.com\" or \"example.com/blog\"",
                          err);
        }
        if (++*ret_count > DOMAINS_MAX) {
            return refuse(w, option->name, "must hold no more than 100 domains", err);
        }
    }
    return SG_OK;
}

static int put_domains(const struct writing *w, const char *name,
                       const struct search_option *option, struct sg_error *err)
{
    size_t count = 0;
    if (!is_said(option)) {
        return SG_OK;
    }
    if (option->value->type != JSON_ARRAY) {
        return refuse(w, option->name, "must be an array of domains", err);
    }
    int code = check_domains(w, option, &count, err);
    if (code == SG_OK && count > 0) {
        begin_member(w, name);
        (void)buf_append_str(w->out, option->value->raw); /* bounded by the body */
    }
    return code;
}

static int put_place(const struct writing *w, const char *path, const struct json_member *member,
                     struct sg_error *err)
{
    static const char *const names[] = {"country", "region", "city", "timezone"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!str_is(member->key, names[i]) || member->value.type == JSON_NULL) {
            continue;
        }
        if (member->value.type != JSON_STRING) {
            char name[128];
            (void)snprintf(name, sizeof name, "%s.%s", path, names[i]);
            return refuse(w, name, "must be a string", err);
        }
        begin_member(w, names[i]);
        (void)buf_append_str(w->out, member->value.raw); /* bounded by the body */
    }
    return SG_OK;
}

static int put_location(const struct writing *w, const struct search_option *option,
                        struct sg_error *err)
{
    struct json_member *members;
    size_t count;
    if (!is_said(option)) {
        return SG_OK;
    }
    if (option->value->type != JSON_OBJECT) {
        return refuse(w, option->name, "must be an object", err);
    }
    char where[128];
    (void)snprintf(where, sizeof where, "%s%s%s", w->where, w->where[0] == '\0' ? "" : ".",
                   option->name);
    int code = json_members(*option->value, where, w->arena, &members, &count, err);
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        code = put_place(w, option->name, &members[i], err);
    }
    return code;
}

static int put_size(const struct writing *w, const struct search_option *option,
                    struct sg_error *err)
{
    static const char *const sizes[] = {"low", "medium", "high"};
    if (!is_said(option)) {
        return SG_OK;
    }
    struct str size = option->value->type == JSON_STRING ? json_text_of(*option->value, w->arena)
                                                         : (struct str){0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (str_is(size, sizes[i])) {
            begin_member(w, "context_size");
            (void)buf_printf(w->out, "\"%s\"", sizes[i]); /* small: fits */
            return SG_OK;
        }
    }
    return refuse(w, option->name, "must be \"low\", \"medium\" or \"high\"", err);
}

static int put_all(const struct writing *w, const struct search_asked *asked, struct sg_error *err)
{
    int code = put_uses(w, &asked->max_uses, err);
    size_t before = w->out->len;
    code = code == SG_OK ? put_domains(w, "allowed_domains", &asked->allowed, err) : code;
    bool has_allowed = w->out->len > before;
    before = w->out->len;
    code = code == SG_OK ? put_domains(w, "blocked_domains", &asked->blocked, err) : code;
    if (code == SG_OK && asked->either_domains && has_allowed && w->out->len > before) {
        return refuse(w, asked->blocked.name, "must not stand beside allowed_domains", err);
    }
    code = code == SG_OK ? put_location(w, &asked->location, err) : code;
    return code == SG_OK ? put_size(w, &asked->context_size, err) : code;
}

int search_options_write(const struct search_asked *asked, const char *where, struct arena *arena,
                         struct str *ret, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    struct writing w = {&out, where, arena};
    *ret = (struct str){0};
    (void)buf_putc(&out, '{'); /* small: fits */
    int code = put_all(&w, asked, err);
    if (code != SG_OK || out.len == 1) {
        return code;
    }
    (void)buf_putc(&out, '}');
    char *copy = out.overflow ? NULL : arena_copy(arena, buf_str(&out));
    if (copy == NULL) {
        return error_set(err, SG_E_LIMIT, "The tools of the request are too large.");
    }
    *ret = (struct str){copy, out.len};
    return SG_OK;
}
