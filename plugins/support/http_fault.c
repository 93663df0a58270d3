/* What is said of an exchange that failed: how far it came, in words for an operator. */
#include "http_fault.h"

#include <stdio.h>

static const char *words_behind_sending(uint32_t failed_at, int code)
{
    if (failed_at == SG_HTTP_UNANSWERED) {
        return code == SG_E_TIMEOUT ? "did not answer in time" : "broke off before it answered";
    }
    return code == SG_E_TIMEOUT ? "did not end its answer in time"
           : code == SG_E_LIMIT ? "answered with too much"
                                : "broke off amid its answer";
}

const char *http_fault_words(uint32_t failed_at, int code, const char *options,
                             char words[HTTP_FAULT_BYTES])
{
    switch (failed_at) {
    case SG_HTTP_UNRESOLVED:
        (void)snprintf(words, HTTP_FAULT_BYTES, "has no address (check %s and the name server)",
                       options); /* fits */
        return words;
    case SG_HTTP_UNCONNECTED:
        return "cannot be reached";
    case SG_HTTP_NO_TLS:
        return "cannot be trusted (for a certificate of one's own set 'ca_file')";
    default:
        return words_behind_sending(failed_at, code);
    }
}
