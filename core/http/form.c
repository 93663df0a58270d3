/* The reader behind form.h: from boundary to boundary, of each part the headers alone. */
#include "http/form.h"

#include "base/check.h"
#include "http/head.h"

static int refuse(struct sg_error *err, const char *what)
{
    return error_set(err, SG_E_INVALID, "the request's form %s", what);
}

static struct str str_from(struct str text, size_t at)
{
    return (struct str){text.data + at, text.len - at};
}

/* ---- parameters: "; name=value" and "; name=\"value\"" ---- */

struct parameter {
    struct str name, value;
};

/* The bytes before the closing quote; SIZE_MAX if there is none, or one that is escaped: others end there. */
static size_t quoted_length(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '"') {
            return i > 0 && text.data[i - 1] == '\\' ? SIZE_MAX : i;
        }
    }
    return SIZE_MAX;
}

static size_t token_length(struct str text)
{
    size_t len = 0;
    while (len < text.len && http_token_valid((struct str){text.data + len, 1})) {
        len++;
    }
    return len;
}

/* Takes one off the front of *rest. 1: there was one, 0: nothing is left, -1: it is none. */
static int take_parameter(struct str *rest, struct parameter *ret)
{
    struct str text = str_trim(*rest);
    if (text.len == 0) {
        return 0;
    }
    if (text.data[0] != ';') {
        return -1;
    }
    text = str_trim(str_from(text, 1));
    if (text.len == 0) { /* a last ';' separates nothing */
        return 0;
    }
    ret->name = (struct str){text.data, token_length(text)};
    text = str_from(text, ret->name.len);
    if (ret->name.len == 0 || text.len < 2 || text.data[0] != '=') {
        return -1;
    }
    bool is_quoted = text.data[1] == '"';
    text = str_from(text, is_quoted ? 2 : 1);
    size_t len = is_quoted ? quoted_length(text) : token_length(text);
    if (len == SIZE_MAX || (len == 0 && !is_quoted)) {
        return -1;
    }
    ret->value = (struct str){text.data, len};
    *rest = str_from(text, len + is_quoted);
    return 1;
}

/* "multipart/form-data; boundary=x": the word, and what stands behind it. */
static struct str first_word(struct str text, struct str *ret_rest)
{
    const char *end = text.len == 0 ? NULL : memchr(text.data, ';', text.len);
    size_t len = end == NULL ? text.len : (size_t)(end - text.data);
    *ret_rest = str_from(text, len);
    return str_trim((struct str){text.data, len});
}

bool form_is(struct str content_type)
{
    struct str rest;
    return str_eq_nocase(first_word(content_type, &rest), STR("multipart/form-data"));
}

bool media_parameter(struct str content_type, const char *name, struct str *ret)
{
    struct str rest;
    struct parameter one;
    size_t count = 0;
    int found;
    *ret = (struct str){NULL, 0};
    (void)first_word(content_type, &rest);
    while ((found = take_parameter(&rest, &one)) == 1) {
        if (str_eq_nocase(one.name, str_of(name))) {
            *ret = one.value;
            count++;
        }
    }
    return found == 0 && count <= 1;
}

static int read_boundary(struct str content_type, struct str *ret, struct sg_error *err)
{
    if (!media_parameter(content_type, "boundary", ret) || ret->len == 0 ||
        ret->len > FORM_BOUNDARY_BYTES_MAX) {
        return refuse(err, "needs one 'boundary' of 1 to 70 characters in its Content-Type");
    }
    return 0;
}

/* ---- parts ---- */

struct part {
    struct str name, content;
    size_t dispositions;
    bool is_file, is_coded;
};

static int read_disposition(struct str value, struct part *part, struct sg_error *err)
{
    struct str rest;
    struct parameter one;
    size_t names = 0;
    int found;
    bool is_form = str_eq_nocase(first_word(value, &rest), STR("form-data"));
    while ((found = take_parameter(&rest, &one)) == 1) {
        if (str_eq_nocase(one.name, STR("name"))) {
            part->name = one.value;
            names++;
        } else if (str_eq_nocase(one.name, STR("name*"))) {
            return refuse(err, "has a part with 'name*', which is not for forms");
        }
        part->is_file |=
            one.name.len >= 8 && str_eq_nocase((struct str){one.name.data, 8}, STR("filename"));
    }
    return is_form && found == 0 && names == 1
               ? 0
               : refuse(err, "has a part whose Content-Disposition does not name one field");
}

