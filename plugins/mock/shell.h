/* A few words of a shell: enough that files, output and exit statuses show without one. A pure function over the text;
 * what the words do is the reader's affair (sandbox_shell.c).
 *
 *   echo hello "two  words"; cat notes.txt && ls sub
 *
 * Plain words, quotes of both kinds, `&&`, `;` and line breaks between commands. Anything else is not understood, which
 * is found before anything has run. */
#ifndef MOCK_SHELL_H
#define MOCK_SHELL_H

#include "text.h"

#define SHELL_CODE_BYTES_MAX ((size_t)1 << 20)
#define SHELL_COMMANDS_MAX 256
#define SHELL_WORDS_MAX 1024 /* of all commands */

struct shell_word {
    size_t at, len; /* within struct shell's text, ended there by a NUL */
};

struct shell_command {
    size_t words_at, words_count; /* of struct shell's words; at least one */
    bool only_after_success;      /* `&&` stands before it */
};

struct shell {
    struct text text;
    struct shell_word words[SHELL_WORDS_MAX];
    size_t words_count;
    struct shell_command commands[SHELL_COMMANDS_MAX];
    size_t commands_count;
};

/* `ret` is all zero before, and cleared by shell_clear(). False: something in it is not understood. */
bool shell_read(const char *code, size_t len, struct shell *ret);
void shell_clear(struct shell *);

/* The i-th word of a command; NULL behind the last. */
const char *shell_word(const struct shell *, const struct shell_command *, size_t i);

#endif
