/* Request heads, read strictly: the request line, the fields, and what the fields say about framing. Each refusal says
 * what is wrong; what came from outside is not repeated in it. */
#include "http/head.h"

#include "base/check.h"

#define METHOD_BYTES_MAX 32

/* A failure with its status. */
static int refuse(struct sg_error *err, int status, const char *what)
{
    (void)error_set(err, SG_E_INVALID, "%s", what); /* the code is returned below */
    err->status = status;
    return SG_E_INVALID;
}

static size_t leading_crlf(struct str data)
{
    return str_starts(data, STR("\r\n")) ? 2 : 0;
}

size_t http_head_length(struct str data)
{
    size_t start = leading_crlf(data);
    while (start < data.len) {
        const char *lf = memchr(data.data + start, '\n', data.len - start);
        if (lf == NULL) {
            return 0;
        }
        size_t end = (size_t)(lf - data.data);
        if (end == start || (end == start + 1 && data.data[start] == '\r')) {
            return end + 1;
        }
        start = end + 1;
    }
    return 0;
}

/* Takes the next line without its CRLF from the front of *rest. */
static int take_line(struct str *rest, struct str *ret_line, struct sg_error *err)
{
    const char *lf = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    if (lf == NULL) {
        return refuse(err, 400, "the request's head has no end");
    }
    size_t len = (size_t)(lf - rest->data);
    if (len == 0 || rest->data[len - 1] != '\r') {
        return refuse(err, 400, "a line of the request's head ends in a bare LF");
    }
    *ret_line = (struct str){rest->data, len - 1};
    *rest = (struct str){lf + 1, rest->len - len - 1};
    return 0;
}

/* ---- the request line ---- */

