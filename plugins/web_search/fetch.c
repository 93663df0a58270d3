/* The hosted fetching of pages, which clients name beside the search: it is known, so that their requests are served, and it
 * says at once that it cannot be used. */
#include "search.h"

#include <string.h>

const char fetch_description[] = "Fetches a web page by its URL. It cannot be used at present: "
                                 "rest on the excerpts that searches "
                                 "return.";

const char fetch_parameters[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"url\":{\"type\":\"string\",\"description\":\"The page's URL.\"}},"
    "\"required\":[\"url\"],\"additionalProperties\":false}";

int fetch_call(void *self, struct sg_call *call, const char *json, size_t len, struct sg_error *err)
{
    static const char text[] = "[tool unavailable] Pages cannot be fetched here. Rest on the "
                               "excerpts of searches, or tell the "
                               "user that the page was not read.";
    (void)self;
    (void)json;
    (void)len;
    int code = tool_status(call, "failed", "unavailable", CODE_NONE, err);
    return code != 0 ? code : sg->emit(call, SG_OUT_MODEL, text, strlen(text), err);
}
