/* What clients of the two OpenAI forms ask of the hosted search: in the members of its entry of `tools`, or in those of
 * chat's `web_search_options`. */
#ifndef SANDGATE_SURFACE_OPENAI_SEARCH_H
#define SANDGATE_SURFACE_OPENAI_SEARCH_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

/* As search_options_write() has it. `where` names the object in messages ("tools[2]", "web_search_options"). Read are
 * search_context_size; user_location, also with the `approximate` in it that chat has; allowed_domains and blocked_domains
 * of `filters`. Clients that send the entry of another vendor get what they ask, too: max_uses, and domains without
 * `filters`. */
int openai_search_read(const struct json_member *members, size_t count, const char *where,
                       struct arena *, struct str *ret, struct sg_error *err);

#endif
