/* The search provider `tavily`: a search API made for language models. */
#include "search_http.h"

#include <string.h>
#include <strings.h>

#define DOMAINS_MAX 100 /* Tavily takes more, but a query should stay small */

struct config {
    struct search_options common;
    const char *depth, *topic;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(SG_REQUIRED, "https://api.tavily.com"),
    {.name = "depth",
     .type = SG_CHOICE,
     SG_FIELD(struct config, depth),
     .def = "basic",
     .choices = "basic|advanced",
     .help = "How thoroughly is searched; advanced takes longer and costs twice as much."},
    {.name = "topic",
     .type = SG_CHOICE,
     SG_FIELD(struct config, topic),
     .def = "general",
     .choices = "general|news|finance",
     .help = "What is searched; news has dates."},
    {0},
};

static const struct search_form form = {
    .service = "Tavily",
    .path = "/search",
    .key_header = "Authorization",
    .key_prefix = "Bearer ",
    .hits = "results",
    .title = "title",
    .url = "url",
    .snippet = {"content"},
    .date = {"published_date"},
};

/* Tavily wants names. Countries that are not here are left out: their hits are then not preferred, which is all that it
 * would do. */
static const char *country_name(const char *code)
{
    static const struct {
        const char *code, *name;
    } countries[] = {
        {"AR", "argentina"},     {"AT", "austria"},        {"AU", "australia"},
        {"BE", "belgium"},       {"BG", "bulgaria"},       {"BR", "brazil"},
        {"CA", "canada"},        {"CH", "switzerland"},    {"CL", "chile"},
        {"CN", "china"},         {"CO", "colombia"},       {"CZ", "czech republic"},
        {"DE", "germany"},       {"DK", "denmark"},        {"EE", "estonia"},
        {"EG", "egypt"},         {"ES", "spain"},          {"FI", "finland"},
        {"FR", "france"},        {"GB", "united kingdom"}, {"GR", "greece"},
        {"HR", "croatia"},       {"HU", "hungary"},        {"ID", "indonesia"},
        {"IE", "ireland"},       {"IL", "israel"},         {"IN", "india"},
        {"IS", "iceland"},       {"IT", "italy"},          {"JP", "japan"},
        {"KE", "kenya"},         {"KR", "south korea"},    {"LT", "lithuania"},
        {"LU", "luxembourg"},    {"LV", "latvia"},         {"MX", "mexico"},
        {"MY", "malaysia"},      {"NG", "nigeria"},        {"NL", "netherlands"},
        {"NO", "norway"},        {"NZ", "new zealand"},    {"PE", "peru"},
        {"PH", "philippines"},   {"PK", "pakistan"},       {"PL", "poland"},
        {"PT", "portugal"},      {"RO", "romania"},        {"RS", "serbia"},
        {"SA", "saudi arabia"},  {"SE", "sweden"},         {"SG", "singapore"},
        {"SI", "slovenia"},      {"SK", "slovakia"},       {"TH", "thailand"},
        {"TR", "turkey"},        {"TW", "taiwan"},         {"UA", "ukraine"},
        {"US", "united states"}, {"VN", "vietnam"},        {"ZA", "south africa"},
    };
    for (size_t i = 0; code != NULL && i < sizeof countries / sizeof *countries; i++) {
        if (strcasecmp(countries[i].code, code) == 0) {
            return countries[i].name;
        }
    }
    return NULL;
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    const struct config *config = self;
    bool is_general = strcmp(config->topic, "general") == 0;
    TEXT_CLEANUP struct text body = {0};
    search_member(&body, "query", query->text);
    search_member_int(&body, "max_results", search_count(&config->common, query));
    search_member(&body, "search_depth", config->depth);
    search_member(&body, "topic", config->topic);
    search_member_allowed(&body, "include_domains", query, DOMAINS_MAX);
    search_member_blocked(&body, "exclude_domains", query, "", DOMAINS_MAX);
    search_member(&body, "time_range", search_freshness(query, NULL));
    search_member(&body, "country", is_general ? country_name(query->country) : NULL);
    return search_post(&form, &config->common, call, query, &body, err);
}

SEARCH_PLUGIN("0.1.0", "tavily", "Searches by Tavily's search API.", options, struct config,
              search);
