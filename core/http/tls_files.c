/* What a struct http_tls is read from: certificate, key and clients' authorities, each a file in PEM form. A file is opened
 * once: what is checked of it is what is read. */
#include "http/tls_internal.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1 * MIB)

const char *tls_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    ERR_clear_error();
    return reason != NULL ? reason : "unknown reason";
}

/* ---- files ---- */

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* only read */
    }
}

static int file_failed(const char *path, const char *verb, const char *option, struct sg_error *err)
{
    return error_set_param(err, SG_E_CONFIG, option, "%s cannot be %s: %s", path, verb,
                           strerror(errno));
}

static int fill(int fd, struct buf *ret)
{
    for (;;) {
        char *space = buf_reserve(ret, 16 * KIB);
        ssize_t count = space == NULL ? 0 : read(fd, space, 16 * KIB);
        if (count <= 0) {
            return count == 0 ? 0 : -1;
        }
        buf_commit(ret, (size_t)count);
    }
}

typedef int file_check(const char *path, const struct stat *, struct sg_error *err);

static int file_read(const char *path, const char *option, file_check *check, struct buf *ret,
                     struct sg_error *err)
{
    __attribute__((cleanup(fd_close))) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return file_failed(path, "opened", option, err);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set_param(err, SG_E_CONFIG, option, "%s is no file", path);
    }
    if (check != NULL && check(path, &status, err) != 0) {
        (void)snprintf(err->param, sizeof err->param, "%s", option); /* fits */
        return err->code;
    }
    ret->max = FILE_BYTES_MAX;
    if (fill(fd, ret) != 0) {
        return file_failed(path, "read", option, err);
    }
    return ret->overflow
               ? error_set_param(err, SG_E_CONFIG, option,
                                 "%s is larger than a certificate's file may be, 1 MiB", path)
               : 0;
}

/* Wiped, as it may be a key. */
static void text_clear(struct buf *text)
{
    if (text->data != NULL) {
        OPENSSL_cleanse(text->data, text->cap);
    }
    buf_clear(text);
}
#define TEXT_CLEANUP __attribute__((cleanup(text_clear)))

static BIO *reader_of(const struct buf *text)
{
    return check_alloc(BIO_new_mem_buf(text->len > 0 ? text->data : "", (int)text->len));
}

/* ---- certificates ---- */

/* The next one; NULL at the end. *ret_is_broken where one begins that cannot be read. */
static X509 *certificate_next(BIO *reader, bool *ret_is_broken)
{
    ERR_clear_error();
    X509 *certificate = PEM_read_bio_X509(reader, NULL, NULL, NULL);
    *ret_is_broken =
        certificate == NULL && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
    ERR_clear_error();
    return certificate;
}

static bool chain_read(SSL_CTX *context, BIO *reader, size_t *ret_number)
{
    bool is_broken = false;
    X509 *next;
    for (*ret_number = 2; (next = certificate_next(reader, &is_broken)) != NULL; ++*ret_number) {
        CHECK(SSL_CTX_add0_chain_cert(context, next) == 1); /* takes it */
    }
    return !is_broken;
}

int tls_use_certificate(SSL_CTX *context, const char *path, struct sg_error *err)
{
    TEXT_CLEANUP struct buf text = {0};
    if (file_read(path, "certificate", NULL, &text, err) != 0) {
        return err->code;
    }
    BIO *reader = reader_of(&text);
    bool is_broken = false;
    size_t number = 1;
    int code = 0;
    X509 *own = certificate_next(reader, &is_broken);
    if (own == NULL && !is_broken) {
        code = error_set_param(err, SG_E_CONFIG, "certificate",
                               "%s holds no certificate in PEM form (BEGIN CERTIFICATE)", path);
    } else if (own == NULL || !chain_read(context, reader, &number)) {
        code = error_set_param(err, SG_E_CONFIG, "certificate",
                               "%s: its certificate number %zu is broken", path, number);
    } else if (SSL_CTX_use_certificate(context, own) != 1) {
        code = error_set_param(err, SG_E_CONFIG, "certificate",
                               "%s: the certificate cannot be used: %s", path, tls_reason());
    }
    X509_free(own);
    (void)BIO_free(reader); /* cannot fail */
    return code;
}

/* ---- the key ---- */

/* Who reads the key can pose as this server; a group may be meant to, as with ssl-cert. */
static int key_check(const char *path, const struct stat *status, struct sg_error *err)
{
    if ((status->st_mode & S_IRWXO) != 0) {
        return error_set(err, SG_E_CONFIG,
                         "%s may be read by everybody (mode %04o), who could pose as this server: "
                         "chmod o-rwx '%s'",
                         path, status->st_mode & 07777u, path);
    }
    return owner_check(path, status, "which key the gateway uses", err);
}

/* Nobody is there who could be asked. */
static int note_passphrase(char *ret, int size, int encrypts, void *was_asked)
{
    (void)ret, (void)size, (void)encrypts;
    *(bool *)was_asked = true;
    return -1;
}

static int key_unreadable(const char *path, bool is_encrypted, struct sg_error *err)
{
    ERR_clear_error();
    return error_set_param(err, SG_E_CONFIG, "key",
                           is_encrypted
                               ? "%s is encrypted, and nobody is there to be asked for its "
                                 "passphrase: store it without one, for the gateway's user alone"
                               : "%s holds no private key in PEM form (BEGIN PRIVATE KEY)",
                           path);
}

int tls_use_key(SSL_CTX *context, const char *path, const char *certificate_path,
                struct sg_error *err)
{
    TEXT_CLEANUP struct buf text = {0};
    if (file_read(path, "key", key_check, &text, err) != 0) {
        return err->code;
    }
    bool was_asked = false;
    BIO *reader = reader_of(&text);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(reader, NULL, note_passphrase, &was_asked);
    (void)BIO_free(reader); /* cannot fail */
    if (key == NULL) {
        return key_unreadable(path, was_asked, err);
    }
    bool is_good = X509_check_private_key(SSL_CTX_get0_certificate(context), key) == 1;
    bool is_used = is_good && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    if (!is_good) {
        ERR_clear_error();
        return error_set_param(err, SG_E_CONFIG, "key",
                               "%s does not belong to the certificate in %s", path,
                               certificate_path);
    }
    return is_used ? 0
                   : error_set_param(err, SG_E_CONFIG, "key", "%s: the key cannot be used: %s",
                                     path, tls_reason());
}

/* ---- clients ---- */

static int authority_check(const char *path, const struct stat *status, struct sg_error *err)
{
    return owner_check(path, status, "who may connect", err);
}

int tls_use_client_ca(SSL_CTX *context, const char *path, struct sg_error *err)
{
    TEXT_CLEANUP struct buf text = {0};
    if (file_read(path, "client_ca", authority_check, &text, err) != 0) {
        return err->code;
    }
    BIO *reader = reader_of(&text);
    bool is_broken = false;
    size_t count = 0;
    X509 *authority;
    while ((authority = certificate_next(reader, &is_broken)) != NULL) {
        CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1);
        CHECK(SSL_CTX_add_client_CA(context, authority) == 1);
        X509_free(authority);
        count++;
    }
    (void)BIO_free(reader); /* cannot fail */
    if (is_broken || count == 0) {
        return error_set_param(err, SG_E_CONFIG, "client_ca",
                               is_broken ? "%s: its certificate number %zu is broken"
                                         : "%s holds no certificate in PEM form (BEGIN "
                                           "CERTIFICATE): %zu found",
                               path, is_broken ? count + 1 : count);
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}
