/* Viewing a folder: what is in it and in the folders of it, where the provider can list. */
#include "edit.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 500
#define FOLDERS_MAX 50 /* that are looked into */

struct entry {
    char *path; /* from the viewed folder on */
    bool is_folder;
};

struct listing {
    struct edit *edit;
    const char *prefix; /* "", or "folder/" */
    struct entry *entries;
    size_t count;
    bool is_cut;
};

static bool is_left_out(const char *name)
{
    return name[0] == '\0' || name[0] == '.' || strcmp(name, "node_modules") == 0;
}

static void add(struct listing *listing, struct json_value path, bool is_folder)
{
    size_t len;
    const char *text = tool_decode(listing->edit->call, path, &len);
    const char *slash = text == NULL ? NULL : strrchr(text, '/');
    const char *name = slash == NULL ? text : slash + 1;
    if (name != NULL && is_left_out(name)) {
        return;
    }
    struct text whole = {0};
    if (name != NULL && listing->count < ENTRIES_MAX) {
        text_puts(&whole, listing->prefix);
        text_puts(&whole, name);
    }
    if (whole.data == NULL || whole.overflow) {
        text_clear(&whole);
        listing->is_cut = true;
        return;
    }
    listing->entries[listing->count++] = (struct entry){whole.data, is_folder};
}

static int take_entry(void *context, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    static const char *const names[] = {"path", "type"};
    struct listing *listing = context;
    struct json_value found[2];
    (void)err;
    if (kind == SG_OUT_STATUS) {
        (void)report_event(&listing->edit->report, kind, data, len);
    } else if (kind == SG_OUT_FILE && json_find(data, len, names, found, 2) &&
               json_is_string(found[0])) {
        add(listing, found[0], json_string_is(found[1], "directory"));
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    return strcmp(one->path, other->path);
}

static int list(struct listing *listing, const char *path, struct sg_error *err)
{
    struct sg_sink sink = {.event = take_entry, .ctx = listing};
    return sg->file_list(listing->edit->call, path, &sink, err);
}

/* What is in one of the folders. One that cannot be listed is left as it is. */
static int look_into(struct listing *listing, const char *name, struct sg_error *err)
{
    TEXT_CLEANUP struct text path = {0}, prefix = {0};
    text_printf(&path, "%s/%s", listing->edit->path_text, name);
    text_printf(&prefix, "%s/", name);
    if (path.overflow || prefix.overflow) {
        return 0;
    }
    listing->prefix = prefix.data;
    int code = list(listing, path.data, err);
    listing->prefix = "";
    return code == SG_E_CANCELLED ? code : 0;
}

static int look_into_all(struct listing *listing, struct sg_error *err)
{
    size_t count = listing->count, folders = 0;
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (!listing->entries[i].is_folder) {
            continue;
        }
        if (folders++ == FOLDERS_MAX) {
            listing->is_cut = true;
            break;
        }
        code = look_into(listing, listing->entries[i].path, err);
    }
    return code;
}

/* Names are the box's: a line break in one must not look like another entry. */
static void put_path(struct text *out, const struct entry *entry)
{
    for (const char *p = entry->path; *p != '\0'; p++) {
        text_put(out, (unsigned char)*p < 0x20 || *p == 0x7F ? "?" : p, 1);
    }
    text_puts(out, entry->is_folder ? "/\n" : "\n");
}

static int tell(struct listing *listing, struct sg_error *err)
{
    struct edit *edit = listing->edit;
    TEXT_CLEANUP struct text lines = {0};
    for (size_t i = 0; i < listing->count; i++) {
        put_path(&lines, &listing->entries[i]);
    }
    text_puts(&lines, listing->is_cut       ? "[... more entries left out ...]\n"
                      : listing->count == 0 ? "[nothing but hidden files, if any]\n"
                                            : "");
    size_t count = listing->count + (listing->is_cut || listing->count == 0);
    report_puts(&edit->report, "[folder: ");
    report_name(&edit->report, edit->path);
    report_puts(&edit->report, ", two levels deep, without hidden files]\n");
    (void)report_event(&edit->report, SG_OUT_LOG_OUT, lines.data, lines.len);
    edit_bundle(edit, "view");
    text_puts(&edit->bundle, ",\"file_type\":\"text\",\"content\":");
    text_json(&edit->bundle, lines.data, lines.len);
    text_printf(&edit->bundle, ",\"num_lines\":%zu,\"start_line\":1,\"total_lines\":%zu", count,
                count);
    return edit_end(edit, err);
}

int edit_folder(struct edit *edit, bool *ret_is_folder, struct sg_error *err)
{
    struct listing listing = {.edit = edit, .prefix = ""};
    listing.entries = sg->alloc(edit->call, ENTRIES_MAX * sizeof *listing.entries);
    if (listing.entries == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory for a folder");
    }
    int code = list(&listing, edit->path_text, err);
    /* A limit: it is one, with more in it than can be listed. */
    *ret_is_folder = code == 0 || code == SG_E_LIMIT;
    if (code == 0 && (code = look_into_all(&listing, err)) == 0) {
        qsort(listing.entries, listing.count, sizeof *listing.entries, by_path);
        code = tell(&listing, err);
    } else if (code == SG_E_LIMIT) {
        code = edit_fail(edit, code, tool_message(err, "the folder cannot be listed"), err);
    } else if (!*ret_is_folder && code != SG_E_CANCELLED) {
        code = 0; /* what reading it said is told */
    }
    for (size_t i = 0; i < listing.count; i++) {
        free(listing.entries[i].path);
    }
    return code;
}
