/* The search provider `intranet`: the search engine of one's own pages. */
#include "search_http.h"

struct config {
    struct search_options common; /* stands first: api_key, base_url, ca_file, timeout, count */
    const char *section;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(0, "https://search.intranet.example"),
    {.name = "section",
     .type = SG_STRING,
     SG_FIELD(struct config, section),
     .help = "Searches this part of the pages alone."},
    {0},
};

/* Its answers: {"found": {"pages": [{"name": "…", "link": "https://…", "text": "…", "changed": "2024-03-05"}]}} */
static const struct search_form form = {
    .service = "the intranet's search",
    .path = "/api/search",
    .key_header = "Authorization",
    .key_prefix = "Bearer ",
    .hits = "found.pages",
    .title = "name",
    .url = "link",
    .snippet = {"text"},
    .date = {"changed"},
};

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    static const char *const ages[] = {"1d", "7d", "31d", "366d"};
    const struct config *config = self;
    TEXT_CLEANUP struct text parameters = {0};
    search_parameter(&parameters, "q", query->text);
    search_parameter_int(&parameters, "n", search_count(&config->common, query));
    search_parameter(&parameters, "age", search_freshness(query, ages));
    search_parameter(&parameters, "section", config->section);
    return search_ask(&form, &config->common, call, query,
                      &(struct search_request){.parameters = &parameters}, err);
}

SEARCH_PLUGIN("1.0", "intranet", "Searches one's own pages.", options, struct config, search);
