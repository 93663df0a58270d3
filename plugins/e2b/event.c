/* What one line of the interpreter's answer says, and what is emitted for it. A line is made strict JSON first
 * (lenient.c), so that values can be handed on as they are written. Everything that is emitted counts towards the limit,
 * at which the run ends. */
#include "event.h"

#include "json_text.h"
#include "lenient.h"

#include <string.h>

/* A line after lenient_put(); its memory grows by doubling, up to 16 MiB. */
#define STRICT_BYTES_MAX (((size_t)16 << 20) - 1)
#define MEMBERS_MAX 64                        /* of a line; E2B's have some fifteen */
#define PIECE_BYTES ((size_t)64 << 10)        /* of text, emitted at once */
#define NAME_BYTES_MAX 256                    /* of an exception's name */
#define VALUE_BYTES_MAX ((size_t)16 << 10)    /* of its text */
#define TRACEBACK_READ_MAX ((size_t)64 << 10) /* of its traceback: the end, as it is written */
#define EXTRAS_MAX 32                         /* other MIME types of one result */
#define EXTRAS_SEEN_MAX 64                    /* that are looked at */
#define MIME_BYTES_MAX 128

/* What a restart means. */
#define GONE_KEPT "variables, functions and imports are gone; files are kept"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- members ---- */

/* Of a result first, in the order in which they stand in a bundle. */
enum member {
    MEMBER_TEXT,
    MEMBER_HTML,
    MEMBER_MARKDOWN,
    MEMBER_SVG,
    MEMBER_LATEX,
    MEMBER_JAVASCRIPT,
    MEMBER_PNG,
    MEMBER_JPEG,
    MEMBER_PDF,
    MEMBER_JSON,
    MEMBER_DATA,
    MEMBER_CHART,
    MEMBER_EXTRA,
    MEMBER_TYPE,
    MEMBER_NAME,
    MEMBER_VALUE,
    MEMBER_TRACEBACK,
    MEMBER_COUNT,
    MEMBERS_COUNT
};
static const char *const member_names[] = {
    [MEMBER_TEXT] = "text",   [MEMBER_HTML] = "html",           [MEMBER_MARKDOWN] = "markdown",
    [MEMBER_SVG] = "svg",     [MEMBER_LATEX] = "latex",         [MEMBER_JAVASCRIPT] = "javascript",
    [MEMBER_PNG] = "png",     [MEMBER_JPEG] = "jpeg",           [MEMBER_PDF] = "pdf",
    [MEMBER_JSON] = "json",   [MEMBER_DATA] = "data",           [MEMBER_CHART] = "chart",
    [MEMBER_EXTRA] = "extra", [MEMBER_TYPE] = "type",           [MEMBER_NAME] = "name",
    [MEMBER_VALUE] = "value", [MEMBER_TRACEBACK] = "traceback", [MEMBER_COUNT] = "execution_count",
};
_Static_assert(COUNT_OF(member_names) == MEMBERS_COUNT, "each has a name");

struct line { /* all zero: those that it does not have */
    struct json_value members[MEMBERS_COUNT];
};

static void keep_member(struct line *line, struct json_value key, struct json_value value)
{
    for (size_t i = 0; i < MEMBERS_COUNT; i++) {
        if (json_string_is(key, member_names[i])) {
            line->members[i] = value; /* the last where there are several */
            return;
        }
    }
}

/* All that is of interest, in one pass: a line may be long. False if it is no object, or none of E2B's. */
static bool read_line(const struct text *strict, struct line *ret)
{
    struct json_reader reader = json_reader_of(strict->data, strict->len);
    struct json_value key, value;
    size_t seen = 0;
    *ret = (struct line){0};
    while (seen <= MEMBERS_MAX && json_next(&reader, &key, &value)) {
        keep_member(ret, key, value);
        seen++;
    }
    return reader.problem == NULL && seen <= MEMBERS_MAX;
}

/* ---- emitting ---- */

static int emit(struct stream *s, enum sg_out kind, const char *data, size_t len,
                struct sg_error *err)
{
    s->emitted += len;
    s->code = sg->emit(s->call, kind, data, len, err);
    return s->code;
}

int event_end_output(struct stream *s, struct sg_error *err)
{
    static const char json[] = "{\"state\":\"output\"}";
    if (emit(s, SG_OUT_STATUS, json, sizeof json - 1, err) == 0) {
        s->code = sg->fail(err, SG_E_LIMIT,
                           "the code put out more than 10MiB and was interrupted; variables are "
                           "kept: print less, or write to a file");
    }
    return s->code;
}

static size_t room_of(const struct stream *s)
{
    return s->emitted < OUTPUT_BYTES_MAX ? (size_t)(OUTPUT_BYTES_MAX - s->emitted) : 0;
}

