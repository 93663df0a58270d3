/* Addresses of sockets as text, and what they tell: TCP over IPv4 and IPv6, and Unix sockets. An IPv4 address that is mapped
 * into IPv6 (::ffff:192.0.2.1) is the IPv4 address everywhere. */
#ifndef SANDGATE_HTTP_ADDRESS_H
#define SANDGATE_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define HTTP_ADDRESS_BYTES 128 /* any of them as text, with its NUL */

/* "127.0.0.1:80", "[fe80::1%eth0]:80", "unix:/run/x.sock", "unix:@abstract"; "unix" for a socket without a name, as clients'
 * have it. `len` is what the kernel, or getaddrinfo(3), gave with it. */
void http_address_write(const struct sockaddr_storage *, socklen_t len,
                        char ret[HTTP_ADDRESS_BYTES]);
/* The same without the port, as a client writes it in Host; "" for a Unix socket. */
void http_address_write_host(const struct sockaddr_storage *, socklen_t len,
                             char ret[HTTP_ADDRESS_BYTES]);

/* Makes a mapped address the IPv4 one; leaves others. */
void http_address_unmap(struct sockaddr_storage *);
/* Can only this machine reach it? Loopback and Unix sockets. */
bool http_address_is_local(const struct sockaddr_storage *);
/* The port in host order; 0 for a Unix socket. */
uint16_t http_address_port(const struct sockaddr_storage *);
void http_address_set_port(struct sockaddr_storage *, uint16_t port); /* of IPv4 or IPv6 */
/* Would two listeners there meet: is it one address, or does one of the two take in the other, at one port? */
bool http_address_overlaps(const struct sockaddr_storage *, socklen_t len,
                           const struct sockaddr_storage *, socklen_t other_len);

#endif
