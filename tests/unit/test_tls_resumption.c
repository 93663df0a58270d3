/* Which TLS sessions are resumed, where clients show certificates: none whose certificate has ended meanwhile. A client and the
 * server's context shake hands in memory; what time it is for the server, the test says. */
#include "base/check.h"
#include "base/clock.h"
#include "cunit_main.h"
#include "http/tls_internal.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENT_LIFE_S = 3600, SERVER_LIFE_S = 365 * 86400 };

static char folder[] = "/tmp/sandgate-test-tls-XXXXXX";
static int64_t later_s; /* that the server's clock goes ahead */

int64_t __real_clock_unix_s(void);
int64_t __wrap_clock_unix_s(void);

int64_t __wrap_clock_unix_s(void)
{
    return __real_clock_unix_s() + later_s;
}

struct pair { /* a certificate that has signed itself */
    X509 *certificate;
    EVP_PKEY *key;
    char certificate_path[80], key_path[80];
};

static struct pair pair_make(const char *name, long life_s)
{
    struct pair pair = {.certificate = check_alloc(X509_new()), .key = EVP_EC_gen("P-256")};
    X509_NAME *subject = check_alloc(X509_NAME_new());
    CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const void *)name, -1, -1, 0) ==
          1);
    CHECK(X509_set_version(pair.certificate, X509_VERSION_3) == 1);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(pair.certificate), 1) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(pair.certificate), -60) != NULL);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(pair.certificate), life_s) != NULL);
    CHECK(X509_set_subject_name(pair.certificate, subject) == 1);
    CHECK(X509_set_issuer_name(pair.certificate, subject) == 1);
    CHECK(X509_set_pubkey(pair.certificate, pair.key) == 1);
    CHECK(X509_sign(pair.certificate, pair.key, EVP_sha256()) > 0);
    X509_NAME_free(subject);
    (void)snprintf(pair.certificate_path, sizeof pair.certificate_path, "%s/%s.pem", folder, name);
    (void)snprintf(pair.key_path, sizeof pair.key_path, "%s/%s.key", folder, name);
    FILE *file = fopen(pair.certificate_path, "w");
    CHECK(file != NULL && PEM_write_X509(file, pair.certificate) == 1 && fclose(file) == 0);
    mode_t before = umask(077);
    file = fopen(pair.key_path, "w");
    (void)umask(before);
    CHECK(file != NULL && PEM_write_PrivateKey(file, pair.key, NULL, NULL, 0, NULL, NULL) == 1 &&
          fclose(file) == 0);
    return pair;
}

static void pair_clear(struct pair *pair)
{
    X509_free(pair->certificate);
    EVP_PKEY_free(pair->key);
    CHECK(unlink(pair->certificate_path) == 0 && unlink(pair->key_path) == 0);
}

struct bench {
    struct pair server, client;
    struct http_tls *tls;
    SSL_CTX *context; /* the client's */
};

static void bench_begin(struct bench *bench, bool asks_clients, int version)
{
    struct sg_error err = {0};
    later_s = 0;
    bench->server = pair_make("server", SERVER_LIFE_S);
    bench->client = pair_make("client", CLIENT_LIFE_S);
    struct http_tls_options options = {.certificate = bench->server.certificate_path,
                                       .key = bench->server.key_path,
                                       .client_ca =
                                           asks_clients ? bench->client.certificate_path : NULL};
    CU_ASSERT_EQUAL_FATAL(http_tls_new(&options, &bench->tls, &err), 0);
    bench->context = check_alloc(SSL_CTX_new(TLS_client_method()));
    CHECK(SSL_CTX_use_certificate(bench->context, bench->client.certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(bench->context, bench->client.key) == 1);
    CHECK(SSL_CTX_set_min_proto_version(bench->context, version) == 1);
    CHECK(SSL_CTX_set_max_proto_version(bench->context, version) == 1);
}

static void bench_end(struct bench *bench)
{
    SSL_CTX_free(bench->context);
    http_tls_unref(bench->tls);
    pair_clear(&bench->server);
    pair_clear(&bench->client);
}

/* Both sides until they are done, and a byte to the client, so that it reads the tickets before it. */
static bool shake(SSL *client, SSL *server)
{
    char byte = 0;
    int connected = 0, accepted = 0;
    for (int i = 0; i < 20 && (connected != 1 || accepted != 1); i++) {
        connected = connected == 1 ? 1 : SSL_connect(client);
        accepted = accepted == 1 ? 1 : SSL_accept(server);
    }
    return connected == 1 && accepted == 1 && SSL_write(server, "x", 1) == 1 &&
           SSL_read(client, &byte, 1) == 1 && byte == 'x';
}

/* A handshake with that session, or a full one with NULL. Whether it was resumed; *session becomes the one that it gave. */
static bool connect_with(struct bench *bench, SSL_SESSION **session)
{
    BIO *client_end, *server_end;
    SSL *client = check_alloc(SSL_new(bench->context));
    SSL *server = check_alloc(SSL_new(bench->tls->context));
    CHECK(BIO_new_bio_pair(&client_end, 65536, &server_end, 65536) == 1);
    SSL_set_bio(client, client_end, client_end);
    SSL_set_bio(server, server_end, server_end);
    CHECK(*session == NULL || SSL_set_session(client, *session) == 1);
    CU_ASSERT_TRUE_FATAL(shake(client, server));
    bool is_resumed = SSL_session_reused(server) == 1;
    CU_ASSERT_EQUAL(SSL_session_reused(client) == 1, is_resumed);
    SSL_SESSION_free(*session);
    *session = SSL_get1_session(client);
    (void)SSL_shutdown(client), (void)SSL_shutdown(server); /* else the session is a bad one */
    SSL_free(client);
    SSL_free(server);
    return is_resumed;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void a_session_is_resumed_until_the_clients_certificate_ends(void)
{
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct bench bench;
        SSL_SESSION *session = NULL;
        bench_begin(&bench, true, versions[i]);
        CU_ASSERT_FALSE(connect_with(&bench, &session));
        CU_ASSERT_TRUE(connect_with(&bench, &session));
        later_s = CLIENT_LIFE_S / 2;
        CU_ASSERT_TRUE(connect_with(&bench, &session));
        later_s = CLIENT_LIFE_S + 1;
        /* A full handshake, which asks for the certificate: by OpenSSL's own clock it is good here. */
        CU_ASSERT_FALSE(connect_with(&bench, &session));
        SSL_SESSION_free(session);
        bench_end(&bench);
    }
}

static void without_certificates_of_clients_none_is_looked_at(void)
{
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct bench bench;
        SSL_SESSION *session = NULL;
        bench_begin(&bench, false, versions[i]);
        CU_ASSERT_FALSE(connect_with(&bench, &session));
        later_s = CLIENT_LIFE_S + 1;
        CU_ASSERT_TRUE(connect_with(&bench, &session));
        SSL_SESSION_free(session);
        bench_end(&bench);
    }
}

static const struct test tests[] = {
    TEST(a_session_is_resumed_until_the_clients_certificate_ends),
    TEST(without_certificates_of_clients_none_is_looked_at),
};

int main(int argc, char **argv)
{
    CHECK(mkdtemp(folder) != NULL);
    int result = run_tests("tls_resumption", tests, COUNT_OF(tests), argc, argv);
    (void)rmdir(folder);
    return result;
}
