/* The command line: parsing it by the table of commands, which core/gateway/command_*.c carry out. Messages go to
 * standard error, results to standard output; exit 0: done, 1: it failed, 2: the command line is wrong. */
#include "base/check.h"
#include "gateway/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage_text[] =
    "usage: sandgate COMMAND [OPTION …]\n"
    "\n"
    "  serve      serve with a configuration file\n"
    "  check      check a configuration file and the plugins that it names, and say what is wrong\n"
    "  run        run code in a sandbox of a configuration file\n"
    "  keygen     make a key for a client\n"
    "  plugins    list the plugins that are installed\n"
    "  describe   print a plugin's kinds and options\n"
    "  version    print the version\n"
    "\n"
    "Each takes --help.\n";

enum argument { ARGUMENT_NONE, ARGUMENT_ONE, ARGUMENT_OPTIONAL };

struct command {
    const char *name;
    const char *help;
    int (*run)(const struct command_line *);
    const char *options; /* the letters of those that it takes, besides --help */
    enum argument argument;
};

static int usage_error(const char *command, const char *what, const char *value)
{
    fprintf(stderr, "sandgate%s%s: %s '%s'; see sandgate %s%s--help\n", command != NULL ? " " : "",
            command != NULL ? command : "", what, value, command != NULL ? command : "",
            command != NULL ? " " : "");
    return 2;
}

static int run_version(const struct command_line *line)
{
    (void)line;
    printf("sandgate %s (plugin ABI %d.%d)\n", SANDGATE_VERSION, SG_ABI_MAJOR, SG_ABI_MINOR);
    return 0;
}

static const struct command commands[] = {
    {"serve",
     "usage: sandgate serve [--config FILE] [--listen ADDRESS]\n"
     "\n"
     "Serves until SIGTERM or SIGINT; then finishes what is in progress and deletes all "
     "containers.\n"
     "  --config FILE   default config.yaml\n"
     "  --listen ADDRESS instead of server.listen, one of its entries\n",
     command_serve, "cl", ARGUMENT_NONE},
    {"check",
     "usage: sandgate check [--config FILE]\n"
     "\n"
     "Checks the file and the plugins that it names, all problems at once; opens nothing.\n",
     command_check, "c", ARGUMENT_NONE},
    {"run",
     "usage: sandgate run --sandbox NAME [--config FILE] [--language NAME] [CODE | FILE | -]\n"
     "\n"
     "Runs code in a fresh container of a configured sandbox and deletes the container. The code "
     "is\n"
     "the argument, the file of that name if there is one, or standard input.\n"
     "  --sandbox NAME  an entry of 'sandboxes'\n"
     "  --config FILE   default config.yaml; checked as a whole, but only this sandbox is opened\n"
     "  --language NAME python (the default), bash: a shell command, or what else the sandbox "
     "runs\n"
     "\n"
     "Exit codes: 0; 1 the code raised, or the command's exit status was not 0; 2 the command\n"
     "line is wrong (no sandbox of that name, code that cannot be read); 3 the sandbox or the "
     "configuration file failed; 128 and the\n"
     "signal's number, when it was interrupted.\n",
     command_run, "csg", ARGUMENT_OPTIONAL},
    {"keygen",
     "usage: sandgate keygen [--name NAME]\n"
     "\n"
     "Prints a fresh key for a client, and the line under auth.keys that makes the gateway know "
     "it.\n"
     "The key is kept nowhere.\n"
     "  --name NAME     whose it is: the identity; default client\n",
     command_keygen, "n", ARGUMENT_NONE},
    {"plugins",
     "usage: sandgate plugins [--plugin-path FOLDER]\n"
     "\n"
     "Lists the installed plugins with version and kinds.\n",
     command_plugins, "p", ARGUMENT_NONE},
    {"describe",
     "usage: sandgate describe PLUGIN [--plugin-path FOLDER]\n"
     "\n"
     "Prints a plugin's kinds and options; for the name 'core' the sections of the "
     "configuration,\nfor 'translation' what becomes of each field where an upstream speaks "
     "another "
     "API.\n",
     command_describe, "p", ARGUMENT_ONE},
    {"version", "usage: sandgate version\n", run_version, "", ARGUMENT_NONE},
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

static const char *name_of(const struct option *options, int letter)
{
    for (; options->name != NULL; options++) {
        if (options->val == letter) {
            return options->name;
        }
    }
    return "";
}

/* Options may stand before and after the argument. Returns -1 to go on, else the exit code. */
static int parse(const struct command *command, int argc, char **argv, struct command_line *line)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"plugin-path", required_argument, NULL, 'p'},
                                            {"name", required_argument, NULL, 'n'},
                                            {"sandbox", required_argument, NULL, 's'},
                                            {"language", required_argument, NULL, 'g'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, ":c:l:p:n:s:g:h", options, NULL)) != -1) {
        if (option > 'a' && option != 'h' && strchr(command->options, option) == NULL) {
            return usage_error(command->name, "takes no option", name_of(options, option));
        }
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
        case 'n':
            line->name = optarg;
            break;
        case 's':
            line->sandbox = optarg;
            break;
        case 'g':
            line->language = optarg;
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
    if (command->argument == ARGUMENT_ONE && left != 1) {
        fprintf(stderr, "sandgate %s: name one plugin; see sandgate %s --help\n", command->name,
                command->name);
        return 2;
    }
    if (command->argument == ARGUMENT_NONE && left > 0) {
        return usage_error(command->name, "takes no argument, not", argv[optind]);
    }
    if (left > 1) {
        return usage_error(command->name, "takes one argument; there is also", argv[optind + 1]);
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
