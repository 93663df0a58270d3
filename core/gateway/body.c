/* The client's body: read, scanned once where it is JSON, and rid of control keys. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "http/form.h"
#include "session/control_keys.h"

#include <stdio.h>
#include <string.h>

enum body_storage { BODY_RECEIVED, BODY_CUT, BODY_HOOKED };

static struct str media_type(const struct http_head *head)
{
    struct str type = http_head_get(head, "content-type");
    const char *end = type.len > 0 ? memchr(type.data, ';', type.len) : NULL;
    if (end != NULL) {
        type.len = (size_t)(end - type.data);
    }
    return str_trim(type);
}

static bool is_json_type(struct str type)
{
    return str_eq_nocase(type, STR("application/json")) ||
           (type.len > 17 && str_eq_nocase((struct str){type.data, 12}, STR("application/")) &&
            str_eq_nocase((struct str){type.data + type.len - 5, 5}, STR("+json")));
}

/* In another coding the bytes could say something else to whoever heeds it. */
static bool is_utf8(struct str content_type)
{
    struct str charset;
    return media_parameter(content_type, "charset", &charset) &&
           (charset.data == NULL || str_eq_nocase(charset, STR("utf-8")) ||
            str_eq_nocase(charset, STR("utf8")) || str_eq_nocase(charset, STR("us-ascii")));
}

int body_check_type(const struct request *r, struct sg_error *err)
{
    return http_head_count(http_request_head(r->exchange), "content-type") > 1
               ? error_set(err, SG_E_INVALID, "Content-Type is given twice.")
               : 0;
}

/* What kind of body may stand here? */
static int check_types(struct request *r, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    struct str type = media_type(head), coding = http_head_get(head, "content-encoding");
    r->is_json = is_json_type(type);
    if (body_check_type(r, err) != 0) {
        return err->code;
    }
    bool must_be_json = r->route.surface_name != NULL;
    if (must_be_json && !r->is_json) {
        error_set(err, SG_E_INVALID,
                  type.len > 0
                      ? "The body must be JSON: send 'Content-Type: application/json', not '%.*s'."
                      : "The body must be JSON: send 'Content-Type: application/json'.%.*s",
                  (int)utf8_cut(type, 80), type.len > 0 ? type.data : "");
        err->status = 415;
    } else if (r->is_json && !is_utf8(http_head_get(head, "content-type"))) {
        error_set(err, SG_E_INVALID, "The body must be UTF-8: send 'charset=utf-8', or none.");
        err->status = 415;
    } else if (coding.len > 0 && !str_eq_nocase(coding, STR("identity"))) {
        error_set(err, SG_E_INVALID,
                  "Content-Encoding '%.*s' is not taken here: send the body as it is.",
                  (int)utf8_cut(coding, 80), coding.data);
        err->status = 415;
    }
    return err->code;
}

/* Of what is no JSON, forms name their model; anything else cannot be routed. */
static int read_form_model(struct request *r, struct sg_error *err)
{
    struct str type = http_head_get(http_request_head(r->exchange), "content-type");
    if (form_is(type)) {
        int rc = form_field(type, r->body.raw, "model", &r->model, err);
        if (rc == 0 && !http_value_valid(r->model)) {
            rc = error_set_param(err, SG_E_INVALID, "model",
                                 "'model' must not hold control characters.");
        }
        return rc;
    }
    error_set(err, SG_E_INVALID,
              "The body must be JSON or a form: send 'Content-Type: application/json' or "
              "'multipart/form-data'.");
    err->status = 415;
    return err->code;
}

/* Two headers of the name may have been read in two ways by what stands in front, so nobody guesses. */
static int read_session_header(struct request *r, const char *name, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    size_t count = http_head_count(head, name);
    if (count > 1) {
        return error_set_param(err, SG_E_INVALID, name,
                               "The header '%s' with the session id is given %zu times: send one.",
                               name, count);
    }
    r->session_id = http_head_get(head, name);
    if (r->session_id.len > LIMIT_SESSION_ID_BYTES) {
        return error_set_param(err, SG_E_INVALID, name,
                               "The session id in header '%s' is longer than %d bytes.", name,
                               LIMIT_SESSION_ID_BYTES);
    }
    return 0;
}

static int read_session_id(struct request *r, struct sg_error *err)
{
    const char *const *source = r->gateway->config->sessions.id_from;
    int rc = 0;
    for (; *source != NULL && r->session_id.len == 0 && rc == 0; source++) {
        const char *one[] = {*source, NULL};
        if (strncmp(*source, "header:", 7) == 0) {
            rc = read_session_header(r, *source + 7, err);
        } else {
            rc = session_id_read(&r->body, one, r->arena, &r->session_id, err);
        }
    }
    return rc;
}

/* The scan, and what everybody needs of it. Also after a hook has put another text in its place. */
static int body_scan(struct request *r, struct str text, struct sg_error *err)
{
    int rc = json_scan(text, r->arena, &r->body, err);
    if (rc != 0) {
        return error_context(err, "The body is not valid JSON");
    }
    if (r->body.root.type != JSON_OBJECT) {
        return error_set(err, SG_E_INVALID, "The body must be a JSON object.");
    }
    const struct json_member *model = json_find(r->body.members, r->body.count, "model");
    if (model != NULL && model->value.type == JSON_STRING) {
        r->model = json_text_of(model->value, r->arena);
        if (r->model.len > 0 && memchr(r->model.data, '\0', r->model.len) != NULL) {
            return error_set_param(err, SG_E_INVALID, "model", "'model' must not hold a NUL.");
        }
    } else if (model != NULL) {
        return error_set_param(err, SG_E_INVALID, "model", "'model' must be a string.");
    }
    return 0;
}

int body_receive(struct request *r, struct sg_error *err)
{
    struct buf *received = &r->body_storage[BODY_RECEIVED];
    int rc = check_types(r, err);
    http_body_account(r->exchange, &r->account);
    if (rc == 0) {
        rc = http_read_body(r->exchange, LIMIT_BODY_BYTES, received, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (!r->is_json) {
        r->body = (struct json_text){.raw = buf_str(received)};
        return read_form_model(r, err);
    }
    rc = body_scan(r, buf_str(received), err);
    return rc == 0 ? read_session_id(r, err) : rc;
}

int body_replace(struct request *r, struct buf *text_take, struct sg_error *err)
{
    struct buf *hooked = &r->body_storage[BODY_HOOKED], old = *hooked;
    *hooked = *text_take;
    *text_take = (struct buf){0};
    int rc = account_take(&r->account, hooked->len, err);
    rc = rc == 0 ? body_scan(r, buf_str(hooked), err) : rc;
    account_give(&r->account, rc == 0 ? old.len : 0);
    buf_clear(&old); /* the one that the scan has replaced */
    return rc;
}

void body_restore(struct request *r, const struct json_text *beginning)
{
    static const enum body_storage later[] = {BODY_CUT, BODY_HOOKED};
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        account_give(&r->account, r->body_storage[later[i]].len);
        buf_clear(&r->body_storage[later[i]]);
    }
    r->body = *beginning;
}

int body_cut_control_keys(struct request *r, bool intercepted, struct sg_error *err)
{
    if (!r->is_json) {
        return 0;
    }
    struct json_text cut;
    int rc =
        control_keys_cut(&r->body, intercepted, r->arena, &r->body_storage[BODY_CUT], &cut, err);
    if (rc == 0) {
        r->body = cut;
        rc = account_take(&r->account, r->body_storage[BODY_CUT].len, err);
    }
    return rc;
}
