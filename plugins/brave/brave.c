/* The search provider `brave`: Brave's own index, by its search API. */
#include "search_http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define QUERY_BYTES_MAX 400 /* Brave's limit, in characters */

struct config {
    struct search_options common;
    const char *safe_search;
    bool extra_snippets;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(SG_REQUIRED, "https://api.search.brave.com"),
    {.name = "safe_search",
     .type = SG_CHOICE,
     SG_FIELD(struct config, safe_search),
     .def = "moderate",
     .choices = "off|moderate|strict",
     .help = "What is kept out of the hits."},
    {.name = "extra_snippets",
     .type = SG_BOOL,
     SG_FIELD(struct config, extra_snippets),
     .def = "false",
     .help = "Asks for up to five more excerpts of each page, which not every plan has."},
    {0},
};

static const struct search_form form = {
    .service = "Brave",
    .path = "/res/v1/web/search",
    .key_header = "X-Subscription-Token",
    .key_prefix = "",
    .hits = "web.results",
    .marker = "query", /* without hits there is no "web" */
    .title = "title",
    .url = "url",
    .snippet = {"description"},
    .date = {"page_age", "age"},
    .is_html = true,
};

/* Brave has a list of them and refuses queries with others. */
static const char *country_of(const char *country)
{
    static const char known[] =
        " AR AU AT BE BR CA CL DK FI FR DE HK IN ID IT JP KR MY MX NL NZ NO "
        "CN PL PT PH RU SA ZA ES SE CH TW TR GB US ";
    char spaced[5];
    if (country == NULL || strlen(country) != 2) {
        return NULL;
    }
    (void)snprintf(spaced, sizeof spaced, " %s ", country); /* fits */
    const char *found = strcasestr(known, spaced);
    return found == NULL ? NULL : country;
}

/* Brave's own names for some. */
static const char *language_of(const char *language)
{
    static const struct {
        const char *code, *theirs;
    } others[] = {{"ja", "jp"}, {"zh", "zh-hans"}, {"pt", "pt-pt"}, {"no", "nb"}};
    static const char known[] =
        " ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn "
        "ko lv lt ms ml mr nb pl pa ro ru sr sk sl es sv ta te th tr uk vi ";
    char spaced[5];
    if (language == NULL || strlen(language) != 2) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcasecmp(language, others[i].code) == 0) {
            return others[i].theirs;
        }
    }
    (void)snprintf(spaced, sizeof spaced, " %s ", language); /* fits */
    return strcasestr(known, spaced) == NULL ? NULL : language;
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    static const char *const ages[] = {"pd", "pw", "pm", "py"};
    const struct config *config = self;
    TEXT_CLEANUP struct text parameters = {0}, text = {0};
    search_operators(&text, query, " AND ", " NOT ", QUERY_BYTES_MAX);
    search_parameter(&parameters, "q", text.data);
    search_parameter_int(&parameters, "count", search_count(&config->common, query));
    search_parameter(&parameters, "result_filter", "web");
    search_parameter(&parameters, "text_decorations", "false");
    search_parameter(&parameters, "country", country_of(query->country));
    search_parameter(&parameters, "search_lang", language_of(query->language));
    search_parameter(&parameters, "freshness", search_freshness(query, ages));
    search_parameter(&parameters, "safesearch", config->safe_search);
    search_parameter(&parameters, "extra_snippets", config->extra_snippets ? "true" : NULL);
    struct search_form read = form;
    if (config->extra_snippets) {
        read.snippet[0] = "extra_snippets";
        read.snippet[1] = "description";
    }
    return search_ask(&read, &config->common, call, query,
                      &(struct search_request){.parameters = &parameters}, err);
}

SEARCH_PLUGIN("0.1.0", "brave", "Searches by Brave's search API.", options, struct config, search);
