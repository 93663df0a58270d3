/* The search provider `serper`: Google's results, by Serper. */
#include "search_http.h"

#include <ctype.h>
#include <string.h>

#define QUERY_BYTES_MAX 2048

struct config {
    struct search_options common;
};

static const struct sg_option options[] = {
    SEARCH_OPTIONS(SG_REQUIRED, "https://google.serper.dev"),
    {0},
};

static const struct search_form form = {
    .service = "Serper",
    .path = "/search",
    .key_header = "X-API-KEY",
    .key_prefix = "",
    .hits = "organic",
    .marker = "searchParameters", /* without hits there is no "organic" */
    .title = "title",
    .url = "link",
    .snippet = {"snippet"},
    .date = {"date"}, /* as Google prints it */
};

/* Google's codes are in lower case. */
static void put_code(struct text *body, const char *name, const char *code)
{
    char lower[3] = "";
    for (size_t i = 0; code != NULL && strlen(code) == 2 && i < 2; i++) {
        lower[i] = (char)tolower((unsigned char)code[i]);
    }
    search_member(body, name, lower);
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    static const char *const ages[] = {"qdr:d", "qdr:w", "qdr:m", "qdr:y"};
    const struct config *config = self;
    TEXT_CLEANUP struct text body = {0}, text = {0};
    search_operators(&text, query, " ", " -", QUERY_BYTES_MAX);
    search_member(&body, "q", text.data);
    search_member_int(&body, "num", search_count(&config->common, query));
    put_code(&body, "gl", query->country);
    put_code(&body, "hl", query->language);
    search_member(&body, "tbs", search_freshness(query, ages));
    body.overflow = body.overflow || text.overflow;
    return search_post(&form, &config->common, call, query, &body, err);
}

SEARCH_PLUGIN("0.1.0", "serper", "Searches by Serper, which gives Google's results.", options,
              struct config, search);
