/* The sandbox provider `local`: options, opening, closing. */
#include "local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPU_MILLIS_MIN 50 /* below that nothing starts in time */
#define CPU_MILLIS_MAX 1024000
#define WORKING_BYTES ((uint64_t)64 << 20) /* the least memory beside a full disk */

static const struct sg_option local_options[] = {
    {"python", SG_STRING, 0, SG_FIELD(struct local_config, python), "/usr/bin/python3", NULL, NULL,
     NULL, "the Python 3 interpreter, a path under /usr", NULL, 0},
    {"memory", SG_SIZE, 0, SG_FIELD(struct local_config, memory), "512MiB", "96MiB", "1TiB", NULL,
     "memory of one container: all its processes and its files", NULL, 0},
    {"disk", SG_SIZE, 0, SG_FIELD(struct local_config, disk), "256MiB", "1MiB", "512GiB", NULL,
     "files of one container, which lie in memory and count there too", NULL, 0},
    {"inodes", SG_INT, 0, SG_FIELD(struct local_config, inodes), "20000", "100", "10000000", NULL,
     "number of files and folders of one container", NULL, 0},
    {"processes", SG_INT, 0, SG_FIELD(struct local_config, processes), "64", "8", "4096", NULL,
     "processes and threads of one container", NULL, 0},
    {"cpu", SG_STRING, 0, SG_FIELD(struct local_config, cpu), "1", NULL, NULL, NULL,
     "processor time of one container, in processors: 0.5, 2; 0 is no limit", NULL, 0},
    {"files", SG_INT, 0, SG_FIELD(struct local_config, files), "256", "64", "65536", NULL,
     "open files of one process", NULL, 0},
    {"output", SG_SIZE, 0, SG_FIELD(struct local_config, output), "1MiB", "1KiB", "10MiB", NULL,
     "text of one run that is handed on; the rest is read and dropped", NULL, 0},
    {"results", SG_SIZE, 0, SG_FIELD(struct local_config, results), "8MiB", "64KiB", "16MiB", NULL,
     "shown values and figures of one run that are handed on", NULL, 0},
    {"boxes", SG_INT, 0, SG_FIELD(struct local_config, boxes), "1000", "1", "4096", NULL,
     "containers at one time", NULL, 0},
    {"pool", SG_INT, 0, SG_FIELD(struct local_config, pool), "2", "0", "64", NULL,
     "containers that are kept ready, so that one is there at once; they count as in use", NULL, 0},
    {"preload", SG_STRINGS, 0, SG_FIELD(struct local_config, preload), NULL, NULL, NULL, NULL,
     "Python modules that are loaded once for all containers: numpy, matplotlib.pyplot", NULL, 0},
    {"uid_base", SG_INT, 0, SG_FIELD(struct local_config, uid_base), "1900000000", "60000",
     "4294900000", NULL,
     "as root: the first of `boxes` + 1 host uids for containers, used by nothing else on the "
     "machine",
     NULL, 0},
    {"isolation", SG_CHOICE, 0, SG_FIELD(struct local_config, isolation), "best-effort", NULL, NULL,
     "best-effort|strict",
     "strict: do not start where control groups cannot limit memory, processes and processor time",
     NULL, 0},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0},
};

/* A dotted name, as import has it. */
static bool is_module(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
    size_t len = strlen(name);
    return len > 0 && len <= MODULE_NAME_MAX && strspn(name, letters) == len && name[0] != '.' &&
           name[len - 1] != '.' && strstr(name, "..") == NULL;
}

static int preload_check(const char *const *preload, struct sg_error *err)
{
    for (size_t i = 0; preload[i] != NULL; i++) {
        if (i == MODULES_MAX) {
            return sg->fail(err, SG_E_CONFIG, "'preload' may name at most %d modules", MODULES_MAX);
        }
        if (!is_module(preload[i])) {
            return sg->fail(
                err, SG_E_CONFIG,
                "'preload' must name Python modules, as 'matplotlib.pyplot', not '%.100s'",
                preload[i]);
        }
    }
    return 0;
}

