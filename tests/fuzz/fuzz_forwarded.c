/* Fuzzes the readers of X-Forwarded-For and Forwarded, and of networks. The first line is a network that is trusted, the rest a
 * field's value. Whatever it says, the client is an address, and none that is trusted stands before the last one that is not. */
#include "base/check.h"
#include "http/forwarded.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_by(enum http_forwarded_by header, const struct http_network *network,
                    struct str value)
{
    struct http_proxies proxies = {.networks = network, .count = 1, .header = header};
    struct sockaddr_storage peer = {0};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    memcpy(&six.sin6_addr, network->address, sizeof six.sin6_addr);
    memcpy(&peer, &six, sizeof six);
    struct http_head head = {.count = 1};
    head.fields[0] = (struct http_field){
        header == HTTP_FORWARDED ? STR("Forwarded") : STR("X-Forwarded-For"), value};
    char client[HTTP_ADDRESS_BYTES] = "";
    if (http_forwarded_client(&proxies, &head, &peer, client)) {
        CHECK(client[0] != '\0');
        CHECK(strspn(client, "0123456789abcdef.:[]") == strlen(client));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *end = size == 0 ? NULL : memchr(data, '\n', size);
    char text[64] = "10.0.0.0/8";
    struct http_network network;
    if (end == NULL) {
        return 0;
    }
    size_t len = (size_t)(end - (const char *)data);
    if (len < sizeof text) {
        memcpy(text, data, len);
        text[len] = '\0';
    }
    if (http_network_read(text, &network) == NULL && !network.is_unix) {
        struct str value = {end + 1, size - len - 1};
        read_by(HTTP_X_FORWARDED_FOR, &network, value);
        read_by(HTTP_FORWARDED, &network, value);
    }
    return 0;
}
