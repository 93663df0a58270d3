/* The mock sandbox's few words of a shell: any bytes. What is read lies within the text, each word ended. A plugin's
 * parser is its own, so its sources are taken in whole. */
#include "../../plugins/mock/shell.c"
#include "../../plugins/support/text.c"

#include "base/check.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct shell shell;
    memset(&shell, 0, sizeof shell);
    if (shell_read((const char *)data, size, &shell)) {
        for (size_t i = 0; i < shell.commands_count; i++) {
            const struct shell_command *command = &shell.commands[i];
            CHECK(command->words_count > 0);
            CHECK(command->words_at + command->words_count <= shell.words_count);
            for (size_t k = 0; k < command->words_count; k++) {
                CHECK(strlen(shell_word(&shell, command, k)) ==
                      shell.words[command->words_at + k].len);
            }
            CHECK(shell_word(&shell, command, command->words_count) == NULL);
        }
    }
    shell_clear(&shell);
    return 0;
}
