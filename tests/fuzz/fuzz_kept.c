/* Fuzzes the reader of the state file. The input stands as the state itself: a digest that fits is put around it, so that what
 * lies behind it is reached. What is read is within the bounds of what the gateway writes, and is written again as well. */
#include "base/check.h"
#include "session/kept.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_around(struct str state, struct buf *out)
{
    uint8_t digest[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    sha256(state, digest);
    hex_encode(digest, sizeof digest, hex);
    (void)buf_printf(out, "{\"sandgate_state\":1,\"sha256\":\"%s\",\"state\":", hex);
    (void)buf_append_str(out, state);
    (void)buf_puts(out, "}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_CLEANUP struct buf text = {0}, again = {0};
    struct kept kept = {.arena = arena_new(0)};
    uint8_t secret[KEPT_SECRET_BYTES];
    bool has_secret = false;
    struct sg_error err = {0};
    put_around((struct str){(const char *)data, size}, &text);
    if (kept_read(buf_str(&text), &kept, secret, &has_secret, &err) != 0) {
        CHECK(err.code == SG_E_INVALID && err.message[0] != '\0');
    } else {
        for (size_t i = 0; i < kept.containers_count; i++) {
            CHECK(kept.containers[i].handle.len > 0);
            CHECK(kept.containers[i].handle.len <= LIMIT_HANDLE_BYTES);
            CHECK(kept.containers[i].id.len < CONTAINER_ID_BYTES);
        }
        CHECK(kept_write(&kept, has_secret ? secret : NULL, &again));
    }
    arena_free(kept.arena);
    return 0;
}
