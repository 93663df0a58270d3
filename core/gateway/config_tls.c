/* The section `server.tls`: the certificate of all TCP addresses. Read again on SIGHUP, with the files that it names. */
#include "gateway/config.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/tls.h"

#include <stdio.h>
#include <string.h>

enum { WARNING_BYTES = 160 };

struct tls_text {
    const char *certificate, *key, *client_ca, *min_version;
};

const struct sg_option tls_options[] = {
    {.name = "certificate",
     .type = SG_STRING,
     SG_FIELD(struct tls_text, certificate),
     .flags = SG_REQUIRED,
     .help = "File with the certificate in PEM form, and behind it those that lead to its "
             "authority."},
    {.name = "key",
     .type = SG_STRING,
     SG_FIELD(struct tls_text, key),
     .flags = SG_REQUIRED,
     .help = "File with its private key, not encrypted; only its owner and its group may read it."},
    {.name = "min_version",
     .type = SG_CHOICE,
     SG_FIELD(struct tls_text, min_version),
     .def = "1.2",
     .choices = "1.2|1.3",
     .help = "Oldest version of TLS that clients may use."},
    {.name = "client_ca",
     .type = SG_STRING,
     SG_FIELD(struct tls_text, client_ca),
     .help = "File with authorities: clients need a certificate of one of them."},
    {0},
};

static const char *path_of(const char *file, const char *path, struct arena *arena)
{
    return path == NULL ? NULL : config_path(file, path, arena);
}

struct http_tls *config_read_tls(const char *file, const struct conf_node *root,
                                 struct arena *arena, struct conf_problems *problems)
{
    const struct conf_node *server = conf_get(root, "server"), *section = conf_get(server, "tls");
    struct tls_text text = {0};
    if (conf_is_absent(section) ||
        conf_fill(tls_options, section, section, NULL, "server.tls", &text, arena, problems) > 0) {
        return NULL;
    }
    struct http_tls_options options = {.certificate = path_of(file, text.certificate, arena),
                                       .key = path_of(file, text.key, arena),
                                       .client_ca = path_of(file, text.client_ca, arena),
                                       .needs_13 = strcmp(text.min_version, "1.3") == 0};
    struct sg_error err = {0};
    struct http_tls *tls = NULL;
    if (http_tls_new(&options, &tls, &err) != 0) {
        conf_problem(problems, conf_at(section, err.param), "server.tls: '%s' %s",
                     err.param[0] != '\0' ? err.param : "certificate", err.message);
    }
    return tls;
}

/* What an operator should know of it; false: nothing. What ends it comes before what keeps some clients out. */
static bool warning_of(const struct http_tls *tls, char *ret, size_t size)
{
    const struct http_tls_facts *facts = http_tls_facts(tls);
    int64_t now_s = clock_unix_s(), days = http_tls_days_left(tls, now_s);
    if (now_s < facts->not_before_s) {
        (void)snprintf(ret, size, "the certificate is not good yet"); /* fits */
    } else if (days < 0) {
        (void)snprintf(ret, size, "the certificate has expired on %s: clients will refuse it",
                       facts->not_after); /* fits */
    } else if (days <= HTTP_TLS_WARN_DAYS) {
        (void)snprintf(ret, size, "the certificate expires on %s: renew it, then send SIGHUP",
                       facts->not_after); /* fits */
    } else if (facts->rare_curve[0] != '\0') {
        (void)snprintf(ret, size,
                       "the certificate's key is on the curve %s, which hardly any client takes: "
                       "make one on P-256",
                       facts->rare_curve); /* fits */
    } else {
        return false;
    }
    return true;
}

void config_tls_say(const struct http_tls *tls)
{
    char warning[WARNING_BYTES];
    if (warning_of(tls, warning, sizeof warning)) {
        fprintf(stderr, "sandgate: server.tls: %s\n", warning);
    }
}

void config_tls_log(const struct http_tls *tls)
{
    const struct http_tls_facts *facts = http_tls_facts(tls);
    char warning[WARNING_BYTES];
    struct log_line line;
    bool is_late = warning_of(tls, warning, sizeof warning);
    log_begin(&line, is_late ? SG_WARN : SG_INFO, "certificate");
    log_text(&line, "subject", facts->subject);
    log_text(&line, "not_after", facts->not_after);
    log_int(&line, "days", http_tls_days_left(tls, clock_unix_s()));
    log_text(&line, "client_certificates", facts->asks_clients ? "required" : "not_asked_for");
    if (is_late) {
        log_text(&line, "message", warning);
    }
    log_end(&line);
}
