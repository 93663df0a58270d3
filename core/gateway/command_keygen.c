/* sandgate keygen: a fresh key for a client, and the line that makes the gateway know it. The key itself is shown once
 * and kept nowhere. */
#include "gateway/command.h"

#include <stdio.h>
#include <string.h>

void key_generate(char out[KEY_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t bytes[33] = {0}; /* 256 bits, and nothing behind them for the last digit */
    random_bytes(bytes, 32);
    memcpy(out, "sg-", 3);
    for (size_t i = 0; i < 43; i++) {
        size_t bit = i * 6;
        unsigned two = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        out[3 + i] = digits[two >> (10 - bit % 8) & 63];
    }
    out[KEY_BYTES - 1] = '\0';
    explicit_bzero(bytes, sizeof bytes);
}

static bool name_usable(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

int command_keygen(const struct command_line *line)
{
    const char *name = line->name != NULL ? line->name : "client";
    if (!name_usable(name)) {
        fprintf(stderr,
                "sandgate keygen: a name is 1 to 64 letters, digits, '_', '-' and '.', not "
                "'%.80s'\n",
                name);
        return 2;
    }
    char key[KEY_BYTES], hex[2 * SHA256_BYTES + 1];
    uint8_t hash[SHA256_BYTES];
    key_generate(key);
    sha256(str_of(key), hash);
    hex_encode(hash, sizeof hash, hex);
    printf("%s\n    - { name: %s, sha256: %s }\n", key, name, hex);
    explicit_bzero(key, sizeof key);
    return fflush(stdout) != 0;
}
