/* The text editor: files of the container are viewed, created and changed through the core's file functions. Nothing of a
 * file is believed: it may be binary, endless, or gone by the next call. */
#include "edit.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES_MAX 4096

static const char expected[] =
    "a JSON object such as {\"command\": \"view\", \"path\": \"notes.txt\"}; 'view' may have "
    "'view_range', 'create' needs 'file_text', 'str_replace' needs 'old_str' and 'new_str'";

enum member { COMMAND, PATH, FILE_TEXT, OLD_STR, NEW_STR, VIEW_RANGE, MEMBERS };

static const char too_large[] =
    "the file is larger than 1 MiB: look at parts of it with a shell command or code";

/* ---- files ---- */

static int take_content(void *context, enum sg_out kind, const void *data, size_t len,
                        struct sg_error *err)
{
    struct edit *edit = context;
    if (kind == SG_OUT_STATUS) { /* that earlier files were lost */
        (void)report_event(&edit->report, kind, data, len);
    } else if (kind == SG_OUT_DATA) {
        text_put(&edit->content, data, len);
        edit->is_too_large = edit->content.overflow;
    }
    return edit->is_too_large ? sg->fail(err, SG_E_LIMIT, "%s", too_large) : 0;
}

int edit_read(struct edit *edit, struct sg_error *err)
{
    struct sg_sink sink = {.event = take_content, .ctx = edit};
    return sg->file_get(edit->call, edit->path_text, &sink, err);
}

const char *edit_read_message(const struct edit *edit, const struct sg_error *err)
{
    return edit->is_too_large ? too_large : tool_message(err, "the file could not be read");
}

int edit_write(struct edit *edit, const void *data, size_t len, struct sg_error *err)
{
    return sg->file_put(edit->call, edit->path_text, data, len, err);
}

/* ---- ends ---- */

static const char *label_of(int code)
{
    switch (code) {
    case SG_E_INVALID:
        return "[invalid call]";
    case SG_E_NOT_FOUND:
        return "[not found]";
    case SG_E_LIMIT:
        return "[limit]";
    case SG_E_TIMEOUT:
        return "[timed out]";
    case SG_E_GONE:
    case SG_E_GONE_BEFORE:
        return "[sandbox failed]";
    default:
        return "[sandbox unavailable]";
    }
}

int edit_fail(struct edit *edit, int code, const char *message, struct sg_error *err)
{
    if (code == SG_E_CANCELLED) {
        return code;
    }
    char said[1024];
    snprintf(said, sizeof said, "%s", message);
    int result = tool_status(edit->call, "failed", tool_reason(code), CODE_NONE, err);
    return result != 0 ? result : report_emit(&edit->report, label_of(code), said, err);
}

int edit_wrong(struct edit *edit, const char *message, struct sg_error *err)
{
    return edit_fail(edit, SG_E_INVALID, message, err);
}

void edit_bundle(struct edit *edit, const char *command)
{
    text_printf(&edit->bundle, "{\"application/vnd.sandgate.edit+json\":{\"command\":\"%s\"",
                command);
}

int edit_end(struct edit *edit, struct sg_error *err)
{
    text_puts(&edit->bundle, "}}");
    if (edit->bundle.overflow) {
        return sg->fail(err, SG_E_LIMIT, "no memory for what the client is shown");
    }
    int code = sg->emit(edit->call, SG_OUT_RESULT, edit->bundle.data, edit->bundle.len, err);
    return code != 0 ? code : report_emit(&edit->report, NULL, NULL, err);
}

/* ---- view ---- */

static const char no_range[] = "'view_range' is not the first and the last line, such as [1, 20] "
                               "or [10, -1] to the end";

static struct json_value trimmed(const char *from, const char *to)
{
    while (from < to && strchr(" \t\r\n", *from) != NULL) {
        from++;
    }
    while (to > from && strchr(" \t\r\n", to[-1]) != NULL) {
        to--;
    }
    return (struct json_value){from, (size_t)(to - from)};
}

/* Of a value that is JSON. */
static bool read_range(struct json_value range, int64_t *ret_first, int64_t *ret_last)
{
    if (range.data == NULL) {
        *ret_first = 1;
        *ret_last = -1;
        return true;
    }
    const char *comma = memchr(range.data, ',', range.len);
    return range.data[0] == '[' && comma != NULL &&
           json_int(trimmed(range.data + 1, comma), ret_first) &&
           json_int(trimmed(comma + 1, range.data + range.len - 1), ret_last) && *ret_first >= 1 &&
           (*ret_last == -1 || *ret_last >= *ret_first);
}

