/* The search provider `searxng`: a metasearch engine that one runs oneself. */
#include "search_http.h"

#include <string.h>

struct config {
    struct search_options common;
    const char *safe_search;
    const char *const *engines;
    const char *const *categories;
    bool site_operators;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(0, NULL),
    {.name = "safe_search",
     .type = SG_CHOICE,
     SG_FIELD(struct config, safe_search),
     .def = "instance",
     .choices = "instance|off|moderate|strict",
     .help = "What is kept out of the hits; instance: as SearXNG is set up."},
    {.name = "engines",
     .type = SG_STRINGS,
     SG_FIELD(struct config, engines),
     .help = "Engines to ask, by SearXNG's names for them; absent: those that are on."},
    {.name = "categories",
     .type = SG_STRINGS,
     SG_FIELD(struct config, categories),
     .help = "Categories to search, such as general or news; absent: general."},
    {.name = "site_operators",
     .type = SG_BOOL,
     SG_FIELD(struct config, site_operators),
     .def = "true",
     .help = "Names domains to the engines as site:DOMAIN, which most of them understand; hits of "
             "others are filtered all the same."},
    {0},
};

static const struct search_form form = {
    .service = "SearXNG",
    .path = "/search",
    .key_header = "Authorization",
    .key_prefix = "Bearer ",
    .hits = "results",
    .failures = "unresponsive_engines",
    .title = "title",
    .url = "url",
    .snippet = {"content"},
    .date = {"publishedDate", "pubdate"},
    .denied_hint = "add 'json' to search.formats in its settings.yml, and check 'api_key' if "
                   "something in front of it asks for one",
};

static void put_list(struct text *parameters, const char *name, const char *const *items)
{
    TEXT_CLEANUP struct text list = {0};
    for (size_t i = 0; items[i] != NULL; i++) {
        text_printf(&list, "%s%s", i == 0 ? "" : ",", items[i]);
    }
    parameters->overflow = parameters->overflow || list.overflow;
    search_parameter(parameters, name, list.data);
}

/* "0", "1", "2"; NULL: SearXNG decides. */
static const char *safe_search_level(const char *choice)
{
    return strcmp(choice, "off") == 0        ? "0"
           : strcmp(choice, "moderate") == 0 ? "1"
           : strcmp(choice, "strict") == 0   ? "2"
                                             : NULL;
}

/* "de", or "de-CH" where the country is known too. */
static void put_language(struct text *parameters, const struct sg_query *query)
{
    TEXT_CLEANUP struct text language = {0};
    if (query->language != NULL && query->language[0] != '\0') {
        text_puts(&language, query->language);
        if (query->country != NULL && query->country[0] != '\0') {
            text_printf(&language, "-%s", query->country);
        }
        search_parameter(parameters, "language", language.data);
    }
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    const struct config *config = self;
    TEXT_CLEANUP struct text parameters = {0}, text = {0};
    search_operators(&text, query, " ", " -", config->site_operators ? 2000 : 0);
    search_parameter(&parameters, "q", text.data);
    search_parameter(&parameters, "format", "json");
    put_language(&parameters, query);
    search_parameter(&parameters, "time_range", search_freshness(query, NULL));
    search_parameter(&parameters, "safesearch", safe_search_level(config->safe_search));
    put_list(&parameters, "engines", config->engines);
    put_list(&parameters, "categories", config->categories);
    return search_ask(&form, &config->common, call, query,
                      &(struct search_request){.parameters = &parameters}, err);
}

SEARCH_PLUGIN("0.1.0", "searxng", "Searches by a SearXNG of one's own.", options, struct config,
              search);
