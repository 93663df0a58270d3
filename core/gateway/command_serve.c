/* sandgate serve, sandgate check: what takes a configuration file as a whole. */
#include "gateway/command.h"

#include "gateway/gateway.h"
#include "gateway/setup.h"

#include <signal.h>
#include <stdio.h>

struct config *command_read_config(const struct command_line *line, bool serves)
{
    struct conf_problems problems = {.file = line->config};
    struct config *config = config_read(line->config, line->listen, serves, &problems);
    if (config == NULL) {
        fputs(problems.text.data, stderr);
        fprintf(stderr, "sandgate: %zu problem%s in %s\n", problems.count,
                problems.count == 1 ? "" : "s", line->config);
    }
    conf_problems_clear(&problems);
    return config;
}

/* One that comes while the gateway starts waits until it serves. */
static void hold_reloads(void)
{
    sigset_t hangup;
    (void)sigemptyset(&hangup); /* these cannot fail */
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}

int command_serve(const struct command_line *line)
{
    hold_reloads();
    struct config *config = command_read_config(line, true);
    if (config == NULL) {
        return 1;
    }
    int code = gateway_serve(config);
    config_free(config);
    return code;
}

static void put_count(size_t count, const char *word, const char *plural, const char *behind)
{
    printf("%zu %s%s%s", count, word, count == 1 ? "" : plural, behind);
}

/* Not wrong, as one owner may have several servers: the operator should know it. */
static void say_warnings(const struct config *config)
{
    struct conf_problems warnings = {.file = config->file};
    setup_models_warn(config->settings, &warnings);
    if (warnings.count > 0) {
        fputs(warnings.text.data, stderr);
    }
    conf_problems_clear(&warnings);
}

int command_check(const struct command_line *line)
{
    struct config *config = command_read_config(line, true);
    if (config == NULL) {
        return 1;
    }
    if (config->settings->tls != NULL) {
        config_tls_say(config->settings->tls);
    }
    say_warnings(config);
    printf("%s: good: ", line->config);
    put_count(config->settings->upstreams_count, "upstream", "s", ", ");
    put_count(config->sandboxes_count, "sandbox", "es", ", ");
    put_count(config->searches_count, "search", "es", ", ");
    put_count(config->interceptors_count, "interceptor", "s", "\n");
    config_free(config);
    return 0;
}
