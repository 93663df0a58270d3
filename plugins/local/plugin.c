/* The sandbox provider `local`: options, opening, closing. */
#include "local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    {"preload", SG_STRINGS, 0, SG_FIELD(struct local_config, preload), "", NULL, NULL, NULL,
     "Python modules that are loaded once for all containers, as 'numpy'", NULL, 0},
    {"uid_base", SG_INT, 0, SG_FIELD(struct local_config, uid_base), "1900000000", "60000",
     "4294900000", NULL,
     "as root: the first of `boxes` + 1 host uids for containers, used by nothing else on the "
     "machine",
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

static int config_check(const struct local_config *config, struct sg_error *err)
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
    return preload_check(config->preload, err);
}

static void local_free(struct local *local, struct sg_call *call)
{
    broker_stop(local, call);
    pthread_mutex_destroy(&local->lock);
    local->magic = 0;
    free(local);
}

static int local_open(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    int result = config_check(config, err);
    if (result != 0) {
        return result;
    }
    struct local *local = calloc(1, sizeof *local);
    if (local == NULL) {
        return sg->fail(err, SG_E_CONFIG, "no memory");
    }
    *local = (struct local){.magic = LOCAL_MAGIC,
                            .config = config,
                            .unavailable = SG_E_CONFIG,
                            .broker_fd = -1,
                            .broker = {.pidfd = -1}};
    pthread_mutex_init(&local->lock, NULL);
    result = local_selftest(local, call, err);
    if (result != 0) {
        local_free(local, call);
        return result;
    }
    local->unavailable = SG_E_UNAVAILABLE;
    sg->log(call, SG_INFO,
            geteuid() == 0 ? "the test container passed; each has a host uid of its own"
                           : "the test container passed; all have the gateway's own host uid");
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
    .help = "runs Python and shell commands in containers of this machine: no account, no network",
    .options = local_options,
    .config_size = sizeof(struct local_config),
    .open = local_open,
    .close = local_close,
    .sandbox = &local_ops,
    .flags = SG_ON_LOOP,
};

SG_PLUGIN_SET("0.1.0", &local_plugin);
