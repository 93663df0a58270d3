/* Fuzzes the reader of forms. The first line is the Content-Type, the rest the body; what was found lies
 * within it. */
#include "base/check.h"
#include "http/form.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size == 0 ? NULL : memchr(text, '\n', size);
    if (end == NULL) {
        return 0;
    }
    struct str type = {text, (size_t)(end - text)}, body = {end + 1, size - type.len - 1};
    struct str value = {NULL, 0};
    struct sg_error err = {0};
    (void)form_is(type);
    if (form_field(type, body, "model", &value, &err) != 0) {
        CHECK(err.code == SG_E_INVALID && err.message[0] != '\0');
        CHECK(value.data == NULL);
    } else if (value.data != NULL) {
        CHECK(value.data > body.data && value.data + value.len < body.data + body.len);
    }
    return 0;
}
