/* What a plugin must have: a name, one kind, the functions of that kind, tools that can be offered. */
#include "base/check.h"
#include "base/json.h"
#include "plugin/load_internal.h"

#define PLUGIN_FLAGS (SG_ON_LOOP | SG_DURABLE | SG_TELLS_OF_HOST)
#define TOOL_FLAGS (SG_TOOL_PARALLEL)

static bool is_empty(const char *text)
{
    return text == NULL || text[0] == '\0';
}

static int kind_check(const struct examination *e, const struct sg_plugin *plugin)
{
    int kinds = (plugin->sandbox != NULL) + (plugin->interceptor != NULL) +
                (plugin->search != NULL) + (plugin->upstream != NULL);
    if (kinds != 1) {
        return examination_fail(e,
                                "sets %d of .sandbox, .interceptor, .search and .upstream: a "
                                "plugin sets exactly one; a set may hold several plugins",
                                kinds);
    }
    return 0;
}

static int sandbox_check(const struct examination *e, const struct sg_sandbox_ops *ops)
{
    const char *missing = ops->create == NULL    ? "create"
                          : ops->run == NULL     ? "run"
                          : ops->destroy == NULL ? "destroy"
                                                 : NULL;
    if (missing != NULL) {
        return examination_fail(e, "has no %s(): a sandbox needs create(), run() and destroy()",
                                missing);
    }
    return 0;
}

/* ---- tools ---- */

static bool is_tool_name(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    return len > 0 && len <= NAME_BYTES_MAX && name[len] == '\0';
}

/* The schema goes into requests as it is: it must be JSON, and an object that describes an object. */
static int schema_check(const struct examination *e, const struct sg_tool *tool)
{
    struct json_text text;
    struct sg_error err = {0};
    if (json_scan(str_of(tool->parameters_json), e->arena, &text, &err) != 0) {
        return examination_fail_in(e, "tool '%s': parameters_json: %s", tool->name, err.message);
    }
    const struct json_member *type =
        text.root.type == JSON_OBJECT ? json_find(text.members, text.count, "type") : NULL;
    if (type == NULL || !str_is(type->value.raw, "\"object\"")) {
        return examination_fail_in(e,
                                   "tool '%s': parameters_json must be a JSON Schema of an object: "
                                   "{\"type\": \"object\", \"properties\": {…}}",
                                   tool->name);
    }
    return 0;
}

static int tool_check(const struct examination *e, const struct sg_tool *tools, size_t index)
{
    const struct sg_tool *tool = &tools[index];
    if (!is_tool_name(tool->name)) {
        return examination_fail_in(e,
                                   "tool '%s': a function's name has 1 to %d letters, digits, '_' "
                                   "and '-'",
                                   tool->name, NAME_BYTES_MAX);
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(tools[i].name, tool->name) == 0) {
            return examination_fail(e, "has two tools '%s'", tool->name);
        }
    }
    const char *missing = tool->call == NULL                ? "call"
                          : is_empty(tool->description)     ? "description"
                          : is_empty(tool->parameters_json) ? "parameters_json"
                                                            : NULL;
    if (missing != NULL) {
        return examination_fail_in(e,
                                   "tool '%s' has no %s: a tool needs name, description, "
                                   "parameters_json and call",
                                   tool->name, missing);
    }
    if (tool->hosted != NULL && !is_plain_word(tool->hosted)) {
        return examination_fail_in(e,
                                   "tool '%s': hosted is '%s', expected a plain word such as "
                                   "code_interpreter, or NULL",
                                   tool->name, tool->hosted);
    }
    if ((tool->flags & ~TOOL_FLAGS) != 0) {
        return examination_fail_in(e, "tool '%s' has unknown flags 0x%x: use SG_TOOL_… only",
                                   tool->name, tool->flags & ~TOOL_FLAGS);
    }
    return schema_check(e, tool);
}

