/* The arguments of a model's call. */
#include "surface/arguments.h"

static struct str space_trim(struct str text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.data[0]) != NULL) {
        text = (struct str){text.data + 1, text.len - 1};
    }
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    return text;
}

bool arguments_is_object(struct str text)
{
    struct arena *scratch = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    bool good =
        json_scan(text, scratch, &scanned, &err) == SG_OK && scanned.root.type == JSON_OBJECT;
    arena_free(scratch);
    return good;
}

/* The inside of ```json … ``` around the whole text, if it is a JSON object. */
static bool fence_unwrap(struct str text, struct str *ret)
{
    struct str fence = STR("```");
    text = space_trim(text);
    const char *line = text.len == 0 ? NULL : memchr(text.data, '\n', text.len);
    if (!str_starts(text, fence) || line == NULL || text.len < 7 ||
        memcmp(text.data + text.len - 3, fence.data, 3) != 0) {
        return false;
    }
    const char *start = line + 1, *end = text.data + text.len - 3;
    if (start > end) {
        return false;
    }
    struct str inside = space_trim((struct str){start, (size_t)(end - start)});
    if (!arguments_is_object(inside)) {
        return false;
    }
    *ret = inside;
    return true;
}

struct str arguments_settle(struct str text, struct str *ret_object)
{
    struct str inside;
    if (arguments_is_object(text)) {
        *ret_object = text;
    } else if (fence_unwrap(text, &inside)) {
        *ret_object = text = inside;
    } else {
        *ret_object = STR("{}");
    }
    return text;
}
