/* A whole sandbox provider. A container of "echo" keeps the code that it was given last and prints it at the next run. It
 * runs nothing; it shows what a provider must do. docs/writing-plugins.md walks through it. */
#include <sandgate/plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config { /* filled by the core from the configuration, by the table below */
    const char *greeting;
    int64_t containers_max;
};

static const struct sg_option options[] = {
    {"greeting", SG_STRING, 0, SG_FIELD(struct config, greeting),
     .def = "last time: ", .help = "What stands in front of the code that is printed."},
    {"containers_max", SG_INT, 0, SG_FIELD(struct config, containers_max), .def = "100", .min = "1",
     .max = "10000", .help = "Most containers that may exist at a time."},
    {0},
};

struct container {
    struct container *next;
    char handle[32];
    char *code; /* NULL: nothing was run yet */
    size_t code_len;
};

/* One instance. Calls come from several threads: what is shared has a lock, which is never held while waiting. */
struct echo {
    const struct config *config;
    pthread_mutex_t lock;
    struct container *containers;
    int64_t count, made;
};

static int start(const void *config, struct sg_call *call, void **ret_self, struct sg_error *err)
{
    (void)call;
    struct echo *echo = calloc(1, sizeof *echo);
    if (echo == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "out of memory");
    }
    echo->config = config; /* lives until close() */
    pthread_mutex_init(&echo->lock, NULL);
    *ret_self = echo;
    return 0;
}

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    (void)spec;
    struct echo *echo = self;
    struct container *new = NULL;
    pthread_mutex_lock(&echo->lock);
    if (echo->count < echo->config->containers_max && (new = calloc(1, sizeof *new)) != NULL) {
        snprintf(new->handle, sizeof new->handle, "echo-%lld", (long long)++echo->made);
        new->next = echo->containers;
        echo->containers = new;
        echo->count++;
    }
    pthread_mutex_unlock(&echo->lock);
    if (new == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no room for another container; raise containers_max");
    }
    /* Nobody else knows the handle before this; from then on the container is the core's to destroy. */
    return sg->emit(call, SG_OUT_HANDLE, new->handle, strlen(new->handle), err);
}

/* Where the pointer to the container is (it points to NULL if there is none). Under the lock. */
static struct container **container_find(struct echo *echo, const char *handle)
{
    struct container **at = &echo->containers;
    while (*at != NULL && strcmp((*at)->handle, handle) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static int run_code(void *self, struct sg_call *call, const char *handle, const struct sg_run *run,
                    struct sg_error *err)
{
    struct echo *echo = self;
    char *code = malloc(run->code_len + 1), *last = code;
    size_t last_len = 0;
    pthread_mutex_lock(&echo->lock);
    struct container *container = *container_find(echo, handle);
    if (container != NULL && code != NULL) {
        memcpy(code, run->code, run->code_len);
        last = container->code;
        last_len = container->code_len;
        container->code = code;
        container->code_len = run->code_len;
    }
    pthread_mutex_unlock(&echo->lock);
    int result = 0;
    if (container == NULL || code == NULL) {
        result = container == NULL ? sg->fail(err, SG_E_GONE_BEFORE, "the container is gone")
                                   : sg->fail(err, SG_E_INTERNAL, "out of memory for the code");
    } else if (last != NULL) { /* hand a failure of emit() back as it is */
        const char *greeting = echo->config->greeting;
        result = sg->emit(call, SG_OUT_LOG_OUT, greeting, strlen(greeting), err);
        result = result != 0 ? result : sg->emit(call, SG_OUT_LOG_OUT, last, last_len, err);
    }
    free(last); /* what the container had, or the new text that found no container */
    return result;
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)call, (void)err;
    struct echo *echo = self;
    pthread_mutex_lock(&echo->lock);
    struct container **at = container_find(echo, handle), *container = *at;
    if (container != NULL) { /* one that is gone already is a success */
        *at = container->next;
        echo->count--;
        free(container->code);
        free(container);
    }
    pthread_mutex_unlock(&echo->lock);
    return 0;
}

static void stop(void *self, struct sg_call *call)
{
    struct echo *echo = self;
    while (echo->containers != NULL) {
        destroy(self, call, echo->containers->handle, NULL);
    }
    pthread_mutex_destroy(&echo->lock);
    free(echo);
}

static const struct sg_sandbox_ops ops = {.create = create, .run = run_code, .destroy = destroy};

static const struct sg_plugin echo = {
    .name = "echo",
    .help = "Prints the code of the run before.",
    .options = options,
    .config_size = sizeof(struct config),
    .open = start,
    .close = stop,
    .sandbox = &ops,
    .flags = SG_ON_LOOP, /* it waits only inside sg->… */
};

SG_PLUGIN_SET("1.0", &echo);
