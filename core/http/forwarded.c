/* X-Forwarded-For and Forwarded: see forwarded.h. */
#include "http/forwarded.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* ---- addresses ---- */

static bool address_read(struct str text, uint8_t ret[16])
{
    char plain[INET6_ADDRSTRLEN];
    if (text.len == 0 || text.len >= sizeof plain || memchr(text.data, '\0', text.len) != NULL) {
        return false;
    }
    memcpy(plain, text.data, text.len);
    plain[text.len] = '\0';
    memcpy(ret, mapped, sizeof mapped);
    return inet_pton(AF_INET, plain, ret + sizeof mapped) == 1 ||
           inet_pton(AF_INET6, plain, ret) == 1;
}

static struct http_network address_of(const struct sockaddr_storage *peer)
{
    struct http_network ret = {.bits = 128, .is_unix = peer->ss_family == AF_UNIX};
    if (peer->ss_family == AF_INET) {
        memcpy(ret.address, mapped, sizeof mapped);
        memcpy(ret.address + sizeof mapped,
               &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer->ss_family == AF_INET6) {
        memcpy(ret.address, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr,
               sizeof ret.address);
    }
    return ret;
}

static void address_write(const struct http_network *address, char ret[HTTP_ADDRESS_BYTES])
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    memcpy(&six.sin6_addr, address->address, sizeof six.sin6_addr);
    memcpy(&storage, &six, sizeof six);
    http_address_write_host(&storage, sizeof six, ret);
}

/* ---- networks ---- */

