/* The address to serve at: read from the configuration or taken over from whoever started the process, and the rule
 * that binds it to authentication. */
#include "gateway/gateway.h"

#include "gateway/systemd.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool address_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* "127.0.0.1:4000", "[::1]:4000", "localhost:4000" */
static int parse_listen(const char *text, struct http_server_options *ret, struct sg_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[256] = {0};
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (colon == NULL || colon[1] == '\0' || len >= sizeof host ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtol(colon + 1, NULL, 10) > 65535) {
        return error_set(err, SG_E_CONFIG,
                         "server: 'listen' must be an address and port such as 127.0.0.1:4000, not "
                         "'%s'",
                         text);
    }
    memcpy(host, bracketed ? text + 1 : text, bracketed ? len - 2 : len);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, &found);
    if (rc != 0) {
        return error_set(err, SG_E_CONFIG, "server: 'listen' address '%s' is not known here: %s",
                         text, gai_strerror(rc));
    }
    memcpy(&ret->address, found->ai_addr, found->ai_addrlen);
    ret->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* An open gateway on an address that others reach is refused. */
static int check_auth(const struct config *config, const struct http_server_options *listen,
                      const char *address, struct sg_error *err)
{
    if (config->auth.mode != AUTH_NONE || config->auth.insecure ||
        address_is_loopback(&listen->address)) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG,
                     "auth: mode 'none' at %s would let everybody who reaches it run code: listen "
                     "at 127.0.0.1, set keys, or say 'insecure: true'",
                     address);
}

int gateway_check_listen(struct config *config, struct http_server_options *ret,
                         struct sg_error *err)
{
    int rc = parse_listen(config->server.listen, ret, err);
    return rc == 0 ? check_auth(config, ret, config->server.listen, err) : rc;
}

/* As a client would write it in Host, without the port. */
static void host_of(const struct http_server_options *listen, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "?";
    bool is_six = listen->address.ss_family == AF_INET6;
    const void *address =
        is_six ? (const void *)&((const struct sockaddr_in6 *)&listen->address)->sin6_addr
               : (const void *)&((const struct sockaddr_in *)&listen->address)->sin_addr;
    (void)inet_ntop(listen->address.ss_family, address, text, sizeof text); /* else it stays '?' */
    (void)snprintf(out, size, is_six ? "[%s]" : "%s", text);                /* fits */
}

int gateway_choose_listen(struct gateway *gateway, struct sg_error *err)
{
    struct config *config = gateway->config;
    int rc = activation_take(&gateway->listen, err);
    if (rc != 0) {
        return rc;
    }
    if (gateway->listen.listen_fd == 0) {
        const char *colon = strrchr(config->server.listen, ':');
        rc = gateway_check_listen(config, &gateway->listen, err);
        (void)snprintf(gateway->listen_host, sizeof gateway->listen_host, "%.*s",
                       colon != NULL ? (int)(colon - config->server.listen) : 0,
                       config->server.listen); /* a name that long was refused */
        return rc;
    }
    host_of(&gateway->listen, gateway->listen_host, sizeof gateway->listen_host);
    return check_auth(config, &gateway->listen, gateway->listen_host, err);
}
