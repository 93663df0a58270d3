/* What a plugin says about this machine: see the header. */
#include "gateway/describe_here.h"

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/conf.h"
#include "plugin/call.h"

#include <signal.h>

struct look {
    struct loop *loop;
    struct instance instance;
    struct arena *arena;
    struct buf *out;
};

/* The note of what it emitted; the whole if it has none. */
static struct str note_of(const char *about, struct arena *arena)
{
    struct json_text json;
    struct sg_error err = {0};
    CHECK(json_scan(str_of(about), arena, &json, &err) == 0); /* it was, when it was emitted */
    struct str note = json_find_text(json.members, json.count, "note", arena);
    return note.len > 0 ? note : json.raw;
}

static void look_run(void *arg)
{
    struct look *look = arg;
    struct sg_error err = {0};
    (void)buf_puts(look->out, "\non this machine, started as this command was: ");
    if (instance_open(&look->instance, &err) != 0) {
        (void)buf_printf(look->out, "it cannot be used: %s\n", err.message);
    } else {
        struct str note = look->instance.about == NULL ? STR("nothing to say")
                                                       : note_of(look->instance.about, look->arena);
        (void)buf_printf(look->out, "%.*s\n", (int)note.len, note.data);
        instance_close(&look->instance); /* overflow shows in the buffer */
    }
    loop_stop(look->loop);
}

static void look_at(const struct plugin_file *file, const struct sg_plugin *plugin, struct buf *out)
{
    struct look look = {.arena = arena_new(0), .out = out};
    struct sg_error err = {0};
    struct conf_problems problems = {0};
    void *config = arena_get(look.arena, plugin->config_size + 1);
    size_t wrong =
        conf_fill(plugin->options, NULL, NULL, NULL, plugin->name, config, look.arena, &problems);
    CHECK(wrong == 0); /* none is required, and defaults were checked (load_check.c) */
    look.instance = (struct instance){.name = plugin->name,
                                      .plugin = plugin,
                                      .sizes = file->set->sizes,
                                      .sizes_count = file->set->sizes_count,
                                      .config = config,
                                      .libexec_dir = file->libexec_dir};
    loader_bind_host(file, host_table());
    if (loop_new(0, NULL, &look.loop, &err) == 0 &&
        fiber_start(look.loop, "describe", look_run, &look, NULL, &err) == 0) {
        loop_run(look.loop);
    } else {
        (void)buf_printf(out, "\n%s\n", err.message);
    }
    loop_free(look.loop);
    conf_problems_clear(&problems);
    arena_free(look.arena);
}

void describe_here(const struct plugin_file *file, struct buf *out)
{
    log_set_level(SG_WARN); /* what it logs when it begins is told below */
    (void)signal(SIGPIPE, SIG_IGN);
    for (const struct sg_plugin **at = file->plugins; *at != NULL; at++) {
        if (((*at)->flags & SG_TELLS_OF_HOST) != 0) {
            look_at(file, *at, out);
        }
    }
}
