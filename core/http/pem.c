/* Certificates and private keys in PEM files: see pem.h. */
#include "http/pem.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

/* ---- the file ---- */

/* Whoever may read a key can be whom it stands for. The group may: such files are often kept by one. */
static int check_mode(const char *path, const struct stat *status, enum pem_kind kind,
                      struct sg_error *err)
{
    if (!S_ISREG(status->st_mode)) {
        return error_set(err, SG_E_CONFIG, "is no regular file: '%s'", path);
    }
    if (kind != PEM_KEY) {
        return 0;
    }
    if ((status->st_mode & (S_IROTH | S_IWOTH)) != 0) {
        return error_set(err, SG_E_CONFIG,
                         "may be read by everybody on this machine (mode %04o): chmod o-rw '%s'",
                         status->st_mode & 07777u, path);
    }
    return owner_check(path, status, "whom the gateway is taken for", err);
}

static int read_all(int fd, const char *path, struct buf *out, struct sg_error *err)
{
    for (;;) {
        char *space = buf_reserve(out, 16384);
        ssize_t got = space == NULL ? -1 : read(fd, space, 16384);
        if (got > 0) {
            buf_commit(out, (size_t)got);
        }
        if (space == NULL || out->len > PEM_BYTES_MAX) {
            return error_set(err, SG_E_CONFIG, "is larger than 1 MiB: '%s'", path);
        }
        if (got < 0 && errno != EINTR) {
            return error_set(err, SG_E_CONFIG, "cannot be read: '%s': %s", path,
                             strerrordesc_np(errno));
        }
        if (got == 0) {
            return 0;
        }
    }
}

static int read_open(int fd, const char *path, enum pem_kind kind, struct buf *out,
                     struct sg_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return error_set(err, SG_E_CONFIG, "cannot be read: '%s': %s", path,
                         strerrordesc_np(errno));
    }
    int rc = check_mode(path, &status, kind, err);
    return rc == 0 ? read_all(fd, path, out, err) : rc;
}

/* ---- what is in it ---- */

static BIO *bio_of(struct str text)
{
    return check_alloc(
        BIO_new_mem_buf(text.len > 0 ? text.data : "", (int)text.len)); /* at most PEM_BYTES_MAX */
}

/* OpenSSL's words for what failed last; its queue is empty then. */
static const char *reason_take(void)
{
    const char *words = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return words != NULL ? words : "no reason is known";
}

static int check_certificates(struct str text, const char *path, struct sg_error *err)
{
    BIO *bio = bio_of(text);
    X509 *one;
    unsigned count = 0;
    ERR_clear_error();
    while ((one = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        X509_free(one);
        count++;
    }
    BIO_free(bio);
    bool is_end = ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_PEM &&
                  ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *reason = reason_take();
    if (!is_end) {
        return error_set(err, SG_E_CONFIG,
                         "has a certificate (number %u) that cannot be read: "
                         "'%s': %s",
                         count + 1, path, reason);
    }
    return count > 0
               ? 0
               : error_set(err, SG_E_CONFIG,
                           "holds no certificate (PEM, '-----BEGIN CERTIFICATE'): '%s'", path);
}

/* OpenSSL would ask at the terminal. */
static int no_passphrase(char *out, int size, int is_writing, void *asked)
{
    (void)out, (void)size, (void)is_writing;
    *(bool *)asked = true;
    return -1;
}

static int key_parse(struct str text, const char *path, EVP_PKEY **ret, struct sg_error *err)
{
    bool is_encrypted = false;
    BIO *bio = bio_of(text);
    ERR_clear_error();
    *ret = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &is_encrypted);
    BIO_free(bio);
    ERR_clear_error(); /* its words say less than these */
    if (*ret != NULL) {
        return 0;
    }
    return is_encrypted
               ? error_set(err, SG_E_CONFIG,
                           "is protected by a passphrase, which nobody could give: write it "
                           "without one: '%s'",
                           path)
               : error_set(err, SG_E_CONFIG,
                           "holds no private key that can be read (PEM, '-----BEGIN PRIVATE "
                           "KEY'): '%s'",
                           path);
}

static int check_key(struct str text, const char *path, struct sg_error *err)
{
    EVP_PKEY *key = NULL;
    int rc = key_parse(text, path, &key, err);
    EVP_PKEY_free(key);
    return rc;
}

int pem_read(const char *path, enum pem_kind kind, struct arena *arena, struct str *ret,
             struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {.max = 2 * PEM_BYTES_MAX};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* of a pipe too at once */
    if (fd < 0) {
        return error_set(err, SG_E_CONFIG, "cannot be opened: '%s': %s", path,
                         strerrordesc_np(errno));
    }
    int rc = read_open(fd, path, kind, &text, err);
    (void)close(fd); /* read only */
    if (rc == 0) {
        rc = kind == PEM_KEY ? check_key(buf_str(&text), path, err)
                             : check_certificates(buf_str(&text), path, err);
    }
    if (rc == 0) {
        *ret = (struct str){arena_copy(arena, buf_str(&text)), text.len};
        CHECK(ret->data != NULL);
    }
    if (kind == PEM_KEY && text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    return rc;
}

int pem_check_pair(struct str certificates, struct str key, struct sg_error *err)
{
    BIO *bio = bio_of(certificates);
    X509 *first = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
    EVP_PKEY *private = NULL;
    BIO_free(bio);
    int rc = key_parse(key, "", &private, err);
    CHECK(first != NULL && rc == 0); /* pem_read() has seen to that */
    bool is_pair = X509_check_private_key(first, private) == 1;
    ERR_clear_error();
    EVP_PKEY_free(private);
    X509_free(first);
    return is_pair ? 0
                   : error_set(err, SG_E_CONFIG,
                               "is not the key of the certificate (the first in its file)");
}
