/* The addresses to serve at: read from the configuration or taken over from whoever started the process, and the rule that
 * binds them to authentication. */
#include "gateway/listen.h"

#include "base/check.h"
#include "gateway/config.h"
#include "gateway/systemd.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static int too_many(const struct listen *listen, struct sg_error *err)
{
    return error_set(err, SG_E_CONFIG,
                     "server: '%s' comes to more than %d addresses: leave some out", listen->option,
                     HTTP_LISTENERS_MAX);
}

/* ---- Unix sockets ---- */

/* "unix:/run/sandgate.sock", "unix:@name" */
static int read_unix(const char *text, mode_t mode, struct listen *ret, struct sg_error *err)
{
    const char *path = text + strlen("unix:");
    size_t len = strlen(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof address.sun_path) {
        return error_set(err, SG_E_CONFIG,
                         "server: '%s' must be unix: and an absolute path, or @ and a name, of "
                         "at most %zu bytes, not '%s'",
                         ret->option, sizeof address.sun_path - 1, text);
    }
    if (ret->count == HTTP_LISTENERS_MAX) {
        return too_many(ret, err);
    }
    struct http_listener_options *at = &ret->at[ret->count++];
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* an abstract name has no NUL at its end */
    }
    memcpy(&at->address, &address, sizeof address);
    at->address_len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] == '/' ? 1 : 0));
    at->mode = mode;
    return 0;
}

/* ---- TCP ---- */

/* Has this machine the address? A name may stand for some that it has not, as where IPv6 is off. */
static bool is_here(const struct addrinfo *found)
{
    struct sockaddr_storage address = {0};
    memcpy(&address, found->ai_addr, found->ai_addrlen);
    http_address_set_port(&address, 0);
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_good = fd >= 0 && bind(fd, (const void *)&address, found->ai_addrlen) == 0;
    bool is_absent = !is_good && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written that could be lost */
    }
    return !is_absent; /* another failure is told where it is bound */
}

static bool has_address(const struct listen *listen, size_t first, const struct addrinfo *found)
{
    for (size_t i = first; i < listen->count; i++) {
        if (listen->at[i].address_len == found->ai_addrlen &&
            memcmp(&listen->at[i].address, found->ai_addr, found->ai_addrlen) == 0) {
            return true;
        }
    }
    return false;
}

/* An IPv4 address in the form of IPv6. Sockets of IPv6 take IPv6 alone here, so that none can be bound to it. */
static bool is_mapped(const struct addrinfo *found)
{
    return found->ai_family == AF_INET6 &&
           IN6_IS_ADDR_V4MAPPED(
               &((const struct sockaddr_in6 *)(const void *)found->ai_addr)->sin6_addr);
}

static int cannot_map(const struct addrinfo *found, const char *host, const struct listen *listen,
                      struct sg_error *err)
{
    struct sockaddr_storage address = {0};
    char text[HTTP_ADDRESS_BYTES];
    memcpy(&address, found->ai_addr, found->ai_addrlen);
    http_address_write(&address, found->ai_addrlen, text); /* as IPv4 */
    return error_set(err, SG_E_CONFIG,
                     "server: '%s' has '%s', which is an IPv4 address as IPv6 writes it: write %s",
                     listen->option, host, text);
}

/* All addresses that a name stands for, as far as this machine has them. */
static int add_found(const struct addrinfo *found, const char *host, struct listen *ret,
                     struct sg_error *err)
{
    size_t first = ret->count;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (is_mapped(at)) {
            return cannot_map(at, host, ret, err);
        }
        bool is_left_out = has_address(ret, first, at) || (found->ai_next != NULL && !is_here(at));
        if (is_left_out) {
            continue;
        }
        if (ret->count == HTTP_LISTENERS_MAX) {
            return too_many(ret, err);
        }
        memcpy(&ret->at[ret->count].address, at->ai_addr, at->ai_addrlen);
        ret->at[ret->count].address_len = at->ai_addrlen;
        memcpy(ret->hosts[ret->count], host, strlen(host) + 1);
        ret->count++;
    }
    return ret->count > first ? 0
                              : error_set(err, SG_E_CONFIG,
                                          "server: '%s' names '%s', of whose addresses this "
                                          "machine has none",
                                          ret->option, host);
}

/* "127.0.0.1:4000", "[::1]:4000", "localhost:4000", ":4000" */
static int read_tcp(const char *text, struct listen *ret, struct sg_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[LISTEN_HOST_BYTES] = {0}, name[LISTEN_HOST_BYTES] = {0};
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (colon == NULL || colon[1] == '\0' || len >= sizeof host ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtol(colon + 1, NULL, 10) > 65535) {
        return error_set(err, SG_E_CONFIG,
                         "server: '%s' must be an address and port such as 127.0.0.1:4000, not "
                         "'%s'",
                         ret->option, text);
    }
    memcpy(host, text, len);
    memcpy(name, bracketed ? text + 1 : text, bracketed ? len - 2 : len);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(name[0] != '\0' ? name : NULL, colon + 1, &hints, &found);
    if (rc != 0) {
        return error_set(err, SG_E_CONFIG, "server: '%s' address '%s' is not known here: %s",
                         ret->option, text, gai_strerror(rc));
    }
    rc = add_found(found, host, ret, err);
    freeaddrinfo(found);
    return rc;
}

