/* The search provider `exa`: a search API over an index of embeddings. */
#include "search_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOMAINS_MAX 100

struct config {
    struct search_options common;
    const char *type, *contents;
    bool moderation;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(SG_REQUIRED, "https://api.exa.ai"),
    {.name = "type",
     .type = SG_CHOICE,
     SG_FIELD(struct config, type),
     .def = "auto",
     .choices = "auto|fast|neural",
     .help = "How Exa searches."},
    {.name = "contents",
     .type = SG_CHOICE,
     SG_FIELD(struct config, contents),
     .def = "text",
     .choices = "text|highlights",
     .help = "Snippets are the beginning of a page's text, or the places that fit the query."},
    {.name = "moderation",
     .type = SG_BOOL,
     SG_FIELD(struct config, moderation),
     .def = "false",
     .help = "Keeps unsafe pages out of the hits."},
    {0},
};

static const struct search_form form = {
    .service = "Exa",
    .path = "/search",
    .key_header = "x-api-key",
    .key_prefix = "",
    .hits = "results",
    .title = "title",
    .url = "url",
    .snippet = {"text", "highlights", "summary"},
    .date = {"publishedDate"},
};

/* Exa knows dates of publication, not ages. */
static void put_age(struct text *body, const struct sg_query *query)
{
    static const char *const days[] = {"1", "7", "31", "366"};
    const char *age = search_freshness(query, days);
    if (age != NULL) {
        char date[SEARCH_DATE_SIZE], instant[SEARCH_DATE_SIZE + 16];
        search_date_before((int64_t)time(NULL), (int)strtol(age, NULL, 10), date);
        (void)snprintf(instant, sizeof instant, "%sT00:00:00.000Z", date); /* fits */
        search_member(body, "startPublishedDate", instant);
    }
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    const struct config *config = self;
    bool wants_text = strcmp(config->contents, "text") == 0;
    TEXT_CLEANUP struct text body = {0};
    search_member(&body, "query", query->text);
    search_member(&body, "type", config->type);
    search_member_int(&body, "numResults", search_count(&config->common, query));
    search_member_allowed(&body, "includeDomains", query, DOMAINS_MAX);
    search_member_blocked(&body, "excludeDomains", query, "", DOMAINS_MAX);
    put_age(&body, query);
    search_member(&body, "userLocation", query->country);
    if (config->moderation) {
        search_member_json(&body, "moderation", "true");
    }
    search_member_json(&body, "contents",
                       wants_text ? "{\"text\":{\"maxCharacters\":2000}}"
                                  : "{\"highlights\":true}");
    return search_post(&form, &config->common, call, query, &body, err);
}

SEARCH_PLUGIN("0.1.0", "exa", "Searches by Exa's search API.", options, struct config, search);
