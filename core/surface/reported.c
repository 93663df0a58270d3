/* Errors that upstreams report, and error bodies in the OpenAI form. */
#include "surface/reported.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

static const char *type_of(int status)
{
    switch (status) {
    case 403:
        return "permission_error";
    case 424:
        return "server_error";
    case 429:
        return "rate_limit_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

static const char *code_of(const struct sg_error *err, int status)
{
    if (err->reason[0] != '\0') {
        return err->reason;
    }
    return status == 401 ? "invalid_api_key" : status == 429 ? "rate_limit_exceeded" : NULL;
}

static void text_or_null(struct buf *out, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        (void)buf_puts(out, "null"); /* overflow is the owner's to ask for */
    } else {
        (void)buf_put_json(out, str_of(text));
    }
}

void openai_error_body(const struct sg_error *err, const char *request_id, struct buf *out)
{
    (void)request_id; /* told in a header here: clients show `message` as it is */
    int status = error_status(err);
    (void)buf_puts(out, "{\"error\":{\"message\":"); /* overflow is the owner's to ask for */
    (void)buf_put_json(out, str_of(err->message));
    (void)buf_printf(out, ",\"type\":\"%s\",\"param\":", type_of(status));
    text_or_null(out, err->param);
    (void)buf_puts(out, ",\"code\":");
    text_or_null(out, code_of(err, status));
    (void)buf_puts(out, "}}");
}

/* ---- what an upstream reports ---- */

static int code_of_status(int status)
{
    switch (status) {
    case 403:
        return SG_E_DENIED;
    case 404:
        return SG_E_NOT_FOUND;
    case 429:
        return SG_E_LIMIT;
    case 504:
        return SG_E_TIMEOUT;
    default:
        return status != 0 && status < 500 ? SG_E_INVALID : SG_E_UNAVAILABLE;
    }
}

/* A number, or text that is one, from 400 to 599; else 0. */
static int status_of(const struct json_member *member, struct arena *arena)
{
    if (member == NULL) {
        return 0;
    }
    struct json_value value = member->value;
    if (value.type == JSON_STRING) {
        struct str text = json_text_of(value, arena);
        if (text.len != 3 || strspn(text.data, "0123456789") < 3) {
            return 0;
        }
        value = (struct json_value){JSON_NUMBER, text};
    }
    int64_t status;
    return json_int_of(value, &status) && status >= 400 && status <= 599 ? (int)status : 0;
}

static void text_copy(const struct json_member *members, size_t count, const char *name,
                      struct arena *arena, char *to, size_t size)
{
    const struct json_member *member = json_find_type(members, count, name, JSON_STRING);
    if (member != NULL) {
        struct str text = json_text_of(member->value, arena);
        if (text.len < size) { /* a longer one is no code */
            (void)snprintf(to, size, "%.*s", (int)text.len, text.data);
        }
    }
}

int reported_members(const struct json_member *members, size_t count, struct arena *arena,
                     struct sg_error *err)
{
    const struct json_member *message = json_find_type(members, count, "message", JSON_STRING);
    struct str text = message == NULL ? STR("The upstream reports an error without a message")
                                      : json_text_of(message->value, arena);
    int status = status_of(json_find(members, count, "code"), arena);
    if (status == 0) {
        status = status_of(json_find(members, count, "status"), arena);
    }
    error_set(err, code_of_status(status), "%.*s", (int)(text.len < 4096 ? text.len : 4096),
              text.data);
    err->status = status;
    text_copy(members, count, "param", arena, err->param, sizeof err->param);
    if (status_of(json_find_type(members, count, "code", JSON_STRING), arena) == 0) {
        text_copy(members, count, "code", arena, err->reason, sizeof err->reason);
    }
    return err->code;
}

int reported_as(int status, struct sg_error *err)
{
    err->status = status;
    err->code = code_of_status(status);
    return err->code;
}

int reported_error(const struct json_text *text, bool is_error_event, struct arena *arena,
                   struct sg_error *err)
{
    const struct json_member *error = json_find(text->members, text->count, "error");
    if (error != NULL && error->value.type == JSON_OBJECT) {
        struct json_member *members = NULL;
        size_t count = 0;
        int code = json_members(error->value, "error", arena, &members, &count, err);
        return code != SG_OK ? error_set(err, SG_E_UNAVAILABLE, "The upstream reports an error")
                             : reported_members(members, count, arena, err);
    }
    if (error != NULL && error->value.type == JSON_STRING) {
        struct json_member as_message = {.key = STR("message"), .value = error->value};
        return reported_members(&as_message, 1, arena, err);
    }
    const struct json_member *object =
        json_find_type(text->members, text->count, "object", JSON_STRING);
    if (is_error_event || (object != NULL && str_is(json_text_of(object->value, arena), "error"))) {
        return reported_members(text->members, text->count, arena, err);
    }
    return SG_OK;
}

int answer_too_large(struct sg_error *err)
{
    return error_set(err, SG_E_UNAVAILABLE, "The upstream's answer is larger than %zu MiB",
                     LIMIT_BODY_BYTES / MIB);
}

/* Whatever is wrong with an upstream's answer is not the client's fault. */
int not_understood(struct sg_error *err)
{
    if (err->code == SG_E_UNAVAILABLE) { /* understood well enough to say so */
        return err->code;
    }
    char cause[sizeof err->message];
    memcpy(cause, err->message, sizeof cause);
    return error_set(err, SG_E_UNAVAILABLE, "The upstream's answer cannot be understood: %s",
                     cause);
}
