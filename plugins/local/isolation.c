/* What the boxes of this host rest on, by what the broker found: the tier, whether it is enough, and how it is told. */
#include "local.h"

#include <stdio.h>
#include <string.h>

struct isolation isolation_of(const struct wire_hello *hello)
{
    struct isolation isolation = {.controls = hello->controls,
                                  .groups_version = (int)hello->groups_version};
    bool all = (hello->controls & GROUP_LIMITS) == GROUP_LIMITS;
    isolation.tier = !all ? 2 : hello->is_root != 0 ? 0 : 1;
    snprintf(isolation.missing, sizeof isolation.missing, "%.*s",
             (int)strnlen(hello->missing, sizeof hello->missing), hello->missing);
    return isolation;
}

int isolation_check(const struct local *local, const struct isolation *isolation,
                    struct sg_error *err)
{
    if (strcmp(local->config->isolation, "strict") != 0 || isolation->tier < 2) {
        return 0;
    }
    return sg->fail(err, local->unavailable,
                    "'isolation: strict' needs control groups of memory, pids and cpu, and there "
                    "are not all of them: %s. Run the gateway as root, or as a service with "
                    "Delegate=yes (systemd), or set 'isolation: best-effort'",
                    isolation->missing);
}

/* Text of our own, but for paths. */
static void append_text(char *json, size_t size, const char *text)
{
    size_t at = strlen(json);
    for (; *text != '\0' && at + 3 < size; text++) {
        if (*text == '"' || *text == '\\') {
            json[at++] = '\\';
        }
        json[at++] = (unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '?' : *text;
    }
    json[at] = '\0';
}

static const char *rests_on(const struct isolation *isolation, unsigned control, const char *other)
{
    return (isolation->controls & control) != 0 ? "group" : other;
}

void isolation_write(const struct local_config *config, const struct isolation *isolation,
                     char *json, size_t size)
{
    bool limits_cpu = strcmp(config->cpu, "0") != 0;
    snprintf(json, size,
             "{\"state\":\"open\",\"tier\":%d,\"control_groups\":%d,\"memory\":\"%s\","
             "\"processes\":\"%s\",\"cpu\":\"%s\",\"idle\":\"%s\",\"note\":\"",
             isolation->tier, isolation->groups_version,
             rests_on(isolation, GROUP_MEMORY, "polled"), rests_on(isolation, GROUP_PIDS, "rlimit"),
             limits_cpu ? rests_on(isolation, GROUP_CPU, "affinity") : "none",
             (isolation->controls & GROUP_FREEZE) != 0 ? "frozen" : "running");
    char note[2 * WIRE_MISSING_BYTES];
    snprintf(note, sizeof note, "isolation tier %d: %s%s%s", isolation->tier,
             isolation->tier == 2   ? "not all limits are by control groups: "
             : isolation->tier == 1 ? "an ordinary user with control groups of its own"
                                    : "root with control groups",
             isolation->missing, isolation->tier == 2 ? " (see README.md of local)" : "");
    append_text(json, size - 3, note);
    size_t at = strlen(json);
    snprintf(json + at, size - at, "\"}");
}
