/* Filling a plugin's options from its own table, for tests: values as in YAML, no positions, no messages. */
#include "fake_host.h"

#include <stdarg.h>

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", what, name);
    exit(2);
}

static int64_t with_unit(const char *value, const char *const *units, const int64_t *factors)
{
    char *end;
    int64_t number = strtoll(value, &end, 10);
    for (size_t i = 0; units[i] != NULL; i++) {
        if (end != value && strcmp(end, units[i]) == 0) {
            return number * factors[i];
        }
    }
    die("not a value with its unit", value);
    return 0;
}

static int64_t duration_of(const char *value)
{
    static const char *const units[] = {"ms", "s", "m", "h", NULL};
    static const int64_t factors[] = {1, 1000, 60000, 3600000};
    return with_unit(value, units, factors);
}

static uint64_t size_of(const char *value)
{
    static const char *const units[] = {"B", "KiB", "MiB", NULL};
    static const int64_t factors[] = {1, 1024, 1048576};
    return (uint64_t)with_unit(value, units, factors);
}

/* One block: the pointers, then the texts. */
static const char *const *strings_of(const char *value)
{
    size_t count = value[0] == '\0' ? 0 : 1;
    for (const char *p = value; *p != '\0'; p++) {
        count += *p == '\n';
    }
    size_t len = strlen(value) + 1;
    char **list = calloc(1, (count + 1) * sizeof *list + len);
    char *text = memcpy((char *)(list + count + 1), value, len);
    for (size_t i = 0; i < count; i++) {
        list[i] = text;
        text += strcspn(text, "\n");
        if (*text == '\n') {
            *text++ = '\0';
        }
    }
    return (const char *const *)list;
}

static void set_value(const struct sg_option *option, void *config, const char *value)
{
    void *field = (char *)config + option->offset;
    if (option->type == SG_STRING || option->type == SG_CHOICE) {
        *(const char **)field = value;
    } else if (option->type == SG_BOOL) {
        *(bool *)field = strcmp(value, "true") == 0;
    } else if (option->type == SG_INT) {
        *(int64_t *)field = strtoll(value, NULL, 10);
    } else if (option->type == SG_DURATION) {
        *(int64_t *)field = duration_of(value);
    } else if (option->type == SG_SIZE) {
        *(uint64_t *)field = size_of(value);
    } else if (option->type == SG_STRINGS) {
        free(*(void **)field);
        *(const char *const **)field = strings_of(value);
    } else {
        die("no value of this type", option->name);
    }
}

static void set_defaults(const struct sg_option *options, void *config)
{
    for (const struct sg_option *o = options; o->name != NULL; o++) {
        if (o->def != NULL) {
            set_value(o, config, o->def);
        } else if (o->type == SG_STRINGS) {
            set_value(o, config, "");
        }
    }
}

static const struct sg_option *find(const struct sg_option *options, const char *name)
{
    for (; options->name != NULL; options++) {
        if (strcmp(options->name, name) == 0) {
            return options;
        }
    }
    die("no such option", name);
    return NULL;
}

void *config_new(const struct sg_plugin *plugin)
{
    void *config = calloc(1, plugin->config_size);
    set_defaults(plugin->options, config);
    return config;
}

static void free_strings(const struct sg_option *options, void *config)
{
    for (const struct sg_option *o = options; o->name != NULL; o++) {
        void *field = (char *)config + o->offset;
        if (o->type == SG_STRINGS) {
            free(*(void **)field);
        } else if (o->type == SG_LIST) {
            struct sg_list *list = field;
            char *items = (char *)(uintptr_t)list->items;
            for (size_t i = 0; i < list->count; i++) {
                free_strings(o->fields, items + i * o->fields_size);
            }
            free(items);
        }
    }
}

void config_free(const struct sg_plugin *plugin, void *config)
{
    free_strings(plugin->options, config);
    free(config);
}

void config_set(const struct sg_plugin *plugin, void *config, const char *name, const char *value)
{
    set_value(find(plugin->options, name), config, value);
}

void config_add(const struct sg_plugin *plugin, void *config, const char *list_name, ...)
{
    const struct sg_option *option = find(plugin->options, list_name);
    struct sg_list *list = (struct sg_list *)(void *)((char *)config + option->offset);
    char *items = realloc((void *)(uintptr_t)list->items, (list->count + 1) * option->fields_size);
    list->items = items;
    char *item = items + list->count++ * option->fields_size;
    memset(item, 0, option->fields_size);
    set_defaults(option->fields, item);
    va_list arguments;
    va_start(arguments, list_name);
    for (const char *name; (name = va_arg(arguments, const char *)) != NULL;) {
        set_value(find(option->fields, name), item, va_arg(arguments, const char *));
    }
    va_end(arguments);
}
