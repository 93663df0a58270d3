/* sandgate plugins, sandgate describe: what is installed, and what can be set. */
#include "gateway/command.h"
#include "gateway/describe_here.h"
#include "translate/translate.h"

#include <stdio.h>
#include <string.h>

static struct loader *loader_of(const struct command_line *line, struct arena *arena)
{
    const char **folders = arena_get(arena, 2 * sizeof *folders);
    size_t count = 0;
    if (line->plugin_path != NULL) {
        folders[count++] = line->plugin_path;
    }
    const char *installed = loader_installed_folder(arena);
    if (installed != NULL) {
        folders[count++] = installed;
    }
    return loader_new(folders, count);
}

int command_plugins(const struct command_line *line)
{
    struct arena *arena = arena_new(0);
    struct loader *loader = loader_of(line, arena);
    int code = 0;
    for (const char *const *name = loader_list(loader, arena); *name != NULL; name++) {
        const struct plugin_file *file;
        struct sg_error err = {0};
        if (loader_load(loader, *name, &file, &err) != 0) {
            fprintf(stderr, "sandgate: %s\n", err.message);
            code = 1;
            continue;
        }
        printf("%-18s %-8s", file->name, file->version);
        for (const struct sg_plugin **plugin = file->plugins; *plugin != NULL; plugin++) {
            printf(" %s", plugin_kind_names[plugin_kind_of(*plugin)]);
        }
        printf("\n");
    }
    loader_free(loader);
    arena_free(arena);
    return code;
}

/* A plugin's text. The name "core" stands for the core's own sections, and "translation" for what is carried between APIs,
 * whatever plugins there are. */
static int describe(const struct command_line *line, struct loader *loader, struct buf *out,
                    struct sg_error *err)
{
    const struct plugin_file *file;
    if (strcmp(line->argument, "core") == 0) {
        config_describe(out);
        return 0;
    }
    if (strcmp(line->argument, "translation") == 0) {
        translation_describe(out);
        return 0;
    }
    int rc = loader_load(loader, line->argument, &file, err);
    if (rc == 0) {
        plugin_describe(file, out);
        describe_here(file, out);
    }
    return rc;
}

int command_describe(const struct command_line *line)
{
    struct arena *arena = arena_new(0);
    struct loader *loader = loader_of(line, arena);
    BUF_CLEANUP struct buf text = {0};
    struct sg_error err = {0};
    int rc = describe(line, loader, &text, &err);
    if (rc == 0) {
        fputs(text.data, stdout);
    } else {
        fprintf(stderr, "sandgate: %s\n", err.message);
    }
    loader_free(loader);
    arena_free(arena);
    return rc != 0;
}
