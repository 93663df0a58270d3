/* What a client has of an answer that called its functions, as a hash. */
#include "surface/shown_calls.h"

#include "base/canonical.h"
#include "base/check.h"
#include "base/digest.h"

void shown_hash(struct str text, const struct shown_call *calls, size_t count, struct arena *arena,
                char ret[SHOWN_HASH_BYTES])
{
    struct str *parts = check_alloc(arena_alloc(arena, (1 + 3 * count) * sizeof *parts));
    size_t parts_count = 0;
    parts[parts_count++] = text;
    for (size_t i = 0; i < count; i++) {
        struct str arguments = calls[i].arguments;
        BUF_CLEANUP struct buf canonical = {0};
        if (json_canonical(arguments, &canonical)) {
            char *copy = check_alloc(arena_copy(arena, buf_str(&canonical)));
            arguments = (struct str){copy, canonical.len};
        }
        parts[parts_count++] = calls[i].id;
        parts[parts_count++] = calls[i].name;
        parts[parts_count++] = arguments;
    }
    uint8_t hash[SHA256_BYTES];
    sha256_parts(parts, parts_count, hash);
    hex_encode(hash, sizeof hash, ret);
}
