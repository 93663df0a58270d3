/* The few words of a shell in a container of the mock sandbox: what each does with its files. */
#include "activity.h"
#include "shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_UNDERSTOOD 127

static const char understood[] =
    "the mock sandbox's shell understands: echo WORDS, cat FILE, ls [FOLDER], exit N, true, false, "
    "joined by && ; and line breaks, with quotes around words\n";

struct session { /* one run of them */
    struct activity *activity;
    const struct shell *shell;
    int64_t status; /* of the last command */
    bool is_over;   /* by exit */
    struct sg_error *err;
};

static int say(struct session *s, enum sg_out kind, const struct text *text)
{
    return text->overflow || text->len == 0
               ? 0
               : activity_emit(s->activity, kind, text->data, text->len, s->err);
}

/* "cat: notes.txt: No such file or directory" */
static int complain(struct session *s, const char *before, const char *name, const char *after,
                    int64_t status)
{
    TEXT_CLEANUP struct text line = {0};
    text_printf(&line, "%s%s%s\n", before, name, after);
    s->status = status;
    return say(s, SG_OUT_LOG_ERR, &line);
}

/* ---- the words ---- */

static int run_echo(struct session *s, const struct shell_command *command)
{
    TEXT_CLEANUP struct text line = {0};
    for (size_t i = 1; i < command->words_count; i++) {
        text_puts(&line, i > 1 ? " " : "");
        text_puts(&line, shell_word(s->shell, command, i));
    }
    text_puts(&line, "\n");
    return say(s, SG_OUT_LOG_OUT, &line);
}

/* What is not UTF-8 becomes U+FFFD: a stream is text. */
static void put_utf8(struct text *out, const char *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t character = text_character(data + at, len - at);
        text_put(out, character > 0 ? data + at : "\xEF\xBF\xBD", character > 0 ? character : 3);
        at += character > 0 ? character : 1;
    }
}

static int cat_file(struct session *s, const char *name)
{
    struct activity *a = s->activity;
    char path[PATH_BYTES];
    const void *data;
    size_t len;
    int code = path_normalize(name, path) ? container_get(a->sandbox->containers, a->container,
                                                          a->call, path, &data, &len, s->err)
                                          : SG_E_NOT_FOUND;
    if (code != 0) {
        return complain(s, "cat: ", name,
                        code == SG_E_LIMIT ? ": File too large" : ": No such file or directory", 1);
    }
    TEXT_CLEANUP struct text text = {0};
    put_utf8(&text, data, len);
    return say(s, SG_OUT_LOG_OUT, &text);
}

static int run_cat(struct session *s, const struct shell_command *command)
{
    int code = 0;
    for (size_t i = 1; code == 0 && i < command->words_count; i++) {
        code = cat_file(s, shell_word(s->shell, command, i));
    }
    return code;
}

struct names {
    char *names[FILES_MAX];
    size_t count;
};

/* Hidden ones are left out, as ls does. */
static void take_name(void *context, const char *path, size_t len, bool is_folder, size_t size)
{
    struct names *names = context;
    (void)is_folder;
    (void)size;
    const char *slash = memrchr(path, '/', len);
    const char *name = slash == NULL ? path : slash + 1;
    size_t name_len = len - (size_t)(name - path);
    char *copy = name[0] == '.' || names->count == FILES_MAX ? NULL : strndup(name, name_len);
    if (copy != NULL) {
        names->names[names->count++] = copy;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_folder(struct session *s, const char *folder)
{
    struct activity *a = s->activity;
    char path[PATH_BYTES];
    struct names *names = sg->alloc(a->call, sizeof *names);
    if (names == NULL || !path_normalize(folder, path) ||
        container_each(a->sandbox->containers, a->container, path, take_name, names, s->err) != 0) {
        return complain(s, "ls: cannot access '", folder, "': No such file or directory", 2);
    }
    TEXT_CLEANUP struct text lines = {0};
    qsort(names->names, names->count, sizeof *names->names, by_name);
    for (size_t i = 0; i < names->count; i++) {
        text_printf(&lines, "%s\n", names->names[i]);
        free(names->names[i]);
    }
    return say(s, SG_OUT_LOG_OUT, &lines);
}

static int run_ls(struct session *s, const struct shell_command *command)
{
    return list_folder(s, command->words_count > 1 ? shell_word(s->shell, command, 1) : ".");
}

/* ---- a command ---- */

/* A whole number of up to nine digits. */
static bool is_number(const char *word)
{
    size_t len = strspn(word, "0123456789");
    return len > 0 && len <= 9 && word[len] == '\0';
}

/* May the word stand with so many others? */
static bool is_understood(const struct shell *shell, const struct shell_command *command)
{
    const char *name = shell_word(shell, command, 0), *first = shell_word(shell, command, 1);
    size_t count = command->words_count - 1;
    if (strcmp(name, "echo") == 0) {
        return true;
    }
    if (strcmp(name, "exit") == 0) {
        return count == 0 || (count == 1 && is_number(first));
    }
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
        return count == 0;
    }
    bool has_option = first != NULL && first[0] == '-';
    return (strcmp(name, "cat") == 0 && count >= 1 && !has_option) ||
           (strcmp(name, "ls") == 0 && count <= 1 && !has_option);
}

static int run_command(struct session *s, const struct shell_command *command)
{
    const char *name = shell_word(s->shell, command, 0);
    if (strcmp(name, "exit") == 0) {
        const char *status = shell_word(s->shell, command, 1);
        s->status = status == NULL ? s->status : strtol(status, NULL, 10) & 255;
        s->is_over = true;
        return 0;
    }
    s->status = strcmp(name, "false") == 0;
    return strcmp(name, "echo") == 0  ? run_echo(s, command)
           : strcmp(name, "cat") == 0 ? run_cat(s, command)
           : strcmp(name, "ls") == 0  ? run_ls(s, command)
                                      : 0;
}

static int run_all(struct session *s)
{
    int code = 0;
    for (size_t i = 0; code == 0 && !s->is_over && i < s->shell->commands_count; i++) {
        const struct shell_command *command = &s->shell->commands[i];
        if (!command->only_after_success || s->status == 0) {
            code = run_command(s, command);
        }
    }
    return code;
}

static bool read_all(const struct sg_run *run, struct shell *shell)
{
    bool good = shell_read(run->code, run->code_len, shell);
    for (size_t i = 0; good && i < shell->commands_count; i++) {
        good = is_understood(shell, &shell->commands[i]);
    }
    return good;
}

int shell_run(struct activity *a, const struct sg_run *run, struct sg_error *err)
{
    struct shell *shell = sg->alloc(a->call, sizeof *shell);
    if (shell == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory for a shell command");
    }
    struct session session = {.activity = a, .shell = shell, .err = err};
    int code;
    if (read_all(run, shell)) {
        code = run_all(&session);
    } else {
        session.status = NOT_UNDERSTOOD;
        code = activity_emit(a, SG_OUT_LOG_ERR, understood, sizeof understood - 1, err);
    }
    shell_clear(shell);
    return code != 0 ? code : activity_exit(a, session.status, err);
}
