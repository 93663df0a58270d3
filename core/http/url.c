/* The host and port of a URL that we are asked to fetch. Narrower than what libcurl reads: an authority of plain
 * characters only, so that both can see but one host in it. */
#include "http/fetch_internal.h"

#include <arpa/inet.h>

int url_refuse(struct sg_error *err, const char *what)
{
    return error_set(err, SG_E_INVALID, "the URL %s", what);
}

int url_check_characters(const char *url, struct sg_error *err)
{
    for (const unsigned char *c = (const unsigned char *)url; *c != '\0'; c++) {
        if (*c <= 0x20 || *c >= 0x7F || *c == '\\') {
            return url_refuse(err, "has spaces, control characters or others that have to be "
                                   "escaped");
        }
    }
    return 0;
}

static bool host_char_valid(char c, bool in_brackets)
{
    bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_word || c == '.' || (in_brackets ? c == ':' : c == '-' || c == '_');
}

static int parse_port(struct str text, uint16_t *ret, struct sg_error *err)
{
    unsigned port = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || port > 65535) {
            return url_refuse(err, "has a port that is not a number");
        }
        port = port * 10 + (unsigned)(text.data[i] - '0');
    }
    if (port == 0 || port > 65535) {
        return url_refuse(err, "has a port that is not between 1 and 65535");
    }
    *ret = (uint16_t)port;
    return 0;
}

static int take_host(struct str host, bool in_brackets, struct fetch_address *ret,
                     struct sg_error *err)
{
    if (host.len == 0 || host.len >= FETCH_HOST_BYTES) {
        return url_refuse(err, "has no host, or one that is too long");
    }
    for (size_t i = 0; i < host.len; i++) {
        if (!host_char_valid(host.data[i], in_brackets)) {
            return url_refuse(err, "has a host with characters that may not be there");
        }
    }
    for (size_t i = 0; i < host.len; i++) {
        bool is_upper = host.data[i] >= 'A' && host.data[i] <= 'Z';
        ret->host[i] = (char)(is_upper ? host.data[i] + 32 : host.data[i]);
    }
    ret->host[host.len] = '\0';
    struct in6_addr six;
    struct in_addr four;
    ret->is_six = inet_pton(AF_INET6, ret->host, &six) == 1;
    ret->is_literal = ret->is_six || inet_pton(AF_INET, ret->host, &four) == 1;
    return ret->is_six == in_brackets
               ? 0
               : url_refuse(err, "has brackets around what is no IPv6 address");
}

int url_parse_authority(struct str authority, struct fetch_address *ret, struct sg_error *err)
{
    struct str host = authority, port = {NULL, 0};
    bool in_brackets = authority.len > 0 && authority.data[0] == '[';
    if (in_brackets) {
        const char *end = memchr(authority.data, ']', authority.len);
        if (end == NULL) {
            return url_refuse(err, "has a bracket that is not closed");
        }
        host = (struct str){authority.data + 1, (size_t)(end - authority.data - 1)};
        port = (struct str){end + 1, authority.len - host.len - 2};
    } else {
        const char *colon = authority.len == 0 ? NULL : memchr(authority.data, ':', authority.len);
        host.len = colon == NULL ? authority.len : (size_t)(colon - authority.data);
        port = (struct str){authority.data + host.len, authority.len - host.len};
    }
    int code = take_host(host, in_brackets, ret, err);
    if (code != 0 || port.len == 0) {
        return code;
    }
    if (port.data[0] != ':') {
        return url_refuse(err, "has something between its host and port");
    }
    return parse_port((struct str){port.data + 1, port.len - 1}, &ret->port, err);
}

int url_parse(const char *url, struct fetch_address *ret, struct sg_error *err)
{
    int code = url_check_characters(url, err);
    if (code != 0) {
        return code;
    }
    struct str text = str_of(url);
    bool is_tls = text.len >= 8 && str_eq_nocase((struct str){url, 8}, STR("https://"));
    if (!is_tls && (text.len < 7 || !str_eq_nocase((struct str){url, 7}, STR("http://")))) {
        return url_refuse(err, "does not start with http:// or https://");
    }
    const char *start = url + (is_tls ? 8 : 7);
    struct str authority = {start, strcspn(start, "/?#")};
    if (memchr(start, '@', authority.len) != NULL) {
        return url_refuse(err, "has user info, which belongs in a header");
    }
    struct fetch_address address = {.port = is_tls ? 443 : 80};
    code = url_parse_authority(authority, &address, err);
    if (code == 0) {
        *ret = address;
    }
    return code;
}

int fetch_check_url(const char *url, struct sg_error *err)
{
    struct fetch_address ignored;
    return url_parse(url, &ignored, err);
}

void address_write(const struct fetch_address *address, struct buf *out)
{
    (void)buf_printf(out, address->is_six ? "[%s]:%u" : "%s:%u", address->host,
                     address->port); /* short: cannot overflow */
}
