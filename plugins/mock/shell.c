/* Reading the few words of a shell. */
#include "shell.h"

#include <string.h>

struct reader {
    const char *at, *end;
    struct shell *shell;
};

static bool is_plain(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || (unsigned char)c >= 0x80 || (c != '\0' && strchr("_-./,:=+@%^", c) != NULL);
}

/* What stands between quotes; in double ones a backslash keeps its meaning before \ and ". */
static bool read_quoted(struct reader *r)
{
    char quote = *r->at++;
    while (r->at < r->end && *r->at != quote) {
        if (*r->at == '\0' || (quote == '"' && (*r->at == '$' || *r->at == '`'))) {
            return false;
        }
        bool is_escape = quote == '"' && *r->at == '\\' && r->end - r->at > 1 &&
                         (r->at[1] == '"' || r->at[1] == '\\');
        r->at += is_escape;
        text_put(&r->shell->text, r->at++, 1);
    }
    return r->at++ < r->end;
}

/* A word may be put together from quoted and plain parts. */
static bool read_word(struct reader *r)
{
    struct shell *shell = r->shell;
    size_t at = shell->text.len;
    bool good = true, is_word = true;
    while (good && is_word && r->at < r->end) {
        if (*r->at == '"' || *r->at == '\'') {
            good = read_quoted(r);
        } else if (is_plain(*r->at)) {
            text_put(&shell->text, r->at++, 1);
        } else {
            is_word = false;
        }
    }
    if (!good || shell->words_count == SHELL_WORDS_MAX) {
        return false;
    }
    shell->words[shell->words_count++] = (struct shell_word){at, shell->text.len - at};
    text_put(&shell->text, "", 1);
    return !shell->text.overflow;
}

enum separator { SEPARATOR_NONE, SEPARATOR_NEXT, SEPARATOR_AND };

static enum separator read_separator(struct reader *r)
{
    if (*r->at == ';' || *r->at == '\n') {
        r->at++;
        return SEPARATOR_NEXT;
    }
    if (r->end - r->at >= 2 && memcmp(r->at, "&&", 2) == 0) {
        r->at += 2;
        return SEPARATOR_AND;
    }
    return SEPARATOR_NONE;
}

/* Ends the command that the latest words are; false if there are none where some must stand. */
static bool end_command(struct shell *shell, size_t words_at, bool *after_and, bool is_line_end)
{
    if (shell->words_count == words_at) {
        return is_line_end && !*after_and;
    }
    if (shell->commands_count == SHELL_COMMANDS_MAX) {
        return false;
    }
    shell->commands[shell->commands_count++] =
        (struct shell_command){words_at, shell->words_count - words_at, *after_and};
    *after_and = false;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool shell_read(const char *code, size_t len, struct shell *ret)
{
    struct reader r = {code, code + len, ret};
    bool good = len <= SHELL_CODE_BYTES_MAX, after_and = false;
    size_t words_at = 0;
    while (good && r.at < r.end) {
        bool is_line_end = *r.at == '\n';
        enum separator separator = read_separator(&r);
        if (separator != SEPARATOR_NONE) {
            if (is_line_end && after_and && ret->words_count == words_at) {
                continue; /* a line may end behind && */
            }
            good = end_command(ret, words_at, &after_and, is_line_end);
            after_and = separator == SEPARATOR_AND;
            words_at = ret->words_count;
        } else if (is_blank(*r.at)) {
            r.at++;
        } else if (is_plain(*r.at) || *r.at == '"' || *r.at == '\'') {
            good = read_word(&r);
        } else {
            good = false;
        }
    }
    return good && end_command(ret, words_at, &after_and, true);
}

void shell_clear(struct shell *shell)
{
    text_clear(&shell->text);
}

const char *shell_word(const struct shell *shell, const struct shell_command *command, size_t i)
{
    return i < command->words_count ? shell->text.data + shell->words[command->words_at + i].at
                                    : NULL;
}
