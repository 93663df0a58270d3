/* The search provider `perplexity`: Perplexity's search API, which gives hits, not answers of a model. */
#include "search_http.h"

#include <string.h>

#define DOMAINS_MAX 20

struct config {
    struct search_options common;
    int64_t max_tokens_per_page;
};

static const struct sg_option options[] = {
    SEARCH_KEY_OPTION(SG_REQUIRED),
    SEARCH_URL_OPTION("https://api.perplexity.ai"),
    SEARCH_COMMON_OPTIONS,
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

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    (void)call;
    *ret_self = (void *)config;
    return search_check(config, err);
}

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
    static const char *const ages[] = {"day", "week", "month", "year"};
    const struct config *config = self;
    TEXT_CLEANUP struct text body = {0};
    search_member(&body, "query", query->text);
    search_member_int(&body, "max_results", search_count(&config->common, query));
    search_member_int(&body, "max_tokens_per_page", config->max_tokens_per_page);
    put_domains(&body, query);
    search_member(&body, "country", query->country);
    put_language(&body, query->language);
    search_member(&body, "search_recency_filter", search_freshness(query, ages));
    search_object_end(&body);
    return search_ask(&form, &config->common, call, query, &(struct search_request){.body = &body},
                      err);
}

static const struct sg_search_ops operations = {.search = search};

static const struct sg_plugin plugin = {
    .name = "perplexity",
    .help = "Searches by Perplexity's search API.",
    .options = options,
    .config_size = sizeof(struct config),
    .open = open_instance,
    .search = &operations,
    .flags = SG_ON_LOOP,
};

SG_PLUGIN_SET("0.1.0", &plugin);
