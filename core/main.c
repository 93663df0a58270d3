/* The command line: sandgate serve|check|describe|plugins|version. Messages go to standard error, results to standard
 * output; exit 0: done, 1: it failed, 2: the command line is wrong. */
#include "base/check.h"
#include "conf/conf.h"
#include "gateway/gateway.h"
#include "plugin/load.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: sandgate COMMAND [OPTION …]\n"
    "\n"
    "  serve      serve with a configuration file\n"
    "  check      check a configuration file and the plugins that it names, and say what is wrong\n"
    "  plugins    list the plugins that are installed\n"
    "  describe   print a plugin's kinds and options\n"
    "  version    print the version\n"
    "\n"
    "Each takes --help.\n";

struct command_line {
    const char *config;
    const char *listen;
    const char *plugin_path;
    const char *argument;
};

struct command {
    const char *name;
    const char *help;
    int (*run)(const struct command_line *);
    bool takes_argument;
};

static int usage_error(const char *command, const char *what, const char *value)
{
    fprintf(stderr, "sandgate%s%s: %s '%s'; see sandgate %s%s--help\n", command != NULL ? " " : "",
            command != NULL ? command : "", what, value, command != NULL ? command : "",
            command != NULL ? " " : "");
    return 2;
}

/* Reads the file; on failure all problems are printed. */
static struct config *read_config(const struct command_line *line)
{
    struct conf_problems problems = {.file = line->config};
    struct config *config = config_read(line->config, &problems);
    if (config == NULL) {
        fputs(problems.text.data, stderr);
        fprintf(stderr, "sandgate: %zu problem%s in %s\n", problems.count,
                problems.count == 1 ? "" : "s", line->config);
    }
    conf_problems_clear(&problems);
    if (config != NULL && line->listen != NULL) {
        config->server.listen = line->listen;
    }
    return config;
}

static int run_serve(const struct command_line *line)
{
    struct config *config = read_config(line);
    if (config == NULL) {
        return 1;
    }
    int code = gateway_serve(config);
    config_free(config);
    return code;
}

static int run_check(const struct command_line *line)
{
    struct config *config = read_config(line);
    if (config == NULL) {
        return 1;
    }
    struct http_server_options listen = {0};
    struct sg_error err = {0};
    int rc = gateway_check_listen(config, &listen, &err);
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", line->config, err.message);
    } else {
        printf("%s: good: %zu upstreams, %zu sandboxes, %zu searches, %zu interceptors\n",
               line->config, config->upstreams_count, config->sandboxes_count,
               config->searches_count, config->interceptors_count);
    }
    config_free(config);
    return rc != 0;
}

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

static int run_plugins(const struct command_line *line)
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

static int run_describe(const struct command_line *line)
{
    struct arena *arena = arena_new(0);
    struct loader *loader = loader_of(line, arena);
    const struct plugin_file *file;
    struct sg_error err = {0};
    int code = loader_load(loader, line->argument, &file, &err) == 0 ? 0 : 1;
    if (code == 0) {
        struct buf text = {0};
        plugin_describe(file, &text);
        fputs(text.data, stdout);
        buf_clear(&text);
    } else {
        fprintf(stderr, "sandgate: %s\n", err.message);
    }
    loader_free(loader);
    arena_free(arena);
    return code;
}

static int run_version(const struct command_line *line)
{
    (void)line;
    printf("sandgate %s (plugin ABI %d.%d)\n", SANDGATE_VERSION, SG_ABI_MAJOR, SG_ABI_MINOR);
    return 0;
}

static const struct command commands[] = {
    {"serve",
     "usage: sandgate serve [--config FILE] [--listen ADDRESS:PORT]\n"
     "\n"
     "Serves until SIGTERM or SIGINT; then finishes what is in progress and deletes all "
     "containers.\n"
     "  --config FILE   default config.yaml\n"
     "  --listen A:P    instead of server.listen\n",
     run_serve, false},
    {"check",
     "usage: sandgate check [--config FILE]\n"
     "\n"
     "Checks the file and the plugins that it names, all problems at once; opens nothing.\n",
     run_check, false},
    {"plugins",
     "usage: sandgate plugins [--plugin-path FOLDER]\n"
     "\n"
     "Lists the installed plugins with version and kinds.\n",
     run_plugins, false},
    {"describe",
     "usage: sandgate describe PLUGIN [--plugin-path FOLDER]\n"
     "\n"
     "Prints a plugin's kinds and options.\n",
     run_describe, true},
    {"version", "usage: sandgate version\n", run_version, false},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* Options may stand before and after the argument. Returns -1 to go on, else the exit code. */
static int parse(const struct command *command, int argc, char **argv, struct command_line *line)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"plugin-path", required_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, ":c:l:p:h", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            line->config = optarg;
            break;
        case 'l':
            line->listen = optarg;
            break;
        case 'p':
            line->plugin_path = optarg;
            break;
        case 'h':
            fputs(command->help, stdout);
            return 0;
        case ':':
            return usage_error(command->name, "a value is missing for", argv[optind - 1]);
        default:
            return usage_error(command->name, "there is no option", argv[optind - 1]);
        }
    }
    int left = argc - optind;
    if (command->takes_argument && left != 1) {
        fprintf(stderr, "sandgate %s: name one plugin; see sandgate %s --help\n", command->name,
                command->name);
        return 2;
    }
    if (!command->takes_argument && left > 0) {
        return usage_error(command->name, "takes no argument, not", argv[optind]);
    }
    line->argument = left > 0 ? argv[optind] : NULL;
    return -1;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage_text, stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(usage_text, stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return run_version(NULL);
    }
    const struct command *command = find_command(argv[1]);
    if (command == NULL) {
        return usage_error(NULL, "there is no command", argv[1]);
    }
    struct command_line line = {.config = "config.yaml"};
    int code = parse(command, argc - 1, argv + 1, &line);
    return code >= 0 ? code : command->run(&line);
}
