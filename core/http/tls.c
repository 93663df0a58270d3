/* A certificate with its key and rules, as OpenSSL's context: see tls.h. */
#include "http/tls_internal.h"

#include "base/check.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const handshake_names[] = {
    [HTTP_HANDSHAKE_FULL] = "full",       [HTTP_HANDSHAKE_RESUMED] = "resumed",
    [HTTP_HANDSHAKE_TIMEOUT] = "timeout", [HTTP_HANDSHAKE_LEFT] = "left",
    [HTTP_HANDSHAKE_CROWDED] = "crowded", [HTTP_HANDSHAKE_HTTP] = "http",
    [HTTP_HANDSHAKE_VERSION] = "version", [HTTP_HANDSHAKE_CERTIFICATE] = "certificate",
    [HTTP_HANDSHAKE_REFUSED] = "refused", [HTTP_HANDSHAKE_OTHER] = "other",
};
_Static_assert(COUNT_OF(handshake_names) == HTTP_HANDSHAKE_COUNT, "each has a name");

const char *http_handshake_name(enum http_handshake outcome)
{
    CHECK((size_t)outcome < COUNT_OF(handshake_names));
    return handshake_names[outcome];
}

/* ---- rules ---- */

/* Clients that offer none of it get the alert no_application_protocol, rather than HTTP that they did not mean. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *offered, unsigned offered_len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof ours - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Read-ahead: a record comes in one read, instead of its head and its body in one each. */
static bool rules_set(SSL_CTX *context, bool needs_13)
{
    static const unsigned char whose[] = "sandgate";
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_PRIORITIZE_CHACHA |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE); /* all of them */
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER); /* all of them */
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    int lowest = needs_13 ? TLS1_3_VERSION : TLS1_2_VERSION;
    return SSL_CTX_set_min_proto_version(context, lowest) == 1 &&
           SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
           SSL_CTX_set_session_id_context(context, whose, sizeof whose - 1) == 1 &&
           SSL_CTX_set_max_early_data(context, 0) == 1;
}

/* ---- facts ---- */

int64_t tls_seconds_of(const ASN1_TIME *at)
{
    struct tm tm = {0};
    return ASN1_TIME_to_tm(at, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* Every client knows P-256 and P-384, and most P-521; TLS 1.3 has no others. */
static void curve_read(const X509 *certificate, struct http_tls_facts *ret)
{
    static const char *const usual[] = {"prime256v1", "secp384r1", "secp521r1"};
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    char name[sizeof ret->rare_curve] = "?";
    if (key == NULL || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) {
        return;
    }
    (void)EVP_PKEY_get_group_name(key, name, sizeof name, NULL); /* else it has none */
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        if (strcmp(name, usual[i]) == 0) {
            return;
        }
    }
    memcpy(ret->rare_curve, name, sizeof name);
}

static void facts_read(const X509 *certificate, struct http_tls_facts *ret)
{
    curve_read(certificate, ret);
    unsigned len = 0;
    BIO *out = check_alloc(BIO_new(BIO_s_mem()));
    (void)X509_NAME_print_ex(out, X509_get_subject_name(certificate), 0,
                             XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB); /* else it stays empty */
    int count = BIO_read(out, ret->subject, sizeof ret->subject - 1);
    ret->subject[count > 0 ? count : 0] = '\0';
    (void)BIO_free(out); /* cannot fail */
    ret->not_before_s = tls_seconds_of(X509_get0_notBefore(certificate));
    ret->not_after_s = tls_seconds_of(X509_get0_notAfter(certificate));
    time_t end = (time_t)ret->not_after_s;
    struct tm tm;
    CHECK(gmtime_r(&end, &tm) != NULL);
    (void)strftime(ret->not_after, sizeof ret->not_after, "%Y-%m-%dT%H:%M:%SZ", &tm); /* fits */
    CHECK(X509_digest(certificate, EVP_sha256(), ret->sha256, &len) == 1);
    CHECK(len == sizeof ret->sha256);
}

const struct http_tls_facts *http_tls_facts(const struct http_tls *tls)
{
    CHECK_MAGIC(tls, TLS_MAGIC);
    return &tls->facts;
}

int64_t http_tls_days_left(const struct http_tls *tls, int64_t now_unix_s)
{
    CHECK_MAGIC(tls, TLS_MAGIC);
    int64_t left_s = tls->facts.not_after_s - now_unix_s;
    return left_s >= 0 ? left_s / 86400 : (left_s + 1) / 86400 - 1;
}

/* ---- life ---- */

static int tls_fill(struct http_tls *tls, const struct http_tls_options *options,
                    struct sg_error *err)
{
    SSL_CTX *context = tls->context;
    if (context == NULL || tls->method == NULL || !rules_set(context, options->needs_13) ||
        !tickets_use(context)) {
        return error_set(err, SG_E_CONFIG, "TLS cannot be set up: %s", tls_reason());
    }
    SSL_CTX_set_app_data(context, tls);
    int code = tls_use_pair(context, options, err);
    if (code == 0 && options->client_ca != NULL) {
        code = tls_use_client_ca(context, options->client_ca, err);
        tls->facts.asks_clients = true;
    }
    if (code == 0) {
        facts_read(SSL_CTX_get0_certificate(context), &tls->facts);
    }
    return code;
}

int http_tls_new(const struct http_tls_options *options, struct http_tls **ret,
                 struct sg_error *err)
{
    struct http_tls *tls = check_alloc(calloc(1, sizeof *tls));
    tls->magic = TLS_MAGIC;
    atomic_init(&tls->refs, 1);
    tickets_init(&tls->tickets);
    tls->context = SSL_CTX_new(TLS_server_method());
    tls->method = tls_socket_method();
    int code = tls_fill(tls, options, err);
    if (code != 0) {
        http_tls_unref(tls);
        return code;
    }
    *ret = tls;
    return 0;
}

struct http_tls *http_tls_ref(struct http_tls *tls)
{
    CHECK_MAGIC(tls, TLS_MAGIC);
    (void)atomic_fetch_add(&tls->refs, 1);
    return tls;
}

void http_tls_unref(struct http_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    CHECK_MAGIC(tls, TLS_MAGIC);
    if (atomic_fetch_sub(&tls->refs, 1) > 1) {
        return;
    }
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    tickets_clear(&tls->tickets);
    tls->magic = 0;
    free(tls);
}