static int emit_or_end(struct stream *s, enum sg_out kind, const struct text *json,
                       struct sg_error *err)
{
    return json->overflow || json->len > room_of(s) ? event_end_output(s, err)
                                                    : emit(s, kind, json->data, json->len, err);
}

/* Until there are more than `max` bytes, or no more. */
static void decode(struct text *out, struct json_value *rest, size_t max)
{
    char piece[2048];
    size_t len;
    while (out->len <= max && (len = json_decode(rest, piece, sizeof piece)) > 0) {
        text_put(out, piece, len);
    }
}

/* ---- text as it is printed ---- */

/* Emits the start of what is decoded, and leaves the rest of it. */
static int emit_piece(struct stream *s, enum sg_out kind, struct text *decoded,
                      struct sg_error *err)
{
    size_t room = room_of(s), max = room < PIECE_BYTES ? room : PIECE_BYTES;
    size_t len = decoded->len <= max ? decoded->len : text_cut(decoded->data, decoded->len, max);
    bool is_over = (max == room && decoded->len > room) || decoded->overflow;
    int result = len > 0 ? emit(s, kind, decoded->data, len, err) : 0;
    decoded->len -= len;
    memmove(decoded->data, decoded->data + len, decoded->len);
    return result == 0 && is_over ? event_end_output(s, err) : result;
}

/* A text of megabytes is never held decoded as a whole. */
static int take_text(struct stream *s, enum sg_out kind, const struct line *line,
                     struct sg_error *err)
{
    struct json_value value = line->members[MEMBER_TEXT];
    TEXT_CLEANUP struct text decoded = {0};
    if (!json_is_string(value)) {
        return 0;
    }
    s->has_begun = true;
    struct json_value rest = json_inside(value);
    int result = 0;
    for (decode(&decoded, &rest, PIECE_BYTES); result == 0 && decoded.len > 0;
         decode(&decoded, &rest, PIECE_BYTES)) {
        result = emit_piece(s, kind, &decoded, err);
    }
    return result;
}

/* ---- results ---- */

enum shape { SHAPE_TEXT, SHAPE_BASE64, SHAPE_JSON, SHAPE_CHART };

/* By enum member, whose first they are. */
static const struct {
    const char *mime;
    enum shape shape;
} kinds[] = {
    [MEMBER_TEXT] = {"text/plain", SHAPE_TEXT},
    [MEMBER_HTML] = {"text/html", SHAPE_TEXT},
    [MEMBER_MARKDOWN] = {"text/markdown", SHAPE_TEXT},
    [MEMBER_SVG] = {"image/svg+xml", SHAPE_TEXT},
    [MEMBER_LATEX] = {"text/latex", SHAPE_TEXT},
    [MEMBER_JAVASCRIPT] = {"application/javascript", SHAPE_TEXT},
    [MEMBER_PNG] = {"image/png", SHAPE_BASE64},
    [MEMBER_JPEG] = {"image/jpeg", SHAPE_BASE64},
    [MEMBER_PDF] = {"application/pdf", SHAPE_BASE64},
    [MEMBER_JSON] = {"application/json", SHAPE_JSON},
    [MEMBER_DATA] = {"application/vnd.e2b.data+json", SHAPE_JSON},
    [MEMBER_CHART] = {"application/vnd.e2b.chart+json", SHAPE_CHART},
};
enum { KINDS = COUNT_OF(kinds) };
_Static_assert((int)KINDS == (int)MEMBER_EXTRA, "the kinds come first, and each has a MIME type");

/* Base64 may be written in lines: what stands between these is put. */
static void put_base64(struct text *out, struct json_value value)
{
    const char *from = value.data, *end = value.data + value.len, *found;
    while ((found = memchr(from, '\\', (size_t)(end - from))) != NULL) {
        text_put(out, from, (size_t)(found - from));
        if (found[1] != 'n' && found[1] != 'r') {
            text_put(out, found, 2); /* "\/": another escape has no place there */
        }
        from = found + 2;
    }
    text_put(out, from, (size_t)(end - from));
}

static bool has_kind(enum shape shape, struct json_value value)
{
    if (value.len == 0 || json_is_null(value)) {
        return false;
    }
    if (shape == SHAPE_CHART) {
        return value.len > 2; /* "{}": it could not be read out of its figure */
    }
    return shape == SHAPE_JSON || json_is_string(value);
}

static void begin_member(struct text *bundle)
{
    text_put(bundle, bundle->len == 0 ? "{" : ",", 1);
}

