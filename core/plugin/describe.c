/* What `sandgate describe` prints: a file's plugins, their options as one writes them, and what they are for. The text is
 * stable, since the pages of the documentation are made from it. */
#include "base/buf.h"
#include "base/check.h"
#include "plugin/load.h"

static void put_indent(struct buf *out, size_t depth)
{
    (void)buf_printf(out, "%*s", (int)(2 + 6 * depth), ""); /* overflow shows in the buffer */
}

static void put_type(struct buf *out, const struct sg_option *option)
{
    static const char *const words[] = {
        [SG_STRING] = "text",
        [SG_BOOL] = "true or false",
        [SG_INT] = "whole number",
        [SG_DURATION] = "duration",
        [SG_SIZE] = "size",
        [SG_CHOICE] = "one of",
        [SG_STRINGS] = "list of texts",
        [SG_MAP] = "map of names to texts",
        [SG_LIST] = "list of maps",
    };
    CHECK(option->type < COUNT_OF(words) && words[option->type] != NULL);
    (void)buf_puts(out, words[option->type]); /* overflow shows in the buffer */
    if (option->type != SG_CHOICE) {
        return;
    }
    for (const char *at = option->choices; *at != '\0';) {
        size_t len = strcspn(at, "|");
        (void)buf_printf(out, "%s %.*s", at == option->choices ? "" : ",", (int)len, at);
        at += len + (at[len] == '|');
    }
}

static void put_bounds(struct buf *out, const struct sg_option *option)
{
    if (option->min != NULL && option->max != NULL) {
        (void)buf_printf(out, "; %s to %s", option->min, option->max);
    } else if (option->min != NULL) {
        (void)buf_printf(out, "; at least %s", option->min);
    } else if (option->max != NULL) {
        (void)buf_printf(out, "; at most %s", option->max);
    }
}

static void put_default(struct buf *out, const struct sg_option *option)
{
    if (option->def == NULL) {
        return;
    }
    const char *shown = (option->flags & SG_SECRET) != 0 ? "***"
                        : option->def[0] == '\0'         ? "\"\""
                                                         : option->def;
    (void)buf_printf(out, "; default %s", shown);
}

static void put_options(struct buf *out, const struct sg_option *options, size_t depth)
{
    for (const struct sg_option *option = options; option != NULL && option->name != NULL;
         option++) {
        put_indent(out, depth);
        (void)buf_printf(out, "%s: ", option->name);
        put_type(out, option);
        put_bounds(out, option);
        put_default(out, option);
        (void)buf_puts(out, (option->flags & SG_REQUIRED) != 0 ? "; required" : "");
        (void)buf_puts(out, (option->flags & SG_SECRET) != 0 ? "; secret" : "");
        (void)buf_puts(out, (option->flags & SG_DEPRECATED) != 0 ? "; deprecated" : "");
        (void)buf_putc(out, '\n');
        put_indent(out, depth);
        (void)buf_printf(out, "    %s\n", option->help);
        put_options(out, option->fields, depth + 1);
    }
}

void options_describe(const struct sg_option *options, struct buf *out)
{
    put_options(out, options, 0);
}

static void put_tools(struct buf *out, const struct sg_interceptor_ops *ops)
{
    if (ops == NULL || ops->tools == NULL) {
        return;
    }
    for (const struct sg_tool *tool = ops->tools; tool->name != NULL; tool++) {
        (void)buf_printf(out, "Offers the function %s", tool->name);
        if (tool->hosted != NULL) {
            (void)buf_printf(out, " where %s is asked for", tool->hosted);
        }
        (void)buf_puts(out, ".\n");
    }
}

static void put_plugin(struct buf *out, const struct plugin_file *file,
                       const struct sg_plugin *plugin)
{
    (void)buf_printf(out, "%s %s (%s)\n%s\n", plugin->name, file->version,
                     plugin_kind_names[plugin_kind_of(plugin)], plugin->help);
    put_tools(out, plugin->interceptor);
    (void)buf_printf(out, "\nconfigured by 'plugin: %s'", file->name);
    if (plugin->options == NULL || plugin->options[0].name == NULL) {
        (void)buf_puts(out, "; no options\n");
        return;
    }
    (void)buf_puts(out, "; options:\n");
    put_options(out, plugin->options, 0);
}

void plugin_describe(const struct plugin_file *file, struct buf *out)
{
    for (const struct sg_plugin *const *at = file->plugins; *at != NULL; at++) {
        if (at != (const struct sg_plugin *const *)file->plugins) {
            (void)buf_putc(out, '\n');
        }
        put_plugin(out, file, *at);
    }
}
