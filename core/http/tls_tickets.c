/* The keys that encrypt sessions' tickets, and which tickets are good. A stolen key would open every connection that a ticket of its has resumed with TLS
 * 1.2, so they are never written down and change with time. */
#include "http/tls_internal.h"

#include "base/check.h"
#include "base/clock.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>

void tickets_init(struct tickets *tickets)
{
    lock_init(&tickets->lock);
    tickets->now = tickets->before = (struct ticket_key){0};
}

void tickets_clear(struct tickets *tickets)
{
    OPENSSL_cleanse(&tickets->now, sizeof tickets->now);
    OPENSSL_cleanse(&tickets->before, sizeof tickets->before);
    lock_destroy(&tickets->lock);
}

static bool key_make(struct ticket_key *key, int64_t now_s)
{
    *key = (struct ticket_key){.made_s = now_s};
    key->is_set = RAND_bytes(key->name, sizeof key->name) == 1 &&
                  RAND_bytes(key->cipher, sizeof key->cipher) == 1 &&
                  RAND_bytes(key->mac, sizeof key->mac) == 1;
    return key->is_set;
}

bool tickets_key_for_new(struct tickets *tickets, int64_t now_s, struct ticket_key *ret)
{
    bool is_there = true;
    lock_take(&tickets->lock);
    if (!tickets->now.is_set || now_s - tickets->now.made_s >= TICKET_KEY_S) {
        tickets->before = tickets->now;
        is_there = key_make(&tickets->now, now_s);
    }
    *ret = tickets->now;
    lock_release(&tickets->lock);
    return is_there;
}

bool tickets_key_named(struct tickets *tickets, const unsigned char name[16], int64_t now_s,
                       struct ticket_key *ret, bool *ret_is_old)
{
    lock_take(&tickets->lock);
    const struct ticket_key *keys[] = {&tickets->now, &tickets->before};
    bool is_found = false;
    for (size_t i = 0; !is_found && i < COUNT_OF(keys); i++) {
        int64_t age_s = now_s - keys[i]->made_s;
        is_found = keys[i]->is_set && age_s < 2 * TICKET_KEY_S &&
                   memcmp(keys[i]->name, name, sizeof keys[i]->name) == 0;
        if (is_found) {
            *ret = *keys[i];
            *ret_is_old = age_s >= TICKET_KEY_S;
        }
    }
    lock_release(&tickets->lock);
    return is_found;
}

static bool key_apply(const struct ticket_key *key, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                      const unsigned char *iv, bool encrypts)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac,
                                          sizeof key->mac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, params) == 1 &&
           EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, encrypts) == 1;
}

/* As SSL_CTX_set_tlsext_ticket_key_evp_cb(3) wants it: 1, 2 for a ticket that should be made anew, 0 for one that is not
 * known (a full handshake follows), -1 for a failure. */
static int ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int encrypts)
{
    struct http_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    CHECK_MAGIC(tls, TLS_MAGIC);
    struct ticket_key key;
    bool is_old = false;
    int64_t now_s = clock_ms() / 1000;
    int result = -1;
    if (encrypts != 0) {
        if (tickets_key_for_new(&tls->tickets, now_s, &key) &&
            RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1) {
            memcpy(name, key.name, sizeof key.name);
            result = key_apply(&key, cipher, mac, iv, true) ? 1 : -1;
        }
    } else if (!tickets_key_named(&tls->tickets, name, now_s, &key, &is_old)) {
        return 0;
    } else if (key_apply(&key, cipher, mac, iv, false)) {
        result = is_old ? 2 : 1;
    }
    OPENSSL_cleanse(&key, sizeof key);
    return result;
}

/* A ticket holds the certificate that the client showed when its session began: it was verified then, and not again. */
static bool client_has_ended(const SSL_SESSION *session)
{
    const X509 *shown = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session); /* only reads */
    return shown != NULL && clock_unix_s() > tls_seconds_of(X509_get0_notAfter(shown));
}

/* As SSL_CTX_set_session_ticket_cb(3) wants it: what to do with a ticket that was read, or could not be. Who is not resumed begins
 * anew, and shows a certificate that is good. */
static SSL_TICKET_RETURN ticket_judge(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                      size_t name_len, SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl, (void)name, (void)name_len, (void)arg;
    bool is_read = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
    if (!is_read || client_has_ended(session)) {
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    }
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

bool tickets_use(SSL_CTX *context)
{
    (void)SSL_CTX_set_timeout(context, TICKET_KEY_S);                  /* gives the old one */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* as above */
    return SSL_CTX_set_tlsext_ticket_key_evp_cb(context, ticket_key) == 1 &&
           SSL_CTX_set_session_ticket_cb(context, NULL, ticket_judge, NULL) == 1;
}