static void put_kinds(struct text *bundle, const struct json_value *values)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (!has_kind(kinds[i].shape, values[i])) {
            continue;
        }
        begin_member(bundle);
        text_printf(bundle, "\"%s\":", kinds[i].mime);
        if (kinds[i].shape == SHAPE_BASE64) {
            put_base64(bundle, values[i]);
        } else {
            text_put(bundle, values[i].data, values[i].len);
        }
    }
}

struct extras { /* the names that were put */
    char names[EXTRAS_MAX][MIME_BYTES_MAX];
    size_t count;
};

/* The types that have a field of their own come by it; a name twice would make the bundle no good JSON object. */
static bool extra_is_new(const struct extras *extras, const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].mime, name) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < extras->count; i++) {
        if (strcmp(extras->names[i], name) == 0) {
            return false;
        }
    }
    return true;
}

/* A MIME type: printable ASCII. False if it is none that is handed on. */
static bool read_mime(struct json_value key, char name[MIME_BYTES_MAX])
{
    struct json_value rest = json_inside(key);
    size_t len = json_decode(&rest, name, MIME_BYTES_MAX - 1);
    for (size_t i = 0; i < len; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\') {
            return false;
        }
    }
    name[len] = '\0';
    return len > 0 && rest.len == 0;
}

static void put_extras(struct text *bundle, struct json_value extra)
{
    struct extras extras = {.count = 0};
    struct json_reader reader = json_reader_of(extra.data, extra.len);
    struct json_value key, value;
    /* Also of those that are not put: a line may hold a great many. */
    for (size_t seen = 0;
         seen < EXTRAS_SEEN_MAX && extras.count < EXTRAS_MAX && json_next(&reader, &key, &value);
         seen++) {
        char *name = extras.names[extras.count];
        if (json_is_null(value) || !read_mime(key, name) || !extra_is_new(&extras, name)) {
            continue;
        }
        begin_member(bundle);
        text_printf(bundle, "\"%s\":", name);
        text_put(bundle, value.data, value.len);
        extras.count++;
    }
}

static int take_result(struct stream *s, const struct line *line, struct sg_error *err)
{
    struct json_value extra = line->members[MEMBER_EXTRA];
    TEXT_CLEANUP struct text bundle = {.max = OUTPUT_BYTES_MAX};
    s->has_begun = true;
    put_kinds(&bundle, line->members);
    if (extra.len > 0 && extra.data[0] == '{') {
        put_extras(&bundle, extra);
    }
    if (bundle.len == 0 && !bundle.overflow) {
        return 0;
    }
    text_put(&bundle, "}", 1);
    return emit_or_end(s, SG_OUT_RESULT, &bundle, err);
}

/* ---- errors ---- */

/* Errors of E2B's server, not of the code: they have no traceback. */
static const struct {
    const char *name, *what;
} ends[] = {
    {"ContextRestarting", "the interpreter's process ended while the code ran, as by os._exit(), a "
                          "crash or too much memory"},
    {"WebSocketError", "the interpreter was restarted while the code ran"},
    {"UnexpectedEndOfExecution", "the interpreter was ended while the code ran"},
};

static const char *end_of_interpreter(struct json_value name, struct json_value traceback)
{
    if (json_is_string(traceback) && traceback.len > 2) {
        return NULL;
    }
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (json_string_is(name, ends[i].name)) {
            return ends[i].what;
        }
    }
    return NULL;
}

/* A member of the exception, cut at `max` bytes. */
static void put_cut(struct text *out, struct json_value string, size_t max)
{
    TEXT_CLEANUP struct text decoded = {0};
    if (json_is_string(string)) {
        struct json_value rest = json_inside(string);
        decode(&decoded, &rest, max);
    }
    size_t len = decoded.len == 0 ? 0 : text_cut(decoded.data, decoded.len, max);
    if (len < decoded.len) {
        decoded.len = len;
        text_puts(&decoded, " ...");
    }
    text_json(out, decoded.len == 0 ? "" : decoded.data, decoded.len);
}

/* Of a long string the end, as a string: cut where no escape begins or goes on. (One of a character's number may be cut,
 * and is then text.) */
static struct json_value string_end(struct json_value string)
{
    const char *end = string.data + string.len, *from = end - TRACEBACK_READ_MAX;
    if (string.len <= TRACEBACK_READ_MAX) {
        return string;
    }
    while (from < end - 1 && (from[0] == '\\' || from[-1] == '\\')) {
        from++;
    }
    return (struct json_value){from - 1, (size_t)(end - from) +
                                             1}; /* its first byte is taken for the quote */
}

static void put_traceback(struct text *out, struct json_value string)
{
    TEXT_CLEANUP struct text decoded = {0}, shortened = {0};
    if (json_is_string(string)) {
        struct json_value end = string_end(string), rest = json_inside(end);
        decode(&decoded, &rest, TRACEBACK_READ_MAX);
        traceback_put(&shortened, decoded.data, decoded.len, end.len < string.len);
    }
    text_json(out, shortened.len == 0 ? "" : shortened.data, shortened.len);
}

