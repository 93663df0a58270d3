/* Who the client is behind proxies that are trusted to say so. Pure.
 *
 * Each proxy appends the address from which it was asked: the list is read from its end, as long as those who wrote it are
 * trusted, and ends at the first address that is not theirs. What a client made up stands before that, and counts for
 * nothing. A proxy that hides an address ("unknown", "_name"), or writes what is none, ends it likewise. */
#ifndef SANDGATE_HTTP_FORWARDED_H
#define SANDGATE_HTTP_FORWARDED_H

#include "http/address.h"
#include "http/head.h"

#define HTTP_FORWARDED_HOPS_MAX 32 /* of the list's end that are looked at */

struct http_network {
    uint8_t address[16]; /* of IPv6; IPv4 as it is mapped into it */
    unsigned bits;       /* that count */
    bool is_unix;        /* every Unix socket, and nothing else */
};

/* "10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "unix". NULL, or what is wrong with it ("is no address and no network"). */
const char *http_network_read(const char *text, struct http_network *ret);

enum http_forwarded_by { HTTP_X_FORWARDED_FOR, HTTP_FORWARDED /* RFC 7239 */ };

struct http_proxies {
    const struct http_network *networks; /* of those that are trusted */
    size_t count;
    enum http_forwarded_by
        header; /* in which they say it; the other one is a client's and not read */
};

/* Writes the client's address without a port ("192.0.2.1", "[2001:db8::1]") and returns true, if `peer` is trusted and says
 * one. */
bool http_forwarded_client(const struct http_proxies *, const struct http_head *,
                           const struct sockaddr_storage *peer, char ret[HTTP_ADDRESS_BYTES]);

#endif