static bool method_valid(struct str method)
{
    for (size_t i = 0; i < method.len; i++) {
        if ((method.data[i] < 'A' || method.data[i] > 'Z') && method.data[i] != '-') {
            return false;
        }
    }
    return method.len > 0 && method.len <= METHOD_BYTES_MAX;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int parse_version(struct str version, struct http_head *head, struct sg_error *err)
{
    if (version.len != 8 || !str_starts(version, STR("HTTP/")) || !is_digit(version.data[5]) ||
        version.data[6] != '.' || !is_digit(version.data[7])) {
        return refuse(err, 400, "the request line does not end in an HTTP version");
    }
    if (version.data[5] != '1' || version.data[7] > '1') {
        return refuse(err, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    head->minor = version.data[7] - '0';
    return 0;
}

static bool target_chars_valid(struct str target)
{
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.data[i];
        if (c <= 0x20 || c >= 0x7F || c == '#') {
            return false;
        }
    }
    return target.len > 0;
}

static int parse_request_line(struct str line, struct http_head *head, struct sg_error *err)
{
    const char *first = line.len == 0 ? NULL : memchr(line.data, ' ', line.len);
    const char *last = line.len == 0 ? NULL : memrchr(line.data, ' ', line.len);
    if (first == NULL || first == last) {
        return refuse(err, 400, "the request line is not method, target and version");
    }
    const char *end = line.data + line.len;
    head->method = (struct str){line.data, (size_t)(first - line.data)};
    head->target = (struct str){first + 1, (size_t)(last - first - 1)};
    int code = parse_version((struct str){last + 1, (size_t)(end - last - 1)}, head, err);
    if (code != 0) {
        return code;
    }
    if (!method_valid(head->method)) {
        return refuse(err, 400, "the request's method is not one");
    }
    if (!target_chars_valid(head->target)) {
        return refuse(err, 400, "the request's target has characters that may not be there");
    }
    return 0;
}

/* ---- the target; after the fields, as an absolute one is compared with Host ---- */

static struct str str_from(struct str text, size_t at)
{
    return (struct str){text.data + at, text.len - at};
}

/* Bytes of "http://" or "https://" at the front, or 0. */
static size_t scheme_length(struct str target)
{
    if (target.len >= 7 && str_eq_nocase((struct str){target.data, 7}, STR("http://"))) {
        return 7;
    }
    return target.len >= 8 && str_eq_nocase((struct str){target.data, 8}, STR("https://")) ? 8 : 0;
}

static int take_authority(struct http_head *head, size_t scheme, struct sg_error *err)
{
    struct str rest = str_from(head->target, scheme);
    size_t len = 0;
    while (len < rest.len && rest.data[len] != '/' && rest.data[len] != '?') {
        len++;
    }
    struct str authority = {rest.data, len};
    if (authority.len == 0 || !str_eq_nocase(authority, head->host)) {
        return refuse(err, 400, "the request's target names another host than its Host field");
    }
    head->target = len == rest.len ? STR("/") : str_from(rest, len);
    return 0;
}

static int parse_target(struct http_head *head, struct sg_error *err)
{
    if (str_is(head->target, "*")) {
        head->path = head->target;
        head->query = (struct str){NULL, 0};
        return str_is(head->method, "OPTIONS")
                   ? 0
                   : refuse(err, 400, "the target '*' is for OPTIONS only");
    }
    size_t scheme = scheme_length(head->target);
    int code = scheme > 0 ? take_authority(head, scheme, err) : 0;
    if (code != 0) {
        return code;
    }
    if (head->target.data[0] != '/') {
        return refuse(err, 400, "the request's target is not a path");
    }
    const char *mark = memchr(head->target.data, '?', head->target.len);
    size_t path_len = mark == NULL ? head->target.len : (size_t)(mark - head->target.data);
    head->path = (struct str){head->target.data, path_len};
    head->query = mark == NULL ? (struct str){NULL, 0} : str_from(head->target, path_len + 1);
    return 0;
}

/* ---- fields ---- */

static int parse_field(struct str line, struct http_field *ret, struct sg_error *err)
{
    if (line.data[0] == ' ' || line.data[0] == '\t') {
        return refuse(err, 400, "a header is folded over two lines");
    }
    const char *colon = memchr(line.data, ':', line.len);
    if (colon == NULL) {
        return refuse(err, 400, "a header has no colon");
    }
    size_t name_len = (size_t)(colon - line.data);
    if (name_len > 0 && (colon[-1] == ' ' || colon[-1] == '\t')) {
        return refuse(err, 400, "a header has a space before its colon");
    }
    ret->name = (struct str){line.data, name_len};
    ret->value = str_trim(str_from(line, name_len + 1));
    if (!http_token_valid(ret->name)) {
        return refuse(err, 400, "a header's name has characters that may not be there");
    }
    if (!http_value_valid(ret->value)) {
        return refuse(err, 400, "a header's value has control characters");
    }
    return 0;
}

static int parse_fields(struct str rest, struct http_head *head, struct sg_error *err)
{
    head->count = 0;
    for (;;) {
        struct str line;
        int code = take_line(&rest, &line, err);
        if (code != 0) {
            return code;
        }
        if (line.len == 0) {
            break;
        }
        if (head->count == LIMIT_HEADER_COUNT) {
            (void)error_set(err, SG_E_LIMIT, "the request has more than %d headers",
                            LIMIT_HEADER_COUNT); /* the code is returned below */
            err->status = 431;
            return SG_E_LIMIT;
        }
        code = parse_field(line, &head->fields[head->count], err);
        if (code != 0) {
            return code;
        }
        head->count++;
    }
    return rest.len == 0 ? 0 : refuse(err, 400, "there are bytes behind the request's head");
}

struct str http_head_get(const struct http_head *head, const char *name)
{
    struct str wanted = str_of(name);
    for (size_t i = 0; i < head->count; i++) {
        if (str_eq_nocase(head->fields[i].name, wanted)) {
            return head->fields[i].value;
        }
    }
    return (struct str){NULL, 0};
}

size_t http_head_count(const struct http_head *head, const char *name)
{
    struct str wanted = str_of(name);
    size_t count = 0;
    for (size_t i = 0; i < head->count; i++) {
        count += str_eq_nocase(head->fields[i].name, wanted);
    }
    return count;
}

/* ---- what the fields say ---- */

struct framing { /* how often each was there */
    size_t lengths, codings, hosts;
    bool close, keep_alive;
};

static int read_length(struct str value, struct http_head *head, struct sg_error *err)
{
    int64_t length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.data[i]) || length > (INT64_MAX - 9) / 10) {
            return refuse(err, 400, "Content-Length is not a number of bytes");
        }
        length = length * 10 + (value.data[i] - '0');
    }
    if (value.len == 0) {
        return refuse(err, 400, "Content-Length is empty");
    }
    head->content_length = length;
    return 0;
}

static int read_coding(struct str value, struct http_head *head, struct sg_error *err)
{
    if (value.len == 0) {
        return refuse(err, 400, "Transfer-Encoding is empty");
    }
    if (!str_eq_nocase(value, STR("chunked"))) {
        return refuse(err, 501, "Transfer-Encoding may only be 'chunked'");
    }
    head->chunked = true;
    return 0;
}

