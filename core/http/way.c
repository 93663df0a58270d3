/* How a server is reached: certificates that are trusted and shown, and a proxy's URL. */
#include "base/digest.h"
#include "http/fetch_internal.h"

enum { LOGIN_BYTES_MAX = 255 }; /* of a user or a password, as SOCKS5 bounds them */

/* "%41" is "A". Control characters are refused, and `not_in` (0: none) too. */
static int decode(struct str text, char not_in, struct arena *arena, const char **ret,
                  struct sg_error *err)
{
    char *out = arena_get(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (byte == '%') {
            if (i + 2 >= text.len || !hex_decode((struct str){text.data + i + 1, 2}, &byte, 1)) {
                return url_refuse(err, "has a '%' in its user or password that no two hexadecimal "
                                       "digits follow: write it as %25");
            }
            i += 2;
        }
        if (byte < 0x20 || byte == 0x7F || (not_in != 0 && byte == (uint8_t)not_in)) {
            return url_refuse(err, "has a user or password with characters that may not be there");
        }
        out[len++] = (char)byte;
    }
    if (len > LOGIN_BYTES_MAX) {
        return url_refuse(err, "has a user or password of more than 255 bytes");
    }
    *ret = out;
    return 0;
}

/* "user:password". */
static int parse_login(struct str login, struct arena *arena, struct fetch_way *way,
                       struct sg_error *err)
{
    const char *colon = memchr(login.data, ':', login.len);
    if (colon == NULL || colon == login.data) {
        return url_refuse(err, "has user info that is not user:password");
    }
    struct str user = {login.data, (size_t)(colon - login.data)};
    struct str password = {colon + 1, login.len - user.len - 1};
    int rc = decode(user, ':', arena, &way->proxy_user, err);
    return rc == 0 ? decode(password, 0, arena, &way->proxy_password, err) : rc;
}

static struct str scheme_of(const char *url)
{
    static const struct str schemes[] = {STR("http://"), STR("https://"), STR("socks5h://")};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        if (str_starts(str_of(url), schemes[i])) {
            return schemes[i];
        }
    }
    return (struct str){0};
}

/* Written anew for libcurl, so that it sees the host that is seen here. */
static int parse_proxy(const char *url, struct arena *arena, struct fetch_way *way,
                       struct sg_error *err)
{
    int rc = url_check_characters(url, err);
    struct str scheme = scheme_of(url);
    if (rc == 0 && scheme.len == 0) {
        return url_refuse(err, "of a proxy starts with http://, https:// or socks5h://");
    }
    if (rc != 0) {
        return rc;
    }
    struct str rest = str_of(url + scheme.len);
    rest.len -= rest.len > 0 && rest.data[rest.len - 1] == '/';
    if (strcspn(rest.data, "/?#") < rest.len) {
        return url_refuse(err, "of a proxy ends behind its port");
    }
    const char *at = memrchr(rest.data, '@', rest.len);
    if (at != NULL) {
        size_t len = (size_t)(at - rest.data);
        rc = parse_login((struct str){rest.data, len}, arena, way, err);
        rest = (struct str){at + 1, rest.len - len - 1};
    }
    if (rc == 0) {
        rc = url_parse_authority(rest, &way->proxy_address, err);
    }
    if (rc == 0 && way->proxy_address.port == 0) {
        return url_refuse(err, "of a proxy needs its port, as in http://proxy.lan:3128");
    }
    if (rc == 0) {
        BUF_CLEANUP struct buf address = {0};
        address_write(&way->proxy_address, &address);
        way->proxy = arena_printf(arena, "%s%s", scheme.data, address.data);
    }
    return rc;
}

static uint64_t id_of(const struct fetch_way_options *options)
{
    const struct str parts[] = {options->ca, options->certificate, options->key,
                                str_of(options->proxy)};
    uint8_t hash[SHA256_BYTES];
    uint64_t id;
    sha256_parts(parts, COUNT_OF(parts), hash);
    memcpy(&id, hash, sizeof id);
    return id != 0 ? id : 1;
}

int fetch_way_new(const struct fetch_way_options *options, struct arena *arena,
                  const struct fetch_way **ret, struct sg_error *err)
{
    struct fetch_way *way = arena_get(arena, sizeof *way);
    *way = (struct fetch_way){.id = id_of(options),
                              .ca = options->ca,
                              .certificate = options->certificate,
                              .key = options->key};
    CHECK((options->certificate.len > 0) == (options->key.len > 0));
    int rc = options->proxy != NULL ? parse_proxy(options->proxy, arena, way, err) : 0;
    if (rc == 0) {
        *ret = way;
    }
    return rc;
}

uint64_t fetch_way_id(const struct fetch_way *way)
{
    return way != NULL ? way->id : 0;
}