static bool bit_is_set(const uint8_t *bytes, unsigned bit)
{
    return (bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

const char *http_network_read(const char *text, struct http_network *ret)
{
    const char *slash = strchr(text, '/');
    size_t len = slash == NULL ? strlen(text) : (size_t)(slash - text);
    *ret = (struct http_network){.bits = 128};
    if (strcmp(text, "unix") == 0) {
        ret->is_unix = true;
        return NULL;
    }
    if (!address_read((struct str){text, len}, ret->address)) {
        return "is no address and no network";
    }
    unsigned before = memchr(text, ':', len) == NULL ? 8 * sizeof mapped : 0;
    if (slash != NULL) {
        size_t digits = strspn(slash + 1, "0123456789");
        long bits = digits > 0 && digits < 4 ? strtol(slash + 1, NULL, 10) : -1;
        if (slash[1 + digits] != '\0' || bits < 1 || bits > 128 - (long)before) {
            return "has a length that is none: it is 1 to 32 for IPv4, 1 to 128 for IPv6";
        }
        ret->bits = before + (unsigned)bits;
    }
    for (unsigned bit = ret->bits; bit < 128; bit++) {
        if (bit_is_set(ret->address, bit)) {
            return "has an address within the network in place of the network's own";
        }
    }
    return NULL;
}

static bool network_has(const struct http_network *network, const struct http_network *address)
{
    unsigned bytes = network->bits / 8, rest = network->bits % 8;
    if (network->is_unix || address->is_unix) {
        return network->is_unix && address->is_unix;
    }
    return memcmp(network->address, address->address, bytes) == 0 &&
           (rest == 0 || (network->address[bytes] ^ address->address[bytes]) >> (8 - rest) == 0);
}

static bool is_trusted(const struct http_proxies *proxies, const struct http_network *address)
{
    for (size_t i = 0; i < proxies->count; i++) {
        if (network_has(&proxies->networks[i], address)) {
            return true;
        }
    }
    return false;
}

/* ---- the list ---- */

struct hops { /* the last ones, as they were written; a ring */
    struct str at[HTTP_FORWARDED_HOPS_MAX];
    size_t count; /* of all, also of those that it has no more */
};

/* The end of the element that begins at `start`. Within quotes a comma separates nothing. */
static size_t element_end(struct str list, size_t start, bool has_quotes, bool *ret_is_open)
{
    *ret_is_open = false;
    for (size_t i = start; i < list.len; i++) {
        if (*ret_is_open && list.data[i] == '\\') {
            i++;
        } else if (has_quotes && list.data[i] == '"') {
            *ret_is_open = !*ret_is_open;
        } else if (list.data[i] == ',' && !*ret_is_open) {
            return i;
        }
    }
    return list.len;
}

/* A quote that a client has left open would swallow what a proxy wrote behind it: then none of the field's quotes counts. */
static bool quotes_are_closed(struct str list)
{
    bool is_open = false;
    for (size_t end = 0; end <= list.len && !is_open;) {
        end = element_end(list, end, true, &is_open) + 1;
    }
    return !is_open;
}

static void hops_add(struct hops *hops, struct str list, bool has_quotes)
{
    bool is_open;
    has_quotes = has_quotes && quotes_are_closed(list);
    for (size_t start = 0; start <= list.len;) {
        size_t end = element_end(list, start, has_quotes, &is_open);
        struct str hop = {list.data + start, end - start};
        hops->at[hops->count++ % HTTP_FORWARDED_HOPS_MAX] = str_trim(hop);
        start = end + 1;
    }
}

static void hops_read(const struct http_head *head, const char *name, bool has_quotes,
                      struct hops *hops)
{
    for (size_t i = 0; i < head->count; i++) {
        if (str_eq_nocase(head->fields[i].name, str_of(name))) {
            hops_add(hops, head->fields[i].value, has_quotes);
        }
    }
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". */
static bool node_read(struct str node, uint8_t ret[16])
{
    const char *colon = node.len == 0 ? NULL : memchr(node.data, ':', node.len);
    bool is_bracketed = node.len > 0 && node.data[0] == '[';
    const char *end = is_bracketed ? memchr(node.data, ']', node.len) : NULL;
    struct str port = {NULL, 0};
    if (is_bracketed && end == NULL) {
        return false;
    }
    if (is_bracketed) {
        port = (struct str){end + 1, node.len - (size_t)(end + 1 - node.data)};
        node = (struct str){node.data + 1, (size_t)(end - node.data - 1)};
    } else if (colon != NULL &&
               memchr(colon + 1, ':', node.len - (size_t)(colon + 1 - node.data)) ==
                   NULL) { /* one colon alone: IPv4 with a port */
        port = (struct str){colon, node.len - (size_t)(colon - node.data)};
        node.len -= port.len;
    }
    for (size_t i = 1; i < port.len; i++) {
        if (port.data[i] < '0' || port.data[i] > '9') {
            return false;
        }
    }
    bool port_is_good = port.len == 0 || (port.data[0] == ':' && port.len >= 2 && port.len <= 6);
    return port_is_good && address_read(node, ret);
}

/* The value of `for` in "for=192.0.2.1;proto=https" or for="[2001:db8::1]:80". Empty: there is none, or two. */
static struct str for_of(struct str element)
{
    struct str found = {NULL, 0};
    while (element.len > 0) {
        const char *semicolon = memchr(element.data, ';', element.len);
        size_t len = semicolon == NULL ? element.len : (size_t)(semicolon - element.data);
        struct str pair = str_trim((struct str){element.data, len});
        len += semicolon != NULL;
        element = (struct str){element.data + len, element.len - len};
        if (pair.len <= 4 || !str_eq_nocase((struct str){pair.data, 4}, STR("for="))) {
            continue;
        }
        if (found.len > 0) {
            return (struct str){NULL, 0};
        }
        found = (struct str){pair.data + 4, pair.len - 4};
    }
    bool is_quoted = found.len >= 2 && found.data[0] == '"' && found.data[found.len - 1] == '"';
    return is_quoted ? (struct str){found.data + 1, found.len - 2} : found;
}

bool http_forwarded_client(const struct http_proxies *proxies, const struct http_head *head,
                           const struct sockaddr_storage *peer, char ret[HTTP_ADDRESS_BYTES])
{
    struct http_network client = address_of(peer), hop = {.bits = 128};
    struct hops hops = {.count = 0};
    bool is_said = false;
    if (!is_trusted(proxies, &client)) {
        return false;
    }
    bool is_list = proxies->header == HTTP_X_FORWARDED_FOR;
    hops_read(head, is_list ? "x-forwarded-for" : "forwarded", !is_list, &hops);
    size_t least = hops.count > HTTP_FORWARDED_HOPS_MAX ? hops.count - HTTP_FORWARDED_HOPS_MAX : 0;
    for (size_t i = hops.count; i > least && is_trusted(proxies, &client); i--) {
        struct str element = hops.at[(i - 1) % HTTP_FORWARDED_HOPS_MAX];
        if (!node_read(is_list ? element : for_of(element), hop.address)) {
            break;
        }
        client = hop;
        is_said = true;
    }
    if (is_said) {
        address_write(&client, ret);
    }
    return is_said;
}
