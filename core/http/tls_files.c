/* What a struct http_tls is read from: certificate, key and clients' authorities, each a PEM file (pem.h). */
#include "http/tls_internal.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/owner.h"
#include "http/pem.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>

const char *tls_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    ERR_clear_error();
    return reason != NULL ? reason : "unknown reason";
}

/* Whose fault it was, for whoever has read the option. */
static int at_option(const char *option, int code, struct sg_error *err)
{
    if (code != 0) {
        (void)snprintf(err->param, sizeof err->param, "%s", option); /* fits */
    }
    return code;
}

/* NULL at the end: pem_read() has seen to it that there is one at the least, and each can be read. */
static X509 *certificate_next(BIO *reader)
{
    X509 *certificate = PEM_read_bio_X509_AUX(reader, NULL, NULL, NULL);
    ERR_clear_error();
    return certificate;
}

static BIO *reader_of(struct str text)
{
    return check_alloc(BIO_new_mem_buf(text.data, (int)text.len)); /* at most PEM_BYTES_MAX */
}

struct place { /* of a certificate */
    const char *path;
    unsigned number; /* in the file, from 1 */
};

/* The key of the server itself; with those of authorities TLS has nothing to do. */
static int check_kind(const X509 *own, const struct place *at, struct sg_error *err)
{
    EVP_PKEY *key = X509_get0_pubkey(own);
    int kind = key == NULL ? NID_undef : EVP_PKEY_get_base_id(key);
    if (kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS || kind == EVP_PKEY_EC ||
        kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG,
                     "has a certificate (number %u) whose key is of a kind that TLS of today has "
                     "no use for (%s): make one of RSA or on the curve P-256: '%s'",
                     at->number, key == NULL ? "unknown" : EVP_PKEY_get0_type_name(key), at->path);
}

/* Why OpenSSL does not take it, which is what clients would say. */
static int cannot_use(const X509 *certificate, const struct place *at, struct sg_error *err)
{
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    const char *words = tls_reason();
    switch (reason) {
    case SSL_R_EE_KEY_TOO_SMALL:
    case SSL_R_CA_KEY_TOO_SMALL:
        return error_set(err, SG_E_CONFIG,
                         "has a certificate (number %u) whose key is too short for TLS of today, "
                         "%s of %d bits: make one of 2048 bits or more, or on the curve P-256: "
                         "'%s'",
                         at->number, EVP_PKEY_get0_type_name(key), EVP_PKEY_get_bits(key),
                         at->path);
    case SSL_R_CA_MD_TOO_WEAK:
        return error_set(err, SG_E_CONFIG,
                         "has a certificate (number %u) that was signed with a digest that is too "
                         "weak for TLS of today, such as SHA-1: have it signed with SHA-256: '%s'",
                         at->number, at->path);
    default:
        return error_set(err, SG_E_CONFIG,
                         "has a certificate (number %u) that cannot be used: %s: '%s'", at->number,
                         words, at->path);
    }
}

static int use_own(SSL_CTX *context, BIO *reader, const struct place *at, struct sg_error *err)
{
    X509 *own = certificate_next(reader);
    CHECK(own != NULL);
    int code = check_kind(own, at, err);
    if (code == 0 && SSL_CTX_use_certificate(context, own) != 1) {
        code = cannot_use(own, at, err);
    }
    X509_free(own);
    return code;
}

static int use_chain(SSL_CTX *context, const char *path, struct str text, struct sg_error *err)
{
    BIO *reader = reader_of(text);
    struct place at = {.path = path, .number = 1};
    int code = use_own(context, reader, &at, err);
    X509 *next;
    while (code == 0 && (next = certificate_next(reader)) != NULL) {
        at.number++;
        if (SSL_CTX_add0_chain_cert(context, next) != 1) { /* else it takes it */
            code = cannot_use(next, &at, err);
            X509_free(next);
        }
    }
    (void)BIO_free(reader); /* cannot fail */
    return code;
}

static int use_key(SSL_CTX *context, struct str text, struct sg_error *err)
{
    BIO *reader = reader_of(text);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(reader, NULL, NULL, NULL);
    CHECK(key != NULL); /* as above */
    int code = SSL_CTX_use_PrivateKey(context, key) == 1
                   ? 0
                   : error_set(err, SG_E_CONFIG, "cannot be used: %s", tls_reason());
    EVP_PKEY_free(key);
    (void)BIO_free(reader); /* cannot fail */
    return code;
}

static int use_pair(SSL_CTX *context, const struct http_tls_options *options, struct arena *arena,
                    struct sg_error *err)
{
    struct str chain, key;
    int code = at_option("certificate",
                         pem_read(options->certificate, PEM_CERTIFICATES, arena, &chain, err), err);
    if (code == 0) {
        code = at_option("certificate", use_chain(context, options->certificate, chain, err), err);
    }
    if (code != 0) {
        return code;
    }
    code = at_option("key", pem_read(options->key, PEM_KEY, arena, &key, err), err);
    if (code == 0) {
        code = pem_check_pair(chain, key, err);
        code = at_option("key", code == 0 ? use_key(context, key, err) : code, err);
        explicit_bzero((char *)(uintptr_t)key.data, key.len); /* the arena is ours */
    }
    return code;
}

int tls_use_pair(SSL_CTX *context, const struct http_tls_options *options, struct sg_error *err)
{
    struct arena *arena = arena_new(0);
    int code = use_pair(context, options, arena, err);
    arena_free(arena);
    return code;
}

/* Who may write the file says who may connect. */
static int authorities_read(const char *path, struct arena *arena, struct str *ret,
                            struct sg_error *err)
{
    struct stat status;
    int code = stat(path, &status) == 0 ? owner_check(path, &status, "who may connect", err) : 0;
    return code == 0 ? pem_read(path, PEM_CERTIFICATES, arena, ret, err) : code;
}

int tls_use_client_ca(SSL_CTX *context, const char *path, struct sg_error *err)
{
    struct arena *arena = arena_new(0);
    struct str text;
    int code = at_option("client_ca", authorities_read(path, arena, &text, err), err);
    if (code == 0) {
        BIO *reader = reader_of(text);
        X509 *authority;
        while ((authority = certificate_next(reader)) != NULL) {
            CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1);
            CHECK(SSL_CTX_add_client_CA(context, authority) == 1);
            X509_free(authority);
        }
        (void)BIO_free(reader); /* cannot fail */
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    arena_free(arena);
    return code;
}
