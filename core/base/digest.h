/* Random text, SHA-256 and comparing in constant time (OpenSSL behind). */
#ifndef SANDGATE_BASE_DIGEST_H
#define SANDGATE_BASE_DIGEST_H

#include "base/str.h"

#include <stdint.h>

#define SHA256_BYTES 32

void sha256(struct str data, uint8_t out[SHA256_BYTES]);

/* SHA-256 over the parts, each behind its length, so that no two lists of parts collide. */
void sha256_parts(const struct str *parts, size_t count, uint8_t out[SHA256_BYTES]);

void hmac_sha256(struct str key, struct str data, uint8_t out[SHA256_BYTES]);

/* 2 * len characters and a NUL. */
void hex_encode(const uint8_t *bytes, size_t len, char *out);
/* False unless text is exactly 2 * len hexadecimal digits, either case. */
bool hex_decode(struct str text, uint8_t *out, size_t len);

bool equal_constant_time(const void *a, const void *b, size_t len);

/* Random bytes of cryptographic quality; ends the process if the system has none. */
void random_bytes(void *out, size_t len);

#define RANDOM_ID_BYTES 33
/* 128 random bits as 32 hexadecimal digits and a NUL. */
void random_id(char out[RANDOM_ID_BYTES]);

#endif
