/* The code interpreter's arguments: any bytes as arguments, the code then as a fenced block and as a traceback. What is
 * decoded never outgrows what it was written with. A plugin's parser is its own, so its sources are taken in whole. */
#include "../../plugins/support/arguments.c"
#include "../../plugins/support/json_text.c"
#include "../../plugins/code_interpreter/traceback.c"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_code(struct json_value string)
{
    struct json_value rest = json_inside(string);
    size_t room = rest.len + 4;
    char *code = malloc(room);
    size_t len = json_decode(&rest, code, room);
    CHECK(len <= string.len - 2 && rest.len == 0);
    struct json_value inner = code_without_fence(code, len);
    CHECK(inner.data >= code && inner.data + inner.len <= code + len);
    char traceback[TRACEBACK_BYTES];
    CHECK(traceback_shorten(string, string, traceback) <= sizeof traceback);
    free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct argument wanted[] = {{.name = "code", .is_required = true},
                                {.name = "view_range", .is_any = true}};
    struct problem problem;
    if (arguments_read((const char *)data, size, wanted, 2, &problem)) {
        int64_t number;
        read_code(wanted[0].value);
        CHECK(!json_int(wanted[1].value, &number) ||
              (number > -1000000000000000 && number < 1000000000000000));
    }
    return 0;
}
