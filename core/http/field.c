/* The small rules of HTTP: tokens, field values, hosts, hop-by-hop names, reasons, and request paths decoded once. */
#include "http/head.h"

#include "base/check.h"

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http_token_valid(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_token_char((unsigned char)text.data[i])) {
            return false;
        }
    }
    return text.len > 0;
}

bool http_value_valid(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return false;
        }
    }
    return true;
}

/* Is all of it letters, digits and characters of `others`? */
static bool consists_of(struct str text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_word && (c == '\0' || strchr(others, c) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

/* Nothing, or ':' and a number; a number of no digits is the scheme's own port (RFC 3986 3.2.3). */
static bool port_valid(struct str port)
{
    unsigned number = 0;
    for (size_t i = 1; i < port.len; i++) {
        if (port.data[i] < '0' || port.data[i] > '9' || i > 5) {
            return false;
        }
        number = number * 10 + (unsigned)(port.data[i] - '0');
    }
    return port.len == 0 || (port.data[0] == ':' && number <= 65535);
}

bool http_host_valid(struct str text)
{
    bool in_brackets = text.len > 0 && text.data[0] == '[';
    const char *end = text.len == 0 ? NULL : memchr(text.data, in_brackets ? ']' : ':', text.len);
    if (in_brackets) {
        if (end == NULL) {
            return false;
        }
        struct str address = {text.data + 1, (size_t)(end - text.data - 1)};
        struct str port = {end + 1, text.len - address.len - 2};
        return consists_of(address, ":.") && port_valid(port);
    }
    struct str name = {text.data, end == NULL ? text.len : (size_t)(end - text.data)};
    return consists_of(name, ".-_") &&
           port_valid((struct str){text.data + name.len, text.len - name.len});
}

/* Is `name` one of the elements of a comma-separated list? */
static bool list_has(struct str list, struct str name)
{
    size_t start = 0;
    for (size_t i = 0; i <= list.len; i++) {
        if (i == list.len || list.data[i] == ',') {
            struct str element = str_trim((struct str){list.data + start, i - start});
            if (element.len > 0 && str_eq_nocase(element, name)) {
                return true;
            }
            start = i + 1;
        }
    }
    return false;
}

bool http_is_hop_by_hop(struct str name, struct str connection)
{
    static const char *const names[] = {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (str_eq_nocase(name, str_of(names[i]))) {
            return true;
        }
    }
    return connection.len > 0 && list_has(connection, name);
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {424, "Failed Dependency"},
        {425, "Too Early"},
        {426, "Upgrade Required"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {451, "Unavailable For Legal Reasons"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {529, "Overloaded"},
    };
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Unknown";
}

/* ---- paths ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at `at`, or -1 for a broken one. */
static int escape_decode(struct str path, size_t at)
{
    if (path.len - at < 3) {
        return -1;
    }
    int high = hex_value(path.data[at + 1]), low = hex_value(path.data[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Dot segments and empty ones in what was decoded; an empty last one (a slash at the end) is fine. */
static const char *segments_problem(struct str path)
{
    size_t start = 1;
    for (size_t i = 1; i <= path.len; i++) {
        if (i < path.len && path.data[i] != '/') {
            continue;
        }
        struct str segment = {path.data + start, i - start};
        if (segment.len == 0 && i < path.len) {
            return "an empty segment";
        }
        if (str_is(segment, ".") || str_is(segment, "..")) {
            return "a dot segment";
        }
        start = i + 1;
    }
    return NULL;
}

static const char *path_problem(struct str path, char *out, size_t *ret_len)
{
    if (path.len == 0 || path.data[0] != '/') {
        return "no slash at its start";
    }
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++) {
        int c = (unsigned char)path.data[i];
        if (c == '%') {
            c = escape_decode(path, i);
            if (c < 0) {
                return "a broken escape";
            }
            if (c == '/') {
                return "an encoded slash";
            }
            i += 2;
        }
        if (c == '\\') {
            return "a backslash";
        }
        if (c < 0x20 || c == 0x7F) {
            return "a control character";
        }
        out[len++] = (char)c;
    }
    out[len] = '\0';
    *ret_len = len;
    return segments_problem((struct str){out, len});
}

int http_path_decode(struct str path, char *out, size_t *ret_len, struct sg_error *err)
{
    size_t len = 0;
    const char *problem = path_problem(path, out, &len);
    if (problem != NULL) {
        return error_set(err, SG_E_INVALID, "the request's path has %s", problem);
    }
    *ret_len = len;
    return 0;
}
