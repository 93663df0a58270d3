/* The mock sandbox's few words of Python: any bytes, run twice over the same variables. A plugin's parser is its own, so
 * its sources are taken in whole. */
#include "../../plugins/mock/python.c"
#include "../../plugins/mock/python_lexer.c"
#include "../../plugins/support/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop_print(void *context, const char *text, size_t len)
{
    (void)context;
    (void)text;
    (void)len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct python *python = python_new();
    struct python_sink sink = {drop_print, NULL};
    for (int i = 0; i < 2; i++) {
        struct python_result result = {0};
        python_run(python, (const char *)data, size, &sink, &result);
        python_result_clear(&result);
    }
    python_free(python);
    return 0;
}
