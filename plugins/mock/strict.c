/* What no upstream may ever see, whatever the form. */
#include "strict.h"

bool is_control_key(const char *name)
{
    static const char *const prefixes[] = {"_code_interpreter_interception",
                                           "_websearch_interception",
                                           "_compression_interception",
                                           "_headroom_interception",
                                           "_agentic_loop",
                                           "_sandgate",
                                           "user_api_key"};
    static const char *const names[] = {"max_agentic_loops", "litellm_metadata", "litellm_call_id",
                                        NULL};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return name_is_among(name, names);
}
