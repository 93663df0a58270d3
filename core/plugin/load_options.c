/* A plugin's option table: checked so that conf_fill() can write by it without a second look, and so that every option
 * can be described. */
#include "base/check.h"
#include "conf/conf.h"
#include "plugin/load_internal.h"

#define OPTION_FLAGS (SG_REQUIRED | SG_SECRET | SG_DEPRECATED)

/* One table: the plugin's, or the fields of a list. */
struct table {
    const struct examination *e;
    const char *path; /* "rules." in front of names, or "" */
    const struct sg_option *options;
    size_t struct_size;
    const char *const *reserved; /* NULL: none */
    const char *section;         /* that reserves them */
};

/* "file: 'plugin': option 'rules.when' …". */
static int option_fail(const struct table *table, const struct sg_option *option,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

static int option_fail(const struct table *table, const struct sg_option *option,
                       const char *format, ...)
{
    struct sg_error err;
    va_list arguments;
    va_start(arguments, format);
    (void)error_vset(&err, SG_E_CONFIG, format, arguments); /* the code is known */
    va_end(arguments);
    return examination_fail_in(table->e, "option '%s%s' %s", table->path, option->name,
                               err.message);
}

static bool is_option_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return len > 0 && len <= NAME_BYTES_MAX && name[len] == '\0' && name[0] >= 'a';
}

static int name_check(const struct table *table, size_t index)
{
    const struct sg_option *option = &table->options[index];
    if (!is_option_name(option->name)) {
        return option_fail(table, option,
                           "is not named as options are: lower case letters, digits and '_', at "
                           "most %d, a letter first",
                           NAME_BYTES_MAX);
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(table->options[i].name, option->name) == 0) {
            return option_fail(table, option, "stands twice in the table");
        }
    }
    for (size_t i = 0; table->reserved != NULL && table->reserved[i] != NULL; i++) {
        if (strcmp(table->reserved[i], option->name) == 0) {
            return option_fail(table, option,
                               "has a name that the core keeps for itself in '%s': take another",
                               table->section);
        }
    }
    return 0;
}

static const char *member_type(uint32_t type)
{
    static const char *const names[] = {
        [SG_STRING] = "const char *",
        [SG_BOOL] = "bool",
        [SG_INT] = "int64_t",
        [SG_DURATION] = "int64_t",
        [SG_SIZE] = "uint64_t",
        [SG_CHOICE] = "const char *",
        [SG_STRINGS] = "const char *const *",
        [SG_MAP] = "struct sg_map",
        [SG_LIST] = "struct sg_list",
    };
    CHECK(type < COUNT_OF(names));
    return names[type];
}

/* What is filled is inside the struct, of the type's size, and nobody else's. */
static int member_check(const struct table *table, size_t index)
{
    const struct sg_option *option = &table->options[index];
    size_t size = conf_type_size(option->type);
    if (option->size != size) {
        return option_fail(table, option, "fills a member of %zu bytes, expected a '%s' of %zu",
                           option->size, member_type(option->type), size);
    }
    if (option->offset > table->struct_size || size > table->struct_size - option->offset ||
        option->offset % conf_type_alignment(option->type) != 0) {
        return option_fail(table, option,
                           "fills bytes %zu to %zu of a struct of %zu: SG_FIELD must name the "
                           "struct whose size is given",
                           option->offset, option->offset + size, table->struct_size);
    }
    for (size_t i = 0; i < index; i++) {
        const struct sg_option *other = &table->options[i];
        bool is_alias = ((option->flags | other->flags) & SG_DEPRECATED) != 0;
        if (!is_alias && option->offset < other->offset + other->size &&
            other->offset < option->offset + size) {
            return option_fail(table, option, "fills the same member as '%s'", other->name);
        }
    }
    return 0;
}

static int choices_check(const struct table *table, const struct sg_option *option)
{
    if (option->type != SG_CHOICE) {
        return option->choices == NULL
                   ? 0
                   : option_fail(table, option, "has choices, but is not of type SG_CHOICE");
    }
    if (option->choices == NULL) {
        return option_fail(table, option, "has no choices, expected some such as \"fast|slow\"");
    }
    for (const char *at = option->choices;; at++) {
        size_t len = strcspn(at, "|");
        if (len == 0) {
            return option_fail(table, option, "has an empty choice in \"%s\"", option->choices);
        }
        at += len;
        if (*at == '\0') {
            return 0;
        }
    }
}