static int interceptor_check(const struct examination *e, const struct sg_interceptor_ops *ops)
{
    if ((ops->tools == NULL || ops->tools[0].name == NULL) && ops->request == NULL) {
        return examination_fail(e, "has neither tools nor request(): an interceptor needs one");
    }
    if (ops->done != NULL && ops->request == NULL) {
        return examination_fail(e, "has done() without request(), which it would be called for");
    }
    for (size_t i = 0; ops->tools != NULL && ops->tools[i].name != NULL; i++) {
        int code = tool_check(e, ops->tools, i);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static int functions_check(const struct examination *e, const struct sg_plugin *plugin)
{
    switch (plugin_kind_of(plugin)) {
    case PLUGIN_SANDBOX:
        return sandbox_check(e, plugin->sandbox);
    case PLUGIN_INTERCEPTOR:
        return interceptor_check(e, plugin->interceptor);
    case PLUGIN_SEARCH:
        return plugin->search->search != NULL
                   ? 0
                   : examination_fail(e, "has no search(): a search provider needs it");
    case PLUGIN_UPSTREAM:
        return plugin->upstream->turn != NULL
                   ? 0
                   : examination_fail(e, "has no turn(): an upstream needs it");
    default:
        CHECK(false);
        return SG_E_INTERNAL;
    }
}

static int flags_check(const struct examination *e, const struct sg_plugin *plugin)
{
    if ((plugin->flags & ~PLUGIN_FLAGS) != 0) {
        return examination_fail(e,
                                "has unknown flags 0x%x: use SG_ON_LOOP, SG_DURABLE and "
                                "SG_TELLS_OF_HOST only",
                                plugin->flags & ~PLUGIN_FLAGS);
    }
    if ((plugin->flags & SG_DURABLE) != 0 && plugin->sandbox == NULL) {
        return examination_fail(e, "sets SG_DURABLE, which is for sandboxes only");
    }
    if ((plugin->flags & SG_DURABLE) == 0 && plugin->sandbox != NULL &&
        plugin->sandbox->account != NULL) {
        return examination_fail(e, "has account(), which means something with SG_DURABLE only");
    }
    for (const struct sg_option *option = plugin->options;
         (plugin->flags & SG_TELLS_OF_HOST) != 0 && option != NULL && option->name != NULL;
         option++) {
        if ((option->flags & SG_REQUIRED) != 0) {
            return examination_fail(e,
                                    "sets SG_TELLS_OF_HOST, but option '%s' is required: it must "
                                    "open with its defaults",
                                    option->name);
        }
    }
    return 0;
}

static int plugin_check(struct examination *e, const struct sg_plugin *plugin, size_t index)
{
    if (plugin->name == NULL || !is_plain_word(plugin->name)) {
        return examination_fail_in(e,
                                   "plugin %zu of its set is named '%s', expected 1 to %d of a-z, "
                                   "0-9, '_' and '-'",
                                   index + 1, plugin->name == NULL ? "" : plugin->name,
                                   NAME_BYTES_MAX);
    }
    e->plugin = plugin->name;
    int code = kind_check(e, plugin);
    if (code == 0 && is_empty(plugin->help)) {
        code = examination_fail(e, "has no help: say in one sentence what it does");
    }
    if (code == 0) {
        code = functions_check(e, plugin);
    }
    if (code == 0) {
        code = flags_check(e, plugin);
    }
    if (code == 0) {
        code = options_check(e, plugin);
    }
    e->plugin = NULL;
    return code;
}

int plugins_check(struct examination *e, const struct sg_plugin *const *plugins)
{
    const struct sg_plugin *seen[PLUGIN_KIND_COUNT] = {0};
    for (size_t i = 0; plugins[i] != NULL; i++) {
        int code = plugin_check(e, plugins[i], i);
        if (code != 0) {
            return code;
        }
        enum plugin_kind kind = plugin_kind_of(plugins[i]);
        if (seen[kind] != NULL) {
            return examination_fail(e,
                                    "has two plugins of kind %s, '%s' and '%s': a set holds at "
                                    "most one of a kind",
                                    plugin_kind_names[kind], seen[kind]->name, plugins[i]->name);
        }
        seen[kind] = plugins[i];
    }
    return 0;
}
