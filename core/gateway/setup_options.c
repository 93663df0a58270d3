/* The core's keys of upstreams, sandboxes, searches and interceptors as tables of options. */
#include "gateway/setup_options.h"

#define NAME_OPTION(type_)                                                              \
    {                                                                                   \
        .name = "name", .type = SG_STRING, .flags = SG_REQUIRED, SG_FIELD(type_, name), \
        .help = "The name by which other sections and logs know it."                    \
    }
#define PLUGIN_OPTION(type_, required, words)                                            \
    {                                                                                    \
        .name = "plugin", .type = SG_STRING, .flags = required, SG_FIELD(type_, plugin), \
        .help = words                                                                    \
    }

const struct sg_option upstream_options[] = {
    NAME_OPTION(struct upstream_text),
    PLUGIN_OPTION(struct upstream_text, 0, "An upstream plugin, instead of base_url."),
    {.name = "base_url",
     .type = SG_STRING,
     SG_FIELD(struct upstream_text, base_url),
     .help = "Where the API is, as for a client library: https://api.openai.com/v1"},
    {.name = "api_key",
     .type = SG_STRING,
     .flags = SG_SECRET,
     SG_FIELD(struct upstream_text, api_key),
     .help = "The operator's key for it."},
    {.name = "passthrough",
     .type = SG_BOOL,
     SG_FIELD(struct upstream_text, passthrough),
     .def = "false",
     .help = "In auth mode passthrough: the client's own key is sent, instead of an api_key."},
    {.name = "relay_paths",
     .type = SG_STRINGS,
     SG_FIELD(struct upstream_text, relay_paths),
     .help = "With passthrough: further paths that go there as they are, with every method: "
             "/v1/files, /v1/files/*. A * is one segment, at the end all that is below; /v1 may be "
             "left out."},
    {.name = "models",
     .type = SG_STRINGS,
     SG_FIELD(struct upstream_text, models),
     .help =
         "Models that go there: exact names or patterns with *. May be left out where the section "
         "models names it."},
    {.name = "surfaces",
     .type = SG_STRINGS,
     SG_FIELD(struct upstream_text, surfaces),
     .help = "API forms that it speaks: chat, responses, messages; default all. Requests in "
             "another one are translated where it speaks chat."},
    {.name = "drop_params",
     .type = SG_STRINGS,
     SG_FIELD(struct upstream_text, drop_params),
     .help = "Fields that are left out where they cannot be translated, instead of refusing the "
             "request: top_k."},
    {.name = "stream",
     .type = SG_CHOICE,
     SG_FIELD(struct upstream_text, stream),
     .def = "live",
     .choices = "live|replay",
     .help = "replay: it cannot stream with tools; clients still get their stream."},
    {.name = "last_turn",
     .type = SG_CHOICE,
     SG_FIELD(struct upstream_text, last_turn),
     .def = "none",
     .choices = "none|remove",
     .help = "How the last turn is kept free of calls: tool choice none, or without our tools."},
    {.name = "other_tools",
     .type = SG_CHOICE,
     SG_FIELD(struct upstream_text, other_tools),
     .def = "pass",
     .choices = "pass|drop|reject",
     .help = "Tools that are no functions and that nobody here answers: they go up, go out, or are "
             "refused."},
    {.name = "encrypted_reasoning",
     .type = SG_BOOL,
     SG_FIELD(struct upstream_text, encrypted_reasoning),
     .def = "false",
     .help = "On responses: ask for reasoning in encrypted form, so that it can go up again."},
    {.name = "usage",
     .type = SG_CHOICE,
     SG_FIELD(struct upstream_text, usage),
     .def = "sum",
     .choices = "sum|last",
     .help = "What clients are told: all turns' tokens, or the last turn's (the context's size)."},
    {.name = "connect_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, connect_ms),
     .def = "10s",
     .min = "100ms",
     .max = "5m",
     .help = "Longest time to connect."},
    {.name = "first_byte_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, first_byte_ms),
     .def = "5m",
     .min = "100ms",
     .max = "1h",
     .help = "Longest time until its answer begins."},
    {.name = "silence_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, silence_ms),
     .def = "2m",
     .min = "100ms",
     .max = "1h",
     .help = "Longest pause in its answer."},
    {.name = "ca_file",
     .type = SG_STRING,
     SG_FIELD(struct upstream_text, ca_file),
     .help = "Certificates (PEM) to trust instead of the system's."},
    {.name = "client_certificate",
     .type = SG_STRING,
     SG_FIELD(struct upstream_text, client_certificate),
     .help =
         "A file with the certificate (PEM) that is shown where it asks for one, and those that "
         "lead to its authority."},
    {.name = "client_key",
     .type = SG_STRING,
     SG_FIELD(struct upstream_text, client_key),
     .help = "A file with that certificate's private key (PEM), without a passphrase; not for "
             "everybody to read."},
    {.name = "proxy",
     .type = SG_STRING,
     .flags = SG_SECRET,
     SG_FIELD(struct upstream_text, proxy),
     .help = "A proxy through which it is reached: http://user:password@host:port (the user may be "
             "left out), https or socks5h. The environment's proxies are never used."},
    {.name = "headers",
     .type = SG_MAP,
     .flags = SG_SECRET,
     SG_FIELD(struct upstream_text, headers),
     .help = "Headers that each request to it gets, names to values, in place of the client's."},
    {.name = "retries",
     .type = SG_INT,
     SG_FIELD(struct upstream_text, retries),
     .def = "1",
     .min = "0",
     .max = "5",
     .help = "How often a call that failed, and may not fail again, is repeated."},
    {.name = "circuit_failures",
     .type = SG_INT,
     SG_FIELD(struct upstream_text, circuit_failures),
     .def = "5",
     .min = "0",
     .max = "1000",
     .help =
         "After so many failures on end, requests that have another entry in the section models "
         "leave it alone; 0: never."},
    {.name = "circuit_time",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, circuit_ms),
     .def = "10s",
     .min = "100ms",
     .max = "1h",
     .help = "… for so long, until one request tries it again."},
    {.name = "circuit_time_max",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, circuit_ms_max),
     .def = "5m",
     .min = "100ms",
     .max = "24h",
     .help = "Each try that fails doubles that time, up to this."},
    {.name = "models_cache",
     .type = SG_DURATION,
     SG_FIELD(struct upstream_text, models_cache_ms),
     .def = "5m",
     .min = "0s",
     .max = "24h",
     .help = "How long its own list of models is kept, which GET /v1/models asks it for where "
             "'models' has "
             "patterns; 0s: not at all."},
    {0},
};

