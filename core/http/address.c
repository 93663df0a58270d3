/* Addresses as text: see address.h. */
#include "http/address.h"

#include "base/check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static const struct sockaddr_in *as_four(const struct sockaddr_storage *address)
{
    return (const void *)address;
}

static const struct sockaddr_in6 *as_six(const struct sockaddr_storage *address)
{
    return (const void *)address;
}

void http_address_unmap(struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *six = as_six(address);
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        return;
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six->sin6_port};
    memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
    *address = (struct sockaddr_storage){0};
    memcpy(address, &four, sizeof four);
}

static void write_unix(const struct sockaddr_storage *address, socklen_t len,
                       char ret[HTTP_ADDRESS_BYTES])
{
    const struct sockaddr_un *unix_address = (const void *)address;
    size_t start = offsetof(struct sockaddr_un, sun_path);
    size_t bytes = len > start ? len - start : 0;
    const char *path = unix_address->sun_path;
    if (bytes == 0) {
        (void)snprintf(ret, HTTP_ADDRESS_BYTES, "unix"); /* fits */
    } else if (path[0] == '\0') {
        (void)snprintf(ret, HTTP_ADDRESS_BYTES, "unix:@%.*s", (int)bytes - 1, path + 1); /* fits */
    } else {
        (void)snprintf(ret, HTTP_ADDRESS_BYTES, "unix:%.*s", (int)bytes, path); /* fits */
    }
}

/* The host alone, without brackets; *ret_is_six tells whether it needs them. */
static void write_number(const struct sockaddr_storage *address, char *ret, size_t size,
                         bool *ret_is_six)
{
    struct sockaddr_storage plain = *address;
    http_address_unmap(&plain);
    *ret_is_six = plain.ss_family == AF_INET6;
    socklen_t len = *ret_is_six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo((const void *)&plain, len, ret, (socklen_t)size, NULL, 0, NI_NUMERICHOST) !=
        0) {
        (void)snprintf(ret, size, "?"); /* fits */
    }
}

void http_address_write_host(const struct sockaddr_storage *address, socklen_t len,
                             char ret[HTTP_ADDRESS_BYTES])
{
    char host[HTTP_ADDRESS_BYTES - 16];
    bool is_six = false;
    (void)len;
    ret[0] = '\0';
    if (address->ss_family != AF_UNIX) {
        write_number(address, host, sizeof host, &is_six);
        (void)snprintf(ret, HTTP_ADDRESS_BYTES, is_six ? "[%s]" : "%s", host); /* fits */
    }
}

void http_address_write(const struct sockaddr_storage *address, socklen_t len,
                        char ret[HTTP_ADDRESS_BYTES])
{
    if (address->ss_family == AF_UNIX) {
        write_unix(address, len, ret);
        return;
    }
    http_address_write_host(address, len, ret);
    size_t used = strlen(ret);
    (void)snprintf(ret + used, HTTP_ADDRESS_BYTES - used, ":%u",
                   http_address_port(address)); /* fits */
}

bool http_address_is_local(const struct sockaddr_storage *address)
{
    struct sockaddr_storage plain = *address;
    http_address_unmap(&plain);
    if (plain.ss_family == AF_INET) {
        return ntohl(as_four(&plain)->sin_addr.s_addr) >> 24 == 127;
    }
    return plain.ss_family == AF_UNIX ||
           (plain.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_six(&plain)->sin6_addr));
}

uint16_t http_address_port(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET    ? ntohs(as_four(address)->sin_port)
           : address->ss_family == AF_INET6 ? ntohs(as_six(address)->sin6_port)
                                            : 0;
}

void http_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    CHECK(address->ss_family == AF_INET || address->ss_family == AF_INET6);
    if (address->ss_family == AF_INET) {
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
    } else {
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    }
}

static bool is_any(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET
               ? as_four(address)->sin_addr.s_addr == htonl(INADDR_ANY)
               : IN6_IS_ADDR_UNSPECIFIED(&as_six(address)->sin6_addr) != 0;
}

bool http_address_overlaps(const struct sockaddr_storage *address, socklen_t len,
                           const struct sockaddr_storage *other, socklen_t other_len)
{
    if (address->ss_family != other->ss_family) {
        return false;
    }
    if (address->ss_family == AF_UNIX) {
        return len == other_len && memcmp(address, other, len) == 0;
    }
    if (http_address_port(address) != http_address_port(other)) {
        return false;
    }
    if (is_any(address) || is_any(other)) {
        return true;
    }
    return address->ss_family == AF_INET
               ? as_four(address)->sin_addr.s_addr == as_four(other)->sin_addr.s_addr
               : memcmp(&as_six(address)->sin6_addr, &as_six(other)->sin6_addr,
                        sizeof(struct in6_addr)) == 0 &&
                     as_six(address)->sin6_scope_id == as_six(other)->sin6_scope_id;
}
