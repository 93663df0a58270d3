/* One call of the text editor: what editor.c, edit_view.c, edit_folder.c and edit_replace.c share. */
#ifndef CODE_INTERPRETER_EDIT_H
#define CODE_INTERPRETER_EDIT_H

#include "report.h"
#include "text.h"
#include "tools.h"

#define EDIT_BYTES_MAX ((size_t)1024 * 1024) /* of a file that is viewed or changed */

struct edit {
    struct sg_call *call;
    struct report report;   /* what the model is told */
    struct json_value path; /* as it was written */
    const char *path_text;
    struct text content; /* of the file, raw */
    bool is_too_large;
    struct text
        bundle; /* for the client: edit_bundle(), then the rest of the object without its end */
};

/* The file into `content`. A failure is handed to edit_fail(). */
int edit_read(struct edit *, struct sg_error *err);
const char *edit_read_message(const struct edit *, const struct sg_error *err);
int edit_write(struct edit *, const void *data, size_t len, struct sg_error *err);

/* The end of a call whose file function failed with this code; `message` as tool_message() has it. */
int edit_fail(struct edit *, int code, const char *message, struct sg_error *err);
/* … of one that the file, as it is, does not allow: the model's mistake. */
int edit_wrong(struct edit *, const char *message, struct sg_error *err);
/* … of one that went well: closes the bundle, and gives the client and the model theirs. */
int edit_end(struct edit *, struct sg_error *err);

/* Begins the client's bundle: {"…": {"command":"view" */
void edit_bundle(struct edit *, const char *command);

/* edit_view.c: first and last line; last -1: to the end. */
int edit_view(struct edit *, int64_t first, int64_t last, struct sg_error *err);
/* edit_folder.c: 0 without *ret_is_folder if the path is none, or cannot be listed: nothing has been told then. */
int edit_folder(struct edit *, bool *ret_is_folder, struct sg_error *err);
/* edit_replace.c */
int edit_replace(struct edit *, struct json_value old, struct json_value new, struct sg_error *err);

#endif
