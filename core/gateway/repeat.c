/* A model that makes the same call over and over and always gets the same result is told to answer instead. Calls are
 * the same by what they mean, not by their ids or the spelling of their arguments. */
#include "gateway/request.h"

#include "base/canonical.h"
#include "base/limits.h"

struct repeat {
    struct repeat *next;
    uint8_t hash[SHA256_BYTES]; /* of function, arguments and result */
    unsigned count;
};

static struct repeat *repeat_of(struct request *r, const uint8_t hash[SHA256_BYTES])
{
    for (struct repeat *one = r->repeats; one != NULL; one = one->next) {
        if (memcmp(one->hash, hash, SHA256_BYTES) == 0) {
            return one;
        }
    }
    struct repeat *one = arena_get(r->arena, sizeof *one);
    memcpy(one->hash, hash, SHA256_BYTES);
    one->next = r->repeats;
    r->repeats = one;
    return one;
}

bool repeat_is_over(struct request *r, const struct surface_call *call, struct str result)
{
    BUF_CLEANUP struct buf canonical = {0};
    bool is_json = json_canonical(call->arguments, &canonical) && !canonical.overflow;
    struct str parts[] = {call->name, is_json ? buf_str(&canonical) : call->arguments, result};
    uint8_t hash[SHA256_BYTES];
    sha256_parts(parts, sizeof parts / sizeof parts[0], hash);
    return ++repeat_of(r, hash)->count >= LIMIT_SAME_RESULTS;
}
