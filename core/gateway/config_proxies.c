/* `server.trusted_proxies` and `server.trusted_header`. */
#include "gateway/config.h"

#include "base/check.h"

#include <string.h>

void config_check_proxies(struct config *config, const struct conf_node *section,
                          struct conf_problems *problems)
{
    struct server_config *server = &config->server;
    const char *const *texts = server->trusted_proxies;
    size_t count = 0;
    while (texts[count] != NULL) {
        count++;
    }
    struct http_network *networks = arena_get(config->arena, (count + 1) * sizeof *networks);
    for (size_t i = 0; i < count; i++) {
        const char *problem = http_network_read(texts[i], &networks[i]);
        if (problem != NULL) {
            conf_problem(problems, conf_at(section, "trusted_proxies"),
                         "server: an entry of 'trusted_proxies' %s: 10.0.0.0/8, 192.0.2.7, "
                         "2001:db8::/32 or unix, not '%.80s'",
                         problem, texts[i]);
        }
    }
    server->proxies = (struct http_proxies){
        .networks = networks,
        .count = count,
        .header = strcmp(server->trusted_header, "forwarded") == 0 ? HTTP_FORWARDED
                                                                   : HTTP_X_FORWARDED_FOR};
}
