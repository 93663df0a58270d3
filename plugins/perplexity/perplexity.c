/* The search provider `perplexity`: Perplexity's search API, which gives hits, not answers of a model. */
#include "search_http.h"

#include <string.h>

#define DOMAINS_MAX 20

struct config {
    struct search_options common;
    int64_t max_tokens_per_page;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(SG_REQUIRED, "https://api.perplexity.ai"),
    {.name = "max_tokens_per_page",
     .type = SG_INT,
     SG_FIELD(struct config, max_tokens_per_page),
     .def = "512",
     .min = "1",
     .max = "4096",
     .help = "How much of each page Perplexity reads for its snippet, in tokens."},
    {0},
};

static const struct search_form form = {
    .service = "Perplexity",
    .path = "/search",
    .key_header = "Authorization",
    .key_prefix = "Bearer ",
    .hits = "results",
    .title = "title",
    .url = "url",
    .snippet = {"snippet"},
    .date = {"date", "last_updated"},
};

/* One list, of domains that are wanted or, with a minus, of some that are not; never both. */
static void put_domains(struct text *body, const struct sg_query *query)
{
    if (query->allowed != NULL && query->allowed[0] != NULL) {
        search_member_allowed(body, "search_domain_filter", query, DOMAINS_MAX);
    } else {
        search_member_blocked(body, "search_domain_filter", query, "-", DOMAINS_MAX);
    }
}

static void put_language(struct text *body, const char *language)
{
    TEXT_CLEANUP struct text list = {0};
    if (language != NULL && language[0] != '\0') {
        text_puts(&list, "[");
        text_json(&list, language, strlen(language));
        text_puts(&list, "]");
        search_member_json(body, "search_language_filter", list.overflow ? "[]" : list.data);
    }
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    const struct config *config = self;
    TEXT_CLEANUP struct text body = {0};
    search_member(&body, "query", query->text);
    search_member_int(&body, "max_results", search_count(&config->common, query));
    search_member_int(&body, "max_tokens_per_page", config->max_tokens_per_page);
    put_domains(&body, query);
    search_member(&body, "country", query->country);
    put_language(&body, query->language);
    search_member(&body, "search_recency_filter", search_freshness(query, NULL));
    return search_post(&form, &config->common, call, query, &body, err);
}

SEARCH_PLUGIN("0.1.0", "perplexity", "Searches by Perplexity's search API.", options, struct config,
              search);
