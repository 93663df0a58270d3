/* Errors in the chat form: HTTP bodies, the event inside a stream, and those that an upstream reports. */
#include "surface/chat.h"

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

void chat_error_body(const struct sg_error *err, const char *request_id, struct buf *out)
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

void chat_fail(struct surface_exchange *exchange, const struct sg_error *err, struct buf *out)
{
    (void)exchange;                /* nothing of the answer so far changes the event */
    (void)buf_puts(out, "data: "); /* overflow is the owner's to ask for */
    chat_error_body(err, "", out);
    (void)buf_puts(out, "\n\ndata: [DONE]\n\n");
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
    const struct json_member *member = chat_find(members, count, name, JSON_STRING);
    if (member != NULL) {
        struct str text = json_text_of(member->value, arena);
        if (text.len < size) { /* a longer one is no code */
            (void)snprintf(to, size, "%.*s", (int)text.len, text.data);
        }
    }
}

static int report(const struct json_member *members, size_t count, struct arena *arena,
                  struct sg_error *err)
{
    const struct json_member *message = chat_find(members, count, "message", JSON_STRING);
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
    if (status_of(chat_find(members, count, "code", JSON_STRING), arena) == 0) {
        text_copy(members, count, "code", arena, err->reason, sizeof err->reason);
    }
    return err->code;
}

int chat_upstream_error(const struct json_text *text, bool is_error_event, struct arena *arena,
                        struct sg_error *err)
{
    const struct json_member *error = json_find(text->members, text->count, "error");
    if (error != NULL && error->value.type == JSON_OBJECT) {
        struct json_member *members = NULL;
        size_t count = 0;
        int code = json_members(error->value, "error", arena, &members, &count, err);
        return code != SG_OK ? error_set(err, SG_E_UNAVAILABLE, "The upstream reports an error")
                             : report(members, count, arena, err);
    }
    if (error != NULL && error->value.type == JSON_STRING) {
        struct json_member as_message = {.key = STR("message"), .value = error->value};
        return report(&as_message, 1, arena, err);
    }
    const struct json_member *object = chat_find(text->members, text->count, "object", JSON_STRING);
    if (is_error_event || (object != NULL && str_is(json_text_of(object->value, arena), "error"))) {
        return report(text->members, text->count, arena, err);
    }
    return SG_OK;
}
