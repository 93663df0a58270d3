/* Random text, SHA-256 and comparing in constant time. */
#include "base/digest.h"

#include "base/check.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>

/* They fail where there is no memory, and not for anything that is hashed. */
static void must(int result)
{
    CHECK_RESULT(result, 1, 0);
}

void sha256(struct str data, uint8_t out[SHA256_BYTES])
{
    must(EVP_Digest(data.data, data.len, out, NULL, EVP_sha256(), NULL));
}

void sha256_parts(const struct str *parts, size_t count, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *context = check_alloc(EVP_MD_CTX_new());
    must(EVP_DigestInit_ex(context, EVP_sha256(), NULL));
    for (size_t i = 0; i < count; i++) {
        uint8_t length[8];
        for (int byte = 0; byte < 8; byte++) {
            length[byte] = (uint8_t)((uint64_t)parts[i].len >> (8 * byte));
        }
        must(EVP_DigestUpdate(context, length, sizeof length));
        must(EVP_DigestUpdate(context, parts[i].data, parts[i].len));
    }
    must(EVP_DigestFinal_ex(context, out, NULL));
    EVP_MD_CTX_free(context);
}

void hmac_sha256(struct str key, struct str data, uint8_t out[SHA256_BYTES])
{
    CHECK(key.len <= INT32_MAX);
    const void *made = HMAC(EVP_sha256(), key.data, (int)key.len, (const unsigned char *)data.data,
                            data.len, out, NULL);
    CHECK(made != NULL);
}

void hex_encode(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hex_decode(struct str text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool equal_constant_time(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

static void random_from_system(void *out, size_t len)
{
    char *at = out;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        CHECK(got > 0);
        at += got;
        len -= (size_t)got;
    }
}

/* Each thread has a stock, from which every byte is given once and then wiped: an id for each request would else be a call
 * of the system for each. */
void random_bytes(void *out, size_t len)
{
    static _Thread_local struct {
        uint8_t bytes[512];
        size_t left;
    } stock;
    if (len > sizeof stock.bytes) {
        random_from_system(out, len);
        return;
    }
    if (stock.left < len) {
        random_from_system(stock.bytes, sizeof stock.bytes);
        stock.left = sizeof stock.bytes;
    }
    stock.left -= len;
    memcpy(out, stock.bytes + stock.left, len);
    OPENSSL_cleanse(stock.bytes + stock.left, len);
}

void random_id(char out[RANDOM_ID_BYTES])
{
    uint8_t bytes[16];
    random_bytes(bytes, sizeof bytes);
    hex_encode(bytes, sizeof bytes, out);
}
