/* Domains of queries and hosts of hits. */
#include "search_answer.h"

#include <string.h>
#include <strings.h>

static bool is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '.' ||
           c == '-' || c == '_' || (unsigned char)c >= 0x80;
}

static const char *behind_scheme(const char *text)
{
    if (strncasecmp(text, "https://", 8) == 0) {
        return text + 8;
    }
    return strncasecmp(text, "http://", 7) == 0 ? text + 7 : text;
}

bool search_domain_host(const char *domain, struct search_host *ret)
{
    const char *from = behind_scheme(domain);
    size_t len = strcspn(from, "/:?#");
    for (size_t i = 0; i < len; i++) {
        if (!is_host_byte(from[i])) {
            return false;
        }
    }
    *ret = (struct search_host){from, len};
    return len > 0 && len <= 253 && from[0] != '-' && from[0] != '.';
}

bool search_has_path(struct search_host domain)
{
    const char *behind = domain.data + domain.len;
    return behind[0] == '/' && behind[1] != '\0';
}

/* One with a user in front of its host may be there to mislead: https://good.example@bad.example. */
bool search_url_host(const char *url, size_t len, struct search_host *ret)
{
    const char *from = behind_scheme(url);
    if (from == url || len > SEARCH_URL_MAX) {
        return false;
    }
    for (size_t i = 0, character; i < len; i += character) {
        character = text_character(url + i, len - i);
        unsigned char c = (unsigned char)url[i];
        if (character == 0 || c <= 0x20 || c == 0x7F || c == '"' || c == '<' || c == '>') {
            return false;
        }
    }
    size_t authority = strcspn(from, "/?#\\");
    *ret = (struct search_host){from, strcspn(from, "/?#\\:")};
    return ret->len > 0 && memchr(from, '@', authority) == NULL;
}

/* example.com holds www.example.com, but not notexample.com. */
static bool holds(struct search_host domain, struct search_host host)
{
    if (host.len < domain.len ||
        strncasecmp(host.data + host.len - domain.len, domain.data, domain.len) != 0) {
        return false;
    }
    return host.len == domain.len || host.data[host.len - domain.len - 1] == '.';
}

bool search_is_wanted(const struct sg_query *query, struct search_host host)
{
    struct search_host domain;
    for (size_t i = 0; query->blocked != NULL && query->blocked[i] != NULL; i++) {
        if (search_domain_host(query->blocked[i], &domain) && !search_has_path(domain) &&
            holds(domain, host)) {
            return false;
        }
    }
    if (query->allowed == NULL || query->allowed[0] == NULL) {
        return true;
    }
    for (size_t i = 0; query->allowed[i] != NULL; i++) {
        if (!search_domain_host(query->allowed[i], &domain) || holds(domain, host)) {
            return true; /* what we cannot read is the core's to decide */
        }
    }
    return false;
}
