/* Failures: their text, names and statuses. */
#include "base/error.h"

#include "base/check.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int code, status;
    const char *name;
} codes[] = {
    {SG_OK, 200, "OK"},
    {SG_E_INVALID, 400, "INVALID"},
    {SG_E_DENIED, 403, "DENIED"},
    {SG_E_NOT_FOUND, 404, "NOT_FOUND"},
    {SG_E_LIMIT, 429, "LIMIT"},
    {SG_E_UNAVAILABLE, 502, "UNAVAILABLE"},
    {SG_E_TIMEOUT, 504, "TIMEOUT"},
    {SG_E_INTERNAL, 500, "INTERNAL"},
    {SG_E_CANCELLED, 499, "CANCELLED"},
    {SG_E_CONFIG, 500, "CONFIG"},
    {SG_E_GONE, 502, "GONE"},
    {SG_E_GONE_BEFORE, 502, "GONE_BEFORE"},
};

/* Cuts what vsnprintf left at the end of a full field, so that no character is halved. */
static void end_at_character(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= size) {
        size_t len = strlen(text), start = len;
        while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) {
            start--;
        }
        if (start > 0 && start <= len && utf8_length(text + start - 1, len - start + 1) == 0) {
            text[start - 1] = '\0';
        }
    }
}

int error_vset(struct sg_error *err, int code, const char *format, va_list arguments)
{
    CHECK(code != SG_OK);
    if (err == NULL) { /* a plugin's close() waits and has nobody to tell */
        return code;
    }
    char message[ERROR_MESSAGE_BYTES]; /* the old one may be among the arguments */
    int wanted = vsnprintf(message, sizeof message, format, arguments);
    end_at_character(message, sizeof message, wanted);
    *err = (struct sg_error){.code = code};
    memcpy(err->message, message, sizeof message);
    return code;
}

int error_set(struct sg_error *err, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)error_vset(err, code, format, arguments); /* returns what was given */
    va_end(arguments);
    return code;
}

int error_set_param(struct sg_error *err, int code, const char *param, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)error_vset(err, code, format, arguments); /* returns what was given */
    va_end(arguments);
    int wanted = snprintf(err->param, sizeof err->param, "%s", param);
    end_at_character(err->param, sizeof err->param, wanted);
    return code;
}

int error_context(struct sg_error *err, const char *format, ...)
{
    char before[ERROR_MESSAGE_BYTES], whole[ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(before, sizeof before, format, arguments); /* a cut context is still one */
    va_end(arguments);
    int wanted = snprintf(whole, sizeof whole, "%.300s: %.700s", before, err->message);
    end_at_character(whole, sizeof whole, wanted);
    memcpy(err->message, whole, sizeof whole);
    return err->code;
}

const char *error_code_name(int code)
{
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i].code == code) {
            return codes[i].name;
        }
    }
    return "UNKNOWN";
}

int error_status(const struct sg_error *err)
{
    if (err->status != 0) {
        return err->status;
    }
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i].code == err->code) {
            return codes[i].status;
        }
    }
    return 500;
}