static int emit_restarted(struct stream *s, struct sg_error *err)
{
    static const char json[] =
        "{\"state\":\"restarted\",\"note\":\"the interpreter was begun anew: " GONE_KEPT "\"}";
    s->was_restarted = true;
    return emit(s, SG_OUT_STATUS, json, sizeof json - 1, err);
}

static int take_error(struct stream *s, const struct line *line, struct sg_error *err)
{
    const struct json_value *members = line->members;
    TEXT_CLEANUP struct text json = {0};
    const char *end = end_of_interpreter(members[MEMBER_NAME], members[MEMBER_TRACEBACK]);
    s->has_begun = true;
    if (end != NULL && s->was_restarted) {
        return 0; /* several events tell of the one end */
    }
    if (end != NULL && emit_restarted(s, err) != 0) {
        return s->code;
    }
    text_puts(&json, "{\"name\":");
    put_cut(&json, members[MEMBER_NAME], NAME_BYTES_MAX);
    text_puts(&json, ",\"value\":");
    if (end != NULL) {
        text_json(&json, end, strlen(end));
    } else {
        put_cut(&json, members[MEMBER_VALUE], VALUE_BYTES_MAX);
    }
    text_puts(&json, ",\"traceback\":");
    put_traceback(&json, members[MEMBER_TRACEBACK]);
    text_puts(&json, "}");
    return emit_or_end(s, SG_OUT_EXCEPTION, &json, err);
}

/* ---- lines ---- */

/* The interpreter counts from 1. Where it counts less than before, its process has ended since, unseen: after exit() it does so
 * when the run is over. */
static int take_count(struct stream *s, const struct line *line, struct sg_error *err)
{
    static const char json[] =
        "{\"state\":\"restarted\",\"note\":\"the interpreter had ended after an earlier run, as by "
        "exit(), and was begun anew: " GONE_KEPT "\"}";
    struct json_value value = line->members[MEMBER_COUNT];
    int64_t count = 0, count_before = s->executions;
    s->has_begun = true;
    if (value.data == NULL || !json_int(value, &count) || count <= 0) {
        return 0;
    }
    s->executions = count;
    return count < count_before ? emit(s, SG_OUT_STATUS, json, sizeof json - 1, err) : 0;
}

static int take_typed(struct stream *s, const struct line *line, struct sg_error *err)
{
    struct json_value type = line->members[MEMBER_TYPE];
    if (json_string_is(type, "stdout")) {
        return take_text(s, SG_OUT_LOG_OUT, line, err);
    }
    if (json_string_is(type, "stderr")) {
        return take_text(s, SG_OUT_LOG_ERR, line, err);
    }
    if (json_string_is(type, "result")) {
        return take_result(s, line, err);
    }
    if (json_string_is(type, "error")) {
        return take_error(s, line, err);
    }
    if (json_string_is(type, "number_of_executions")) {
        return take_count(s, line, err);
    }
    s->has_ended |= json_string_is(type, "end_of_execution");
    s->is_kept_alive |= json_string_is(type, "keepalive");
    return 0;
}

int event_take(struct stream *s, const char *line, size_t len, struct sg_error *err)
{
    struct line read;
    TEXT_CLEANUP struct text strict = {.max = STRICT_BYTES_MAX};
    lenient_put(&strict, line, len);
    if (strict.overflow) {
        return event_end_output(s, err);
    }
    if (!read_line(&strict, &read)) {
        s->unreadable_count++;
        return 0;
    }
    return take_typed(s, &read, err);
}

/* Where no escape is cut in two. */
static size_t whole_escapes(const char *line, size_t len)
{
    size_t at = 0;
    while (at < len) {
        size_t need = line[at] != '\\' ? 1 : at + 1 < len && line[at + 1] == 'u' ? 6 : 2;
        if (need > len - at) {
            break;
        }
        at += need;
    }
    return at;
}

int event_take_cut(struct stream *s, char *line, size_t len, struct sg_error *err)
{
    struct line read;
    TEXT_CLEANUP struct text strict = {.max = STRICT_BYTES_MAX};
    len = whole_escapes(line, len);
    memcpy(line + len, "\"}", 2);
    lenient_put(&strict, line, len + 2);
    if (strict.overflow || !read_line(&strict, &read)) {
        return 0;
    }
    struct json_value type = read.members[MEMBER_TYPE];
    bool is_text = json_string_is(type, "stdout") || json_string_is(type, "stderr");
    return is_text ? take_typed(s, &read, err) : 0;
}