/* One text of the table, read as the configuration's would be. */
static int text_check(const struct table *table, const struct sg_option *as,
                      const struct sg_option *option, const char *what, const char *text)
{
    struct sg_error err = {0};
    _Alignas(max_align_t) char member[sizeof(struct sg_map)];
    if (text == NULL || conf_value(as, text, member, table->e->arena, &err) == 0) {
        return 0;
    }
    return option_fail(table, option, "has a wrong %s: %s", what, err.message);
}

static int bounds_check(const struct table *table, const struct sg_option *option)
{
    bool has_bounds =
        option->type == SG_INT || option->type == SG_DURATION || option->type == SG_SIZE;
    if (!has_bounds && (option->min != NULL || option->max != NULL)) {
        return option_fail(table, option,
                           "has bounds, which are for SG_INT, SG_DURATION and SG_SIZE");
    }
    struct sg_option unbound = *option;
    unbound.min = unbound.max = NULL;
    int code = text_check(table, &unbound, option, "min", option->min);
    if (code == 0) {
        code = text_check(table, &unbound, option, "max", option->max);
    }
    unbound.min = option->min;
    return code != 0 ? code : text_check(table, &unbound, option, "max", option->max);
}

static int default_check(const struct table *table, const struct sg_option *option)
{
    if (option->def != NULL && (option->flags & SG_REQUIRED) != 0) {
        return option_fail(table, option, "is required and has a default: it can be one of them");
    }
    return text_check(table, option, option, "default", option->def);
}

static int table_check(const struct table *table);

static int fields_check(const struct table *table, const struct sg_option *option)
{
    if (option->type != SG_LIST) {
        return option->fields == NULL && option->fields_size == 0
                   ? 0
                   : option_fail(table, option, "has fields, but is not of type SG_LIST");
    }
    if (option->fields == NULL || option->fields[0].name == NULL || option->fields_size == 0 ||
        option->fields_size > CONFIG_BYTES_MAX) {
        return option_fail(table, option,
                           "is a list without fields, or its fields_size is not that of a struct");
    }
    struct table inner = {
        .e = table->e,
        .path = arena_printf(table->e->arena, "%s%s.", table->path, option->name),
        .options = option->fields,
        .struct_size = option->fields_size,
    };
    return table_check(&inner);
}

static int option_check(const struct table *table, size_t index)
{
    const struct sg_option *option = &table->options[index];
    int code = name_check(table, index);
    if (code != 0) {
        return code;
    }
    if (conf_type_size(option->type) == 0) {
        return option_fail(table, option, "has the unknown type %u", option->type);
    }
    if ((option->flags & ~OPTION_FLAGS) != 0) {
        return option_fail(table, option, "has unknown flags 0x%x", option->flags & ~OPTION_FLAGS);
    }
    if (option->help == NULL || option->help[0] == '\0') {
        return option_fail(table, option, "has no help: say in one sentence what it is for");
    }
    code = member_check(table, index);
    if (code == 0) {
        code = choices_check(table, option);
    }
    if (code == 0) {
        code = fields_check(table, option);
    }
    if (code == 0) {
        code = bounds_check(table, option);
    }
    return code != 0 ? code : default_check(table, option);
}

static int table_check(const struct table *table)
{
    for (size_t i = 0; table->options != NULL && table->options[i].name != NULL; i++) {
        int code = option_check(table, i);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

int options_check(const struct examination *e, const struct sg_plugin *plugin)
{
    enum plugin_kind kind = plugin_kind_of(plugin);
    if (plugin->config_size > CONFIG_BYTES_MAX) {
        return examination_fail(e, "has a config_size of %zu bytes, more than 1 MiB",
                                plugin->config_size);
    }
    struct table table = {
        .e = e,
        .path = "",
        .options = plugin->options,
        .struct_size = plugin->config_size,
        .reserved = plugin_reserved(kind),
        .section = kind_section(kind),
    };
    return table_check(&table);
}