static int read_expect(struct str value, struct http_head *head, struct sg_error *err)
{
    if (!str_eq_nocase(value, STR("100-continue"))) {
        return refuse(err, 417, "Expect may only be '100-continue'");
    }
    head->expect_continue = head->minor >= 1; /* RFC 9110 10.1.1: ignored in 1.0 */
    return 0;
}

/* What the gateway compares with its own names, and others with theirs: nothing in it may be read in two ways. */
static int read_host(struct str value, struct http_head *head, struct sg_error *err)
{
    if (value.len == 0) {
        return refuse(err, 400, "Host is empty");
    }
    if (!http_host_valid(value)) {
        return refuse(err, 400, "Host is not a host and port");
    }
    head->host = value;
    return 0;
}

static void read_connection(struct str value, struct framing *framing)
{
    size_t start = 0;
    for (size_t i = 0; i <= value.len; i++) {
        if (i < value.len && value.data[i] != ',') {
            continue;
        }
        struct str option = str_trim((struct str){value.data + start, i - start});
        framing->close |= str_eq_nocase(option, STR("close"));
        framing->keep_alive |= str_eq_nocase(option, STR("keep-alive"));
        start = i + 1;
    }
}

static int read_field(const struct http_field *field, struct http_head *head,
                      struct framing *framing, struct sg_error *err)
{
    switch (field->name.len) { /* spares most comparisons */
    case 4:
        if (str_eq_nocase(field->name, STR("host"))) {
            framing->hosts++;
            return read_host(field->value, head, err);
        }
        return 0;
    case 6:
        return str_eq_nocase(field->name, STR("expect")) ? read_expect(field->value, head, err) : 0;
    case 10:
        if (str_eq_nocase(field->name, STR("connection"))) {
            read_connection(field->value, framing);
        }
        return 0;
    case 14:
        if (str_eq_nocase(field->name, STR("content-length"))) {
            framing->lengths++;
            return read_length(field->value, head, err);
        }
        return 0;
    case 17:
        if (str_eq_nocase(field->name, STR("transfer-encoding"))) {
            framing->codings++;
            return read_coding(field->value, head, err);
        }
        return 0;
    default:
        return 0;
    }
}

static int check_framing(const struct http_head *head, const struct framing *framing,
                         struct sg_error *err)
{
    if (framing->lengths > 0 && framing->codings > 0) {
        return refuse(err, 400, "the request has both Content-Length and Transfer-Encoding");
    }
    if (framing->lengths > 1) {
        return refuse(err, 400, "the request has two Content-Length headers");
    }
    if (framing->codings > 1) {
        return refuse(err, 400, "the request has two Transfer-Encoding headers");
    }
    if (framing->codings > 0 && head->minor == 0) {
        return refuse(err, 400, "Transfer-Encoding is not part of HTTP/1.0");
    }
    if (framing->hosts > 1) {
        return refuse(err, 400, "the request has two Host headers");
    }
    if (framing->hosts == 0 && head->minor >= 1) {
        return refuse(err, 400, "the request has no Host header");
    }
    return 0;
}

static int read_fields(struct http_head *head, struct sg_error *err)
{
    struct framing framing = {0};
    head->content_length = -1;
    head->chunked = false;
    head->expect_continue = false;
    head->host = (struct str){NULL, 0};
    for (size_t i = 0; i < head->count; i++) {
        int code = read_field(&head->fields[i], head, &framing, err);
        if (code != 0) {
            return code;
        }
    }
    head->keep_alive = !framing.close && (head->minor >= 1 || framing.keep_alive);
    return check_framing(head, &framing, err);
}

int http_head_parse(struct str data, struct http_head *ret, struct sg_error *err)
{
    if (data.len > LIMIT_HEADER_BYTES) {
        (void)error_set(err, SG_E_LIMIT, "the request's head is longer than %zu bytes",
                        LIMIT_HEADER_BYTES); /* the code is returned below */
        err->status = 431;
        return SG_E_LIMIT;
    }
    struct str rest = str_from(data, leading_crlf(data)), line;
    int code = take_line(&rest, &line, err);
    if (code == 0) {
        code = parse_request_line(line, ret, err);
    }
    if (code == 0) {
        code = parse_fields(rest, ret, err);
    }
    if (code == 0) {
        code = read_fields(ret, err);
    }
    return code == 0 ? parse_target(ret, err) : code;
}