/* A path that cannot be read may be a folder. */
static int view(struct edit *edit, struct json_value range, struct sg_error *err)
{
    int64_t first, last;
    if (!read_range(range, &first, &last)) {
        return tool_refuse(edit->call, no_range, expected, err);
    }
    int code = edit_read(edit, err);
    if (code == 0) {
        return edit_view(edit, first, last, err);
    }
    char message[1024];
    snprintf(message, sizeof message, "%s", edit_read_message(edit, err));
    if (code == SG_E_NOT_FOUND || code == SG_E_INVALID) {
        bool is_folder = false;
        int listed = edit_folder(edit, &is_folder, err);
        if (listed != 0 || is_folder) {
            return listed;
        }
    }
    return edit_fail(edit, code, message, err);
}

/* ---- create ---- */

static int take_nothing(void *context, enum sg_out kind, const void *data, size_t len,
                        struct sg_error *err)
{
    struct edit *edit = context;
    (void)err;
    if (kind == SG_OUT_STATUS) {
        (void)report_event(&edit->report, kind, data, len);
    }
    return 0;
}

/* Is there a file already? A failure is handed to edit_fail(). */
static int find(struct edit *edit, bool *ret_exists, struct sg_error *err)
{
    struct sg_sink sink = {.event = take_nothing, .ctx = edit};
    int code = sg->file_get(edit->call, edit->path_text, &sink, err);
    *ret_exists = code != SG_E_NOT_FOUND;
    return code == SG_E_NOT_FOUND || code == SG_E_LIMIT /* too large to be read */ ? 0 : code;
}

static int create(struct edit *edit, struct json_value file_text, struct sg_error *err)
{
    size_t len;
    const char *data = tool_decode(edit->call, file_text, &len);
    if (data == NULL) {
        return tool_refuse(edit->call, "'file_text' is too long", expected, err);
    }
    bool exists;
    int code = find(edit, &exists, err);
    code = code == 0 ? edit_write(edit, data, len, err) : code;
    if (code != 0) {
        return edit_fail(edit, code, tool_message(err, "the file could not be written"), err);
    }
    report_puts(&edit->report, exists ? "[replaced: " : "[created: ");
    report_name(&edit->report, edit->path);
    report_puts(&edit->report, ", ");
    report_size(&edit->report, len);
    report_puts(&edit->report, "]");
    edit_bundle(edit, "create");
    text_printf(&edit->bundle, ",\"is_file_update\":%s", exists ? "true" : "false");
    return edit_end(edit, err);
}

/* ---- the call ---- */

/* The path that is asked for; NULL if it is none. */
static const char *path_of(struct sg_call *call, struct json_value path)
{
    size_t len;
    const char *text = tool_decode(call, path, &len);
    bool is_path = text != NULL && len > 0 && len <= PATH_BYTES_MAX && strlen(text) == len;
    return is_path ? text : NULL;
}

static int carry_out(struct edit *edit, const struct argument *arguments, struct sg_error *err)
{
    struct json_value command = arguments[COMMAND].value;
    if (json_string_is(command, "view")) {
        return view(edit, arguments[VIEW_RANGE].value, err);
    }
    if (json_string_is(command, "create")) {
        return arguments[FILE_TEXT].value.data == NULL
                   ? tool_refuse(edit->call, "'file_text' is missing", expected, err)
                   : create(edit, arguments[FILE_TEXT].value, err);
    }
    if (json_string_is(command, "str_replace")) {
        return arguments[OLD_STR].value.data == NULL
                   ? tool_refuse(edit->call, "'old_str' is missing", expected, err)
                   : edit_replace(edit, arguments[OLD_STR].value, arguments[NEW_STR].value, err);
    }
    return tool_refuse(edit->call, "'command' is not 'view', 'create' or 'str_replace'", expected,
                       err);
}

int tool_editor(void *self, struct sg_call *call, const char *json, size_t len,
                struct sg_error *err)
{
    const struct config *config = self;
    struct argument arguments[MEMBERS] = {
        [COMMAND] = {.name = "command", .is_required = true},
        [PATH] = {.name = "path", .is_required = true},
        [FILE_TEXT] = {.name = "file_text"},
        [OLD_STR] = {.name = "old_str"},
        [NEW_STR] = {.name = "new_str"},
        [VIEW_RANGE] = {.name = "view_range", .is_any = true},
    };
    struct problem problem;
    if (!arguments_read(json, len, arguments, MEMBERS, &problem)) {
        return tool_refuse(call, problem.text, expected, err);
    }
    struct edit edit = {.call = call,
                        .path = arguments[PATH].value,
                        .path_text = path_of(call, arguments[PATH].value),
                        .content = {.max = EDIT_BYTES_MAX}};
    if (edit.path_text == NULL) {
        return tool_refuse(call, "'path' is not a path of 1 to 4096 bytes without NUL", expected,
                           err);
    }
    if (!report_init(&edit.report, call, (size_t)config->shown)) {
        return sg->fail(err, SG_E_LIMIT, "no memory for what the model is told");
    }
    int code = carry_out(&edit, arguments, err);
    text_clear(&edit.content);
    text_clear(&edit.bundle);
    return code;
}
