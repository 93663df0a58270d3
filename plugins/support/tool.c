/* How tools of interceptors end a call. */
#include "tool.h"

#include <stdio.h>

int tool_status(struct sg_call *call, const char *state, const char *reason, int code,
                struct sg_error *err)
{
    char json[128], reason_text[48] = "", code_text[32] = "";
    if (reason != NULL) {
        snprintf(reason_text, sizeof reason_text, ",\"reason\":\"%s\"", reason);
    }
    if (code != CODE_NONE) {
        snprintf(code_text, sizeof code_text, ",\"code\":%d", code);
    }
    int len = snprintf(json, sizeof json, "{\"state\":\"%s\"%s%s}", state, reason_text, code_text);
    return sg->emit(call, SG_OUT_STATUS, json, (size_t)len, err);
}

int tool_refuse(struct sg_call *call, const char *problem, const char *expected,
                struct sg_error *err)
{
    return tool_refuse_as(call, "invalid", problem, expected, err);
}

int tool_refuse_as(struct sg_call *call, const char *reason, const char *problem,
                   const char *expected, struct sg_error *err)
{
    char text[768];
    int len = snprintf(text, sizeof text, "[invalid call] %s; nothing was run. Expected %s",
                       problem, expected);
    int code = tool_status(call, "invalid", reason, CODE_NONE, err);
    return code != 0 ? code : sg->emit(call, SG_OUT_MODEL, text, (size_t)len, err);
}

const char *tool_decode(struct sg_call *call, struct json_value string, size_t *ret_len)
{
    struct json_value rest = json_inside(string);
    size_t room = rest.len + 4;
    char *decoded = sg->alloc(call, room + 1);
    if (decoded != NULL) {
        *ret_len = json_decode(&rest, decoded, room);
        decoded[*ret_len] = '\0';
    }
    return decoded;
}

const char *tool_reason(int code)
{
    switch (code) {
    case SG_E_INVALID:
        return "invalid";
    case SG_E_NOT_FOUND:
        return "not_found";
    case SG_E_LIMIT:
        return "limit";
    case SG_E_TIMEOUT:
        return "timeout";
    default:
        return "unavailable";
    }
}

const char *tool_message(const struct sg_error *err, const char *otherwise)
{
    const char *said = sg->message == NULL ? NULL : sg->message(err);
    return said != NULL && said[0] != '\0' ? said : otherwise;
}
