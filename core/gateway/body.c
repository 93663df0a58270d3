/* The client's body: read, scanned once where it is JSON, and rid of control keys. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
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

/* What kind of body may stand here? */
static int check_types(struct request *r, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    struct str type = media_type(head), coding = http_head_get(head, "content-encoding");
    r->is_json = is_json_type(type);
    bool must_be_json = r->route.surface_name != NULL;
    if (must_be_json && !r->is_json) {
        error_set(err, SG_E_INVALID,
                  "The body must be JSON: send 'Content-Type: application/json', not '%.*s'.",
                  (int)utf8_cut(type, 80), type.len > 0 ? type.data : "");
        err->status = 415;
    } else if (coding.len > 0 && !str_eq_nocase(coding, STR("identity"))) {
        error_set(err, SG_E_INVALID,
                  "Content-Encoding '%.*s' is not taken here: send the body as it is.",
                  (int)utf8_cut(coding, 80), coding.data);
        err->status = 415;
    }
    return err->code;
}

/* The value of the part named "model" of a multipart form. Only found, not parsed as a whole: the rest is not ours. */
static struct str multipart_model(struct str body)
{
    static const char field[] = "name=\"model\"";
    const char *at = memmem(body.data, body.len, field, sizeof field - 1);
    if (at == NULL) {
        return (struct str){0};
    }
    size_t left = body.len - (size_t)(at - body.data);
    const char *value = memmem(at, left < 512 ? left : 512, "\r\n\r\n", 4);
    if (value == NULL) {
        return (struct str){0};
    }
    value += 4;
    left = body.len - (size_t)(value - body.data);
    const char *end = memmem(value, left < 512 ? left : 512, "\r\n", 2);
    return end == NULL ? (struct str){0} : (struct str){value, (size_t)(end - value)};
}

/* What a relayed request may not name, since the operator's key would open another tenant's stored state. */
static int check_stored_state(struct request *r, struct sg_error *err)
{
    static const char *const names[] = {"previous_response_id", "conversation"};
    if (r->gateway->config->auth.mode == AUTH_NONE || r->route.surface_name == NULL ||
        strcmp(r->route.surface_name, "responses") != 0) {
        return 0; /* with one tenant there is no other */
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(r->body.members, r->body.count, names[i]);
        if (member != NULL && member->value.type != JSON_NULL) {
            return error_set_param(err, SG_E_INVALID, names[i],
                                   "'%s' is not available on this gateway: send the whole input.",
                                   names[i]);
        }
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
            struct str value = http_head_get(http_request_head(r->exchange), *source + 7);
            if (value.len > LIMIT_SESSION_ID_BYTES) {
                return error_set_param(err, SG_E_INVALID, *source + 7,
                                       "The session id in header '%s' is longer than %d bytes.",
                                       *source + 7, LIMIT_SESSION_ID_BYTES);
            }
            r->session_id = value;
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
    } else if (model != NULL) {
        return error_set_param(err, SG_E_INVALID, "model", "'model' must be a string.");
    }
    return check_stored_state(r, err);
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
        r->model = multipart_model(r->body.raw);
        return 0;
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