const struct sg_option sandbox_options[] = {
    NAME_OPTION(struct sandbox_text),
    PLUGIN_OPTION(struct sandbox_text, SG_REQUIRED,
                  "The sandbox provider: e2b, local, mock, or one of your own."),
    {.name = "run_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct sandbox_text, run_timeout_ms),
     .def = "60s",
     .min = "100ms",
     .max = "1h",
     .help = "Longest time for one run of code."},
    {.name = "keep",
     .type = SG_DURATION,
     SG_FIELD(struct sandbox_text, keep_ms),
     .def = "0s",
     .min = "0s",
     .max = "1h", /* LIMIT_KEEP_MS */
     .help = "How long a container without a session outlives its request, where its id was "
             "given to the client."},
    {0},
};

const struct sg_option search_options[] = {
    NAME_OPTION(struct search_text),
    PLUGIN_OPTION(struct search_text, SG_REQUIRED,
                  "The search provider: brave, exa, mock, perplexity, searxng, serper, tavily, or "
                  "one of your own."),
    {.name = "search_timeout",
     .type = SG_DURATION,
     SG_FIELD(struct search_text, search_timeout_ms),
     .def = "30s",
     .min = "100ms",
     .max = "10m",
     .help = "Longest time for one search."},
    {.name = "cache",
     .type = SG_DURATION,
     SG_FIELD(struct search_text, cache_ms),
     .def = "60s",
     .min = "0s",
     .max = "1h",
     .help = "How long the same query of the same identity is answered without asking again; 0s: "
             "never."},
    {.name = "max_per_request",
     .type = SG_INT,
     SG_FIELD(struct search_text, max_per_request),
     .def = "0",
     .min = "0",
     .max = "1000",
     .help = "Most searches in one request of a client; 0: as many as calls are allowed."},
    {.name = "per_minute",
     .type = SG_INT,
     SG_FIELD(struct search_text, per_minute),
     .def = "0",
     .min = "0",
     .max = "10000",
     .help = "Most searches of a key, its users together, within a minute, cached ones not "
             "counted; 0: no limit."},
    {0},
};

const struct sg_option interceptor_options[] = {
    PLUGIN_OPTION(struct interceptor_text, SG_REQUIRED,
                  "The interceptor: code_interpreter, web_search, or one of your own."),
    {.name = "name",
     .type = SG_STRING,
     SG_FIELD(struct interceptor_text, name),
     .help = "Its name in logs; default the plugin's."},
    {.name = "enabled",
     .type = SG_BOOL,
     SG_FIELD(struct interceptor_text, enabled),
     .def = "true",
     .help = "false: as if it were not there, but still checked."},
    {.name = "sandbox",
     .type = SG_STRING,
     SG_FIELD(struct interceptor_text, sandbox),
     .help = "The sandbox in which its code runs."},
    {.name = "search",
     .type = SG_STRING,
     SG_FIELD(struct interceptor_text, search),
     .help = "The search that it uses."},
    {.name = "upstreams",
     .type = SG_STRINGS,
     SG_FIELD(struct interceptor_text, upstreams),
     .help = "The upstreams for which it takes part; default all."},
    {.name = "tool_name",
     .type = SG_STRING,
     SG_FIELD(struct interceptor_text, tool_name),
     .help = "Another name for the function that the model sees; of several tools, for the first "
             "hosted "
             "one."},
    {.name = "show_runs",
     .type = SG_BOOL,
     SG_FIELD(struct interceptor_text, show_runs),
     .def = "false",
     .help = "Chat: list what ran as executed_tools in the answer."},
    {0},
};

static const char offer_text[] =
    "  offer: requested, always, or { models: [ … ] }; default requested\n"
    "      When its tools are offered: where a request names one, always, or always for these "
    "models "
    "(exact names or patterns with *).\n";

const struct config_section config_plugin_sections[] = {
    {"upstreams", "Model servers: a list; the first that serves a model gets it.", upstream_options,
     NULL},
    {"models",
     "Names of your own for models: a list; each name goes to entries of upstreams and models. "
     "They "
     "come before what upstreams list.",
     model_options, NULL},
    {"sandboxes", "Where code runs: a list; each entry also takes its plugin's options.",
     sandbox_options, NULL},
    {"searches", "Where searches go: a list; each entry also takes its plugin's options.",
     search_options, NULL},
    {"interceptors",
     "What answers hosted tools and looks at requests: a list, in this order; each entry also "
     "takes "
     "its plugin's options.",
     interceptor_options, offer_text},
};
_Static_assert(sizeof config_plugin_sections / sizeof *config_plugin_sections ==
                   CONFIG_PLUGIN_SECTIONS,
               "the header says how many there are");