/* "1", "0.5", "2.25" in thousandths. */
static bool cpu_read(const char *text, uint64_t *ret_millis)
{
    char *end = NULL;
    size_t whole = strspn(text, "0123456789");
    if (whole == 0 || whole > 4) {
        return false;
    }
    uint64_t millis = strtoull(text, &end, 10) * 1000;
    if (*end == '.') {
        size_t digits = strspn(end + 1, "0123456789");
        uint64_t unit = 100;
        if (digits == 0 || digits > 3 || end[1 + digits] != '\0') {
            return false;
        }
        for (size_t i = 1; i <= digits; i++, unit /= 10) {
            millis += (uint64_t)(end[i] - '0') * unit;
        }
        end += 1 + digits;
    }
    *ret_millis = millis;
    return *end == '\0' && (millis == 0 || (millis >= CPU_MILLIS_MIN && millis <= CPU_MILLIS_MAX));
}

static int config_check(const struct local_config *config, uint64_t *ret_cpu_millis,
                        struct sg_error *err)
{
    const char *python = config->python;
    if ((strncmp(python, "/usr/", 5) != 0 && strncmp(python, "/bin/", 5) != 0) ||
        strstr(python, "/../") != NULL || strlen(python) >= 256) {
        return sg->fail(err, SG_E_CONFIG,
                        "'python' must be a path under /usr, all that a container sees of the "
                        "machine, not '%.100s'",
                        python);
    }
    if (config->memory < config->disk || config->memory - config->disk < WORKING_BYTES) {
        return sg->fail(err, SG_E_CONFIG,
                        "'memory' must be at least 64MiB more than 'disk', which lies in it: %llu "
                        "and %llu bytes",
                        (unsigned long long)config->memory, (unsigned long long)config->disk);
    }
    if (!cpu_read(config->cpu, ret_cpu_millis)) {
        return sg->fail(err, SG_E_CONFIG,
                        "'cpu' must be a number of processors such as 0.5 or 2, from 0.05 to 1024, "
                        "or 0 for no limit, not '%.40s'",
                        config->cpu);
    }
    return preload_check(config->preload, err);
}

static void local_free(struct local *local, struct sg_call *call)
{
    broker_stop(local, call);
    pthread_mutex_destroy(&local->lock);
    local->magic = 0;
    free(local);
}

/* To the log, and to those who ask for the gateway's health. */
static int tell(const struct local *local, struct sg_call *call, struct sg_error *err)
{
    char json[1024];
    isolation_write(local->config, &local->isolation, json, sizeof json);
    sg->log(call, SG_INFO, "the test container passed; %s; isolation tier %d%s%s",
            geteuid() == 0 ? "each has a host uid of its own"
                           : "all have the gateway's own host uid",
            local->isolation.tier, local->isolation.missing[0] != '\0' ? ": " : "",
            local->isolation.missing);
    return sg->emit(call, SG_OUT_STATUS, json, strlen(json), err);
}

static int local_open(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    uint64_t cpu_millis = 0;
    int result = config_check(config, &cpu_millis, err);
    if (result != 0) {
        return result;
    }
    struct local *local = calloc(1, sizeof *local);
    if (local == NULL) {
        return sg->fail(err, SG_E_CONFIG, "no memory");
    }
    *local = (struct local){.magic = LOCAL_MAGIC,
                            .config = config,
                            .cpu_millis = cpu_millis,
                            .unavailable = SG_E_CONFIG,
                            .broker_fd = -1,
                            .broker = {.pidfd = -1}};
    pthread_mutex_init(&local->lock, NULL);
    result = local_selftest(local, call, err);
    result = result == 0 ? tell(local, call, err) : result;
    if (result != 0) {
        local_free(local, call);
        return result;
    }
    local->unavailable = SG_E_UNAVAILABLE;
    *ret_self = local;
    return 0;
}

static void end_all_boxes(struct local *local, struct sg_call *call)
{
    for (size_t i = 0; i < BOX_BUCKETS; i++) {
        while (local->buckets[i] != NULL) { /* nobody else is there any more */
            struct box *box = box_find(local, local->buckets[i]->handle);
            /* Killed in any case; one that is late ends alone. */
            (void)local_destroy(local, call, box, NULL);
            box_remove(local, box);
            box_unref(local, box);
        }
    }
}

static void local_close(void *self, struct sg_call *call)
{
    struct local *local = self;
    end_all_boxes(local, call);
    local_free(local, call);
}

static const struct sg_plugin local_plugin = {
    .name = "local",
    .help =
        "runs Python, shell commands and JavaScript in containers of this machine: no account, no "
        "network",
    .options = local_options,
    .config_size = sizeof(struct local_config),
    .open = local_open,
    .close = local_close,
    .sandbox = &local_ops,
    .flags = SG_ON_LOOP | SG_TELLS_OF_HOST,
};

SG_PLUGIN_SET("0.1.0", &local_plugin);