static int read_line(struct str line, struct part *part, struct sg_error *err)
{
    const char *colon = memchr(line.data, ':', line.len);
    size_t len = colon == NULL ? 0 : (size_t)(colon - line.data);
    struct str name = {line.data, len};
    if (colon == NULL || !http_token_valid(name) || !http_value_valid(line)) {
        return refuse(err, "has a part with a broken header");
    }
    if (str_eq_nocase(name, STR("content-disposition"))) {
        part->dispositions++;
        return read_disposition(str_trim(str_from(line, len + 1)), part, err);
    }
    part->is_coded |= str_eq_nocase(name, STR("content-transfer-encoding"));
    return 0;
}

static int read_part(struct str text, struct part *part, struct sg_error *err)
{
    for (;;) {
        const char *end = text.len == 0 ? NULL : memmem(text.data, text.len, "\r\n", 2);
        if (end == NULL) {
            return refuse(err, "has a part without an empty line behind its headers");
        }
        struct str line = {text.data, (size_t)(end - text.data)};
        text = str_from(text, line.len + 2);
        if (line.len == 0) {
            break;
        }
        int rc = read_line(line, part, err);
        if (rc != 0) {
            return rc;
        }
    }
    part->content = text;
    return part->dispositions == 1
               ? 0
               : refuse(err, "has a part without exactly one Content-Disposition");
}

/* Takes a part off the front of *rest, which stands behind a delimiter, and the delimiter that ends it. */
static int take_part(struct str *rest, struct str delimiter, struct part *ret, struct sg_error *err)
{
    *ret = (struct part){0};
    if (!str_starts(*rest, STR("\r\n"))) {
        return refuse(err, "has its boundary where no line ends behind it");
    }
    struct str text = str_from(*rest, 2);
    const char *end = memmem(text.data, text.len, delimiter.data, delimiter.len);
    if (end == NULL) {
        return refuse(err, "has no boundary at its end");
    }
    size_t len = (size_t)(end - text.data);
    if (len < 2 || memcmp(end - 2, "\r\n", 2) != 0) {
        return refuse(err, "has its boundary within a line");
    }
    *rest = str_from(text, len + delimiter.len);
    return read_part((struct str){text.data, len - 2}, ret, err);
}

static int take_field(const struct part *part, struct str *ret, struct sg_error *err)
{
    if (ret->data != NULL) {
        return error_set(err, SG_E_INVALID, "the request's form has the field '%.*s' twice",
                         (int)part->name.len, part->name.data);
    }
    if (part->is_file || part->is_coded) {
        return error_set(err, SG_E_INVALID,
                         "the request's form has the field '%.*s' as a file, or coded",
                         (int)part->name.len, part->name.data);
    }
    *ret = part->content;
    return 0;
}

static int read_parts(struct str body, struct str delimiter, const char *name, struct str *ret,
                      struct sg_error *err)
{
    if (!str_starts(body, delimiter)) {
        return refuse(err, "does not start with its boundary");
    }
    struct str rest = str_from(body, delimiter.len), found = {NULL, 0};
    while (!str_starts(rest, STR("--"))) {
        struct part part;
        int rc = take_part(&rest, delimiter, &part, err);
        if (rc == 0 && str_is(part.name, name)) {
            rc = take_field(&part, &found, err);
        }
        if (rc != 0) {
            return rc;
        }
    }
    rest = str_from(rest, 2);
    if (rest.len > 0 && !str_is(rest, "\r\n")) {
        return refuse(err, "has bytes behind its end");
    }
    *ret = found;
    return 0;
}

int form_field(struct str content_type, struct str body, const char *name, struct str *ret,
               struct sg_error *err)
{
    char delimiter[FORM_BOUNDARY_BYTES_MAX + 2] = "--";
    struct str boundary = {NULL, 0};
    int rc = read_boundary(content_type, &boundary, err);
    if (rc != 0) {
        return rc;
    }
    memcpy(delimiter + 2, boundary.data, boundary.len);
    return read_parts(body, (struct str){delimiter, boundary.len + 2}, name, ret, err);
}