/* ---- rules ---- */

/* An open gateway on an address that others reach is refused. */
static int check_auth(const struct config *config, const struct http_listener_options *at,
                      const char *address, struct sg_error *err)
{
    if (config->auth.mode != AUTH_NONE || config->auth.insecure ||
        http_address_is_local(&at->address)) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG,
                     "auth: mode 'none' at %s would let everybody who reaches it run code: listen "
                     "at 127.0.0.1, set keys, or say 'insecure: true'",
                     address);
}

/* What is told and done there is the operator's. */
static int check_admin(const struct config *config, const struct http_listener_options *at,
                       const char *address, struct sg_error *err)
{
    if (http_address_is_local(&at->address) || keys_open_admin(&config->settings->keys)) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG,
                     "server: 'admin' at %s would let everybody who reaches it end sessions: use "
                     "127.0.0.1 or a Unix socket, or make a key with 'use: admin'",
                     address);
}

/* Ports that are chosen later never meet. */
static int check_others(const struct listen *listen, size_t index, const char *text,
                        struct sg_error *err)
{
    const struct http_listener_options *at = &listen->at[index];
    for (size_t i = 0; i < index; i++) {
        const struct http_listener_options *other = &listen->at[i];
        bool is_chosen_later =
            at->address.ss_family != AF_UNIX && http_address_port(&at->address) == 0;
        if (!is_chosen_later && http_address_overlaps(&at->address, at->address_len,
                                                      &other->address, other->address_len)) {
            char address[HTTP_ADDRESS_BYTES];
            http_address_write(&other->address, other->address_len, address);
            return error_set(err, SG_E_CONFIG,
                             "server: '%s' has '%s' beside %s, which meet: leave one of them "
                             "out",
                             listen->option, text, address);
        }
    }
    return 0;
}

static int read_entry(const struct config *config, const char *text, enum http_listener_use use,
                      struct listen *ret, struct sg_error *err)
{
    size_t first = ret->count;
    bool is_unix = strncmp(text, "unix:", strlen("unix:")) == 0;
    int rc = is_unix ? read_unix(text, config->server.socket_mode_bits, ret, err)
                     : read_tcp(text, ret, err);
    bool is_bound_here = config->serves && (use == HTTP_USE_ADMIN || !activation_is_announced());
    if (rc == 0 && is_unix && is_bound_here) {
        rc = http_listener_check(&ret->at[first], err);
    }
    for (size_t i = first; rc == 0 && i < ret->count; i++) {
        ret->at[i].use = use;
        rc = use == HTTP_USE_ADMIN ? check_admin(config, &ret->at[i], text, err)
                                   : check_auth(config, &ret->at[i], text, err);
        rc = rc == 0 ? check_others(ret, i, text, err) : rc;
    }
    return rc;
}

int listen_read_admin(const struct config *config, struct listen *ret, struct sg_error *err)
{
    size_t first = ret->count;
    ret->option = "admin";
    if (config->server.admin == NULL) {
        return 0;
    }
    int rc = read_entry(config, config->server.admin, HTTP_USE_ADMIN, ret, err);
    ret->admin_is_local = rc == 0;
    for (size_t i = first; i < ret->count; i++) {
        ret->admin_is_local = ret->admin_is_local && http_address_is_local(&ret->at[i].address);
    }
    return rc;
}

int listen_read(const struct config *config, struct listen *ret, size_t *ret_entry,
                struct sg_error *err)
{
    *ret_entry = 0;
    ret->option = "listen";
    for (const char *const *entry = config->server.listen; *entry != NULL; entry++) {
        *ret_entry = (size_t)(entry - config->server.listen);
        int rc = read_entry(config, *entry, HTTP_USE_PUBLIC, ret, err);
        if (rc != 0) {
            return rc;
        }
    }
    return ret->count > 0 ? 0
                          : error_set(err, SG_E_CONFIG,
                                      "server: 'listen' is empty: it needs at least one address "
                                      "such as 127.0.0.1:4000");
}

static int check_handed_over(const struct config *config, struct listen *listen,
                             struct sg_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < listen->count; i++) {
        const struct http_listener_options *at = &listen->at[i];
        char address[HTTP_ADDRESS_BYTES], host[HTTP_ADDRESS_BYTES];
        http_address_write(&at->address, at->address_len, address);
        http_address_write_host(&at->address, at->address_len, host);
        _Static_assert(sizeof host <= sizeof listen->hosts[0], "a host has room");
        memcpy(listen->hosts[i], host, strlen(host) + 1);
        rc = check_auth(config, at, address, err);
    }
    return rc;
}

int listen_choose(const struct config *config, struct listen *ret, struct sg_error *err)
{
    size_t ignored = 0;
    int rc = activation_take(ret, err);
    if (rc != 0) {
        return rc;
    }
    ret->is_handed_over = ret->count > 0;
    rc = ret->is_handed_over ? check_handed_over(config, ret, err)
                             : listen_read(config, ret, &ignored, err);
    return rc == 0 ? listen_read_admin(config, ret, err) : rc;
}
