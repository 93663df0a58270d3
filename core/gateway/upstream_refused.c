/* Answers of upstreams that are no answer: what the client is told of a refusal, in its own terms, and what it is not told. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    ERROR_BODY_BYTES_MAX = 64 * 1024,
    ERROR_BODY_MS = 2000 /* an error is told without its words where they take longer */
};

/* message, code and param of `error` in the body, where it is an error of one of the API forms; of some servers they
 * stand at the top, of others `error` is the message. */
static void read_error_body(struct request *r, struct str body, struct sg_error *err)
{
    struct json_text text;
    struct sg_error ignored = {0};
    if (json_scan(body, r->arena, &text, &ignored) != 0) {
        return;
    }
    struct json_member *members = text.members, as_message;
    size_t count = text.count;
    const struct json_member *error = json_find(text.members, text.count, "error");
    if (error != NULL && error->value.type == JSON_STRING) {
        as_message = (struct json_member){.key = STR("message"), .value = error->value};
        members = &as_message;
        count = 1;
    } else if (error != NULL &&
               (error->value.type != JSON_OBJECT ||
                json_members(error->value, "error", r->arena, &members, &count, &ignored) != 0)) {
        return;
    }
    static const char *const names[] = {"message", "code", "param"};
    char *const to[] = {err->message, err->reason, err->param};
    const size_t sizes[] = {sizeof err->message, sizeof err->reason, sizeof err->param};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(members, count, names[i]);
        if (member != NULL && member->value.type == JSON_STRING) {
            struct str value = json_text_of(member->value, r->arena);
            size_t len = utf8_cut(value, sizes[i] - 1);
            memcpy(to[i], value.data, len);
            to[i][len] = '\0';
        }
    }
}

static void keep_retry_after(struct upstream_call *call)
{
    struct request *r = call->request;
    struct str retry_after = upstream_field(call, "retry-after");
    if (retry_after.len > 0 && http_value_valid(retry_after)) {
        r->retry_after = (struct str){arena_copy(r->arena, retry_after), retry_after.len};
    }
}

static int code_of_status(int status)
{
    return status == 429 ? SG_E_LIMIT : status < 500 ? SG_E_INVALID : SG_E_UNAVAILABLE;
}

/* The operator's key was refused, not the client's. */
static int credentials_refused(struct sg_error *err)
{
    return error_set(err, SG_E_UNAVAILABLE,
                     "The model server refused the gateway's own credentials.");
}

/* Words that show the operator's key are not told; the status is, where it is one of a failure. */
static int words_keep_back(struct upstream_call *call, int status, struct sg_error *err)
{
    snprintf(call->request->cause, sizeof call->request->cause,
             "the upstream answered %d and showed its credentials", call->status);
    keep_retry_after(call);
    if (status == 401 || status == 403 || status < 400 || status > 599) {
        return credentials_refused(err);
    }
    error_set(err, code_of_status(status),
              "The model server answered with status %d; its words held the gateway's own "
              "credentials and are kept back.",
              status);
    err->status = status;
    return err->code;
}

int upstream_credentials_shown(struct upstream_call *call, struct sg_error *err)
{
    return words_keep_back(call, call->status, err);
}

int upstream_turn_failed(struct upstream_call *call, struct sg_error *err)
{
    return upstream_secret_in(call->request->upstream, str_of(err->message))
               ? words_keep_back(call, err->status, err)
               : err->code;
}

int upstream_call_failed(struct upstream_call *call, struct sg_error *err)
{
    struct request *r = call->request;
    struct buf body = {.max = ERROR_BODY_BYTES_MAX};
    upstream_call_rest(call, ERROR_BODY_MS, &body);
    int code = code_of_status(call->status);
    error_set(err, code, "The model server answered with status %d.", call->status);
    read_error_body(r, buf_str(&body), err);
    buf_clear(&body);
    translated_failed(call, err);
    renamed_failed(r, err);
    err->status = call->status >= 400 && call->status <= 599 ? call->status : 502;
    snprintf(r->cause, sizeof r->cause, "the upstream answered %d", call->status);
    keep_retry_after(call);
    if (call->status == 401 && !r->upstream->passthrough) {
        return credentials_refused(err);
    }
    return upstream_secret_in(r->upstream, str_of(err->message))
               ? upstream_credentials_shown(call, err)
               : code;
}
