/* Errors in Anthropic's form: those that we tell, and those that an upstream reports. */
#include "surface/messages.h"

static const struct {
    int status;
    const char *type;
} types[] = {{400, "invalid_request_error"},
             {401, "authentication_error"},
             {402, "billing_error"},
             {403, "permission_error"},
             {404, "not_found_error"},
             {413, "request_too_large"},
             {424, "api_error"},
             {429, "rate_limit_error"},
             {500, "api_error"},
             {504, "timeout_error"},
             {529, "overloaded_error"},
             {0, NULL}};

static const char *type_of(int status)
{
    for (size_t i = 0; types[i].type != NULL; i++) {
        if (types[i].status == status) {
            return types[i].type;
        }
    }
    return status >= 500 ? "api_error" : "invalid_request_error";
}

static void error_put(const struct sg_error *err, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"error\",\"error\":{\"type\":"); /* the owner asks */
    (void)buf_put_json(out, str_of(type_of(error_status(err))));
    (void)buf_puts(out, ",\"message\":");
    (void)buf_put_json(out, str_of(err->message));
    (void)buf_putc(out, '}');
}

void messages_error_body(const struct sg_error *err, const char *request_id, struct buf *out)
{
    error_put(err, out);
    (void)buf_puts(out, ",\"request_id\":"); /* overflow is the owner's to ask for */
    (void)buf_put_json(out, str_of(request_id));
    (void)buf_putc(out, '}');
}

/* Nothing of the answer so far changes the event, and nothing follows it. */
void messages_fail(struct surface_exchange *exchange, const struct sg_error *err, struct buf *out)
{
    (void)messages_of(exchange);
    (void)buf_puts(out, "event: error\ndata: "); /* overflow is the owner's to ask for */
    error_put(err, out);
    (void)buf_puts(out, "}\n\n");
}

/* The status that an error's type stands for; 0: none. 424 is ours alone. */
static int status_of(struct str type)
{
    for (size_t i = 0; types[i].type != NULL; i++) {
        if (types[i].status != 424 && str_is(type, types[i].type)) {
            return types[i].status;
        }
    }
    return 0;
}

int messages_reported(const struct json_text *text, bool is_error_event, struct arena *arena,
                      struct sg_error *err)
{
    bool is_error = is_error_event ||
                    str_is(json_find_text(text->members, text->count, "type", arena), "error");
    const struct json_member *error = json_find(text->members, text->count, "error");
    if (!is_error && (error == NULL || error->value.type == JSON_NULL)) {
        return SG_OK;
    }
    int code = reported_error(text, is_error, arena, err);
    if (code == SG_OK || err->status != 0 || error == NULL || error->value.type != JSON_OBJECT) {
        return code;
    }
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error ignored = {0};
    if (json_members(error->value, "error", arena, &members, &count, &ignored) == SG_OK) {
        int status = status_of(json_find_text(members, count, "type", arena));
        return status == 0 ? code : reported_as(status, err);
    }
    return code;
}
