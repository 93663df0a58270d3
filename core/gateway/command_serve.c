/* sandgate serve, sandgate check: what takes a configuration file as a whole. */
#include "gateway/command.h"

#include "gateway/gateway.h"

#include <stdio.h>

struct config *command_read_config(const struct command_line *line)
{
    struct conf_problems problems = {.file = line->config};
    struct config *config = config_read(line->config, &problems);
    if (config == NULL) {
        fputs(problems.text.data, stderr);
        fprintf(stderr, "sandgate: %zu problem%s in %s\n", problems.count,
                problems.count == 1 ? "" : "s", line->config);
    }
    conf_problems_clear(&problems);
    if (config != NULL && line->listen != NULL) {
        config->server.listen = line->listen;
    }
    return config;
}

int command_serve(const struct command_line *line)
{
    struct config *config = command_read_config(line);
    if (config == NULL) {
        return 1;
    }
    int code = gateway_serve(config);
    config_free(config);
    return code;
}

int command_check(const struct command_line *line)
{
    struct config *config = command_read_config(line);
    if (config == NULL) {
        return 1;
    }
    struct http_server_options listen = {0};
    struct sg_error err = {0};
    int rc = gateway_check_listen(config, &listen, &err);
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", line->config, err.message);
    } else {
        printf("%s: good: %zu upstreams, %zu sandboxes, %zu searches, %zu interceptors\n",
               line->config, config->upstreams_count, config->sandboxes_count,
               config->searches_count, config->interceptors_count);
    }
    config_free(config);
    return rc != 0;
}
