/* Models that an upstream knows by another name than the client (named_model.h): each body goes up under the upstream's name, and
 * whatever comes back has the client's. Both happen at the upstream's own edge, so that nothing in between, translation and
 * stored answers included, knows of two names. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

static bool is_renamed(const struct request *r)
{
    return r->asked_model != NULL && !str_is(r->model, r->asked_model);
}

/* Where the name stands in the body: a string of JSON with its quotes, or the field of a form. A body that a plugin has taken it
 * out of has none. */
static int find_name(struct request *r, struct str body, struct str *ret, struct sg_error *err)
{
    struct json_text text = r->body;
    *ret = (struct str){0};
    if (!r->is_json) {
        *ret = r->model;
        return 0;
    }
    if (body.data != text.raw.data || body.len != text.raw.len) { /* a turn's */
        int rc = json_scan(body, r->arena, &text, err);
        if (rc != 0) {
            return rc;
        }
    }
    const struct json_member *model =
        json_find_type(text.members, text.count, "model", JSON_STRING);
    *ret = model != NULL ? model->value.raw : (struct str){0};
    return 0;
}

/* The body with the upstream's name in it, on the request's account. */
static int body_put(struct upstream_call *call, struct str body, struct str name,
                    struct sg_error *err)
{
    struct request *r = call->request;
    struct buf *out = &call->renamed;
    size_t at = (size_t)(name.data - body.data), behind = at + name.len;
    CHECK(behind <= body.len);
    out->max = 2 * LIMIT_BODY_BYTES; /* a name within its limit behind a body within its own */
    (void)buf_append(out, body.data, at);
    if (r->is_json) {
        (void)buf_put_json(out, str_of(r->asked_model));
    } else {
        (void)buf_puts(out, r->asked_model);
    }
    (void)buf_append(out, body.data + behind, body.len - behind); /* overflow cannot be */
    int rc = account_take(&r->account, out->len, err);
    call->renamed_bytes = rc == 0 ? out->len : 0;
    return rc;
}

int renamed_begin(struct upstream_call *call, struct str *body, struct sg_error *err)
{
    struct request *r = call->request;
    struct str name;
    if (!is_renamed(r)) {
        return 0;
    }
    int rc = find_name(r, *body, &name, err);
    if (rc != 0 || name.data == NULL) {
        return rc;
    }
    rc = body_put(call, *body, name, err);
    *body = rc == 0 ? buf_str(&call->renamed) : *body;
    return rc;
}

void renamed_head(struct upstream_call *call)
{
    struct request *r = call->request;
    struct str coding = upstream_field(call, "content-encoding");
    bool is_plain = coding.len == 0 || str_eq_nocase(coding, STR("identity"));
    if (!is_renamed(r) || !is_plain) {
        return;
    }
    struct buf name = {0};
    (void)buf_put_json(&name, r->model); /* bounded as bodies are */
    call->is_renamed = true;
    call->name_json = (struct str){arena_copy(r->arena, buf_str(&name)), name.len};
    buf_clear(&name);
    model_name_init(&call->name, call->name_json, call->is_stream);
    call->held = renamed_piece(call, call->held);
}

struct str renamed_piece(struct upstream_call *call, struct str piece)
{
    if (!call->is_renamed || piece.len == 0) {
        return piece;
    }
    buf_reset(&call->renamed_answer);
    model_name_feed(&call->name, piece, &call->renamed_answer);
    return buf_str(&call->renamed_answer);
}

/* ---- words about it ---- */

static bool is_of_a_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.' || c == '/' || c == ':';
}

/* The next place where the name stands by itself; NULL: none. */
static const char *find_alone(struct str text, struct str name)
{
    for (size_t at = 0; at + name.len <= text.len; at++) {
        const char *found = memmem(text.data + at, text.len - at, name.data, name.len);
        if (found == NULL) {
            return NULL;
        }
        at = (size_t)(found - text.data);
        const char *end = text.data + text.len, *behind = found + name.len;
        bool is_point = behind < end && (*behind == '.' || *behind == ':') && /* of a sentence */
                        (behind + 1 == end || !is_of_a_name(behind[1]));
        if ((at == 0 || !is_of_a_name(found[-1])) &&
            (behind == end || is_point || !is_of_a_name(*behind))) {
            return found;
        }
    }
    return NULL;
}

/* What would have to be written otherwise in JSON is not looked for. */
static bool is_simple(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_of_a_name(name.data[i]) && name.data[i] != ' ') {
            return false;
        }
    }
    return name.len > 0;
}

void renamed_words(const struct request *r, struct buf *text)
{
    struct str left = buf_str(text);
    struct buf out = {.max = text->max};
    const char *found;
    if (!is_renamed(r) || !is_simple(str_of(r->asked_model)) || !is_simple(r->model)) {
        return;
    }
    while ((found = find_alone(left, str_of(r->asked_model))) != NULL) {
        size_t len = (size_t)(found - left.data), skip = len + strlen(r->asked_model);
        (void)buf_append(&out, left.data, len); /* overflow shows in the buffer */
        (void)buf_append_str(&out, r->model);
        left = (struct str){left.data + skip, left.len - skip};
    }
    (void)buf_append_str(&out, left);
    buf_clear(text);
    *text = out;
}

void renamed_failed(const struct request *r, struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {0};
    (void)buf_puts(&text, err->message);
    renamed_words(r, &text);
    size_t len = utf8_cut(buf_str(&text), sizeof err->message - 1);
    memcpy(err->message, text.data, len);
    err->message[len] = '\0';
}

void renamed_end(struct upstream_call *call)
{
    account_give(&call->request->account, call->renamed_bytes);
    call->renamed_bytes = 0;
    buf_clear(&call->renamed);
    buf_clear(&call->renamed_answer);
}
