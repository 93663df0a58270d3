/* The code_interpreter interceptor: three tools that work in the request's container. Python code (run.c), shell commands
 * (run.c), and a text editor (editor.c).
 *
 * The core finds the model's calls, keeps the container and writes the client's items; here is what lies between: the
 * arguments are checked before anything is done, the client sees all events, and the model is told, in order and within
 * a bound, what happened. */
#include "tools.h"

static const struct sg_option options[] = {
    {.name = "shown",
     .type = SG_SIZE,
     SG_FIELD(struct config, shown),
     .def = "16KiB",
     .min = "1KiB",
     .max = "1MiB",
     .help =
         "How much of a run's output, or of a file, the model is shown; head and tail are kept."},
    {.name = "timeout",
     .type = SG_DURATION,
     SG_FIELD(struct config, timeout),
     .def = "0s",
     .min = "0s",
     .max = "1h",
     .help = "Longest time of one run; 0s: the sandbox's run_timeout."},
    {0},
};

static const char description[] =
    "Runs Python code in a sandbox and returns what it prints and the value of the last "
    "expression. Print what you need to see. Variables, imports and files of earlier calls in this "
    "session are normally still there; make again what is missing. The user sees only what you "
    "write: no output, no plot and no file reaches them, so repeat results, tables and the text of "
    "files in your answer, and give no links to files. Of a plot you too see only that it was "
    "made; print the numbers behind it to describe it. Expect no network access: when a download "
    "or an installation fails, do without it. Use it for exact calculation, data analysis and text "
    "processing.";

static const char parameters[] =
    "{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\",\"description\":"
    "\"Python source code to run, without Markdown fences.\"}},"
    "\"required\":[\"code\"],\"additionalProperties\":false}";

static const char bash_description[] =
    "Runs a shell command (bash) in a sandbox and returns its output and, if it is not 0, its exit "
    "status. It is the same container in which the text editor and Python code work where those "
    "are offered: files are shared, and a first command starts in the working directory, to which "
    "relative paths belong there. Files of earlier calls in this session are normally still there; "
    "whether variables, functions and the directory of 'cd' are depends on the sandbox, so set "
    "again what a command needs. Standard input is empty, "
    "and nothing can be answered interactively. What is left running in the background may be "
    "ended. The user sees only what you write, so repeat results in your answer. Expect no network "
    "access: when a download or an installation fails, do without it.";

static const char bash_parameters[] =
    "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\",\"description\":"
    "\"Shell command to run; may have several lines.\"}},"
    "\"required\":[\"command\"],\"additionalProperties\":false}";

static const char editor_description[] =
    "Views, creates and edits text files in a sandbox. It is the same container in which shell "
    "commands and Python code work where those are offered; relative paths belong to its working "
    "directory. 'view' shows a file with line numbers, or what a folder holds, two levels deep. "
    "'create' writes 'file_text' to a file, which is replaced if it is there. 'str_replace' puts "
    "'new_str' in the place of 'old_str', which must stand in the file exactly once, with the same "
    "spaces and line breaks and without the line numbers. Files have at most 1 MiB. The user does "
    "not see the files: repeat what matters in your answer.";

static const char editor_parameters[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"command\":{\"type\":\"string\",\"enum\":[\"view\",\"create\",\"str_replace\"]},"
    "\"path\":{\"type\":\"string\",\"description\":\"Path of the file, or of a folder to view.\"},"
    "\"file_text\":{\"type\":\"string\",\"description\":\"create: the whole text of the file.\"},"
    "\"old_str\":{\"type\":\"string\",\"description\":\"str_replace: the text to be replaced.\"},"
    "\"new_str\":{\"type\":\"string\",\"description\":\"str_replace: the text in its place; "
    "without it the old one is taken out.\"},"
    "\"view_range\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"description\":"
    "\"view: first and last line, such as [1, 20]; [10, -1] goes to the end.\"}},"
    "\"required\":[\"command\",\"path\"],\"additionalProperties\":false}";

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    (void)call;
    (void)err;
    *ret_self = (void *)(uintptr_t)config; /* an instance is its options */
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    (void)self;
    (void)call;
}

static const struct sg_tool tools[] = {
    {.hosted = "code_interpreter",
     .name = "code_interpreter",
     .description = description,
     .parameters_json = parameters,
     .call = tool_python},
    {.hosted = "bash_code_execution",
     .name = "bash_code_execution",
     .description = bash_description,
     .parameters_json = bash_parameters,
     .call = tool_bash},
    {.hosted = "text_editor_code_execution",
     .name = "text_editor_code_execution",
     .description = editor_description,
     .parameters_json = editor_parameters,
     .call = tool_editor},
    {0},
};

static const struct sg_interceptor_ops operations = {.tools = tools};

static const struct sg_plugin plugin = {
    .name = "code_interpreter",
    .help = "Answers the hosted code interpreter and code execution: Python with state, shell "
            "commands, "
            "and a text editor, in one container.",
    .options = options,
    .config_size = sizeof(struct config),
    .open = open_instance,
    .close = close_instance,
    .interceptor = &operations,
    .flags = SG_ON_LOOP,
};

SG_PLUGIN_SET("0.1.0", &plugin);
