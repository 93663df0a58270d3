/* Matching of `when`. */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

#define MATCHED_BYTES_MAX 65536

int pattern_init(struct pattern *p, const char *when, struct sg_error *err)
{
    *p = (struct pattern){0};
    size_t len = when == NULL ? 0 : strlen(when);
    if (len == 0) {
        return 0;
    }
    bool nocase = len >= 3 && when[len - 1] == 'i' && when[len - 2] == '/';
    size_t end = len - (nocase ? 2 : 1); /* of the closing slash */
    if (when[0] != '/' || end < 2 || when[end] != '/') {
        p->plain = when;
        return 0;
    }
    char *expression = strndup(when + 1, end - 1);
    if (expression == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory for 'when'");
    }
    int wrong = regcomp(&p->regex, expression, REG_EXTENDED | (nocase ? REG_ICASE : 0));
    free(expression);
    if (wrong != 0) {
        char why[128];
        regerror(wrong, &p->regex, why, sizeof why);
        return sg->fail(err, SG_E_CONFIG,
                        "'when' %s is not a POSIX extended regular expression: %s", when, why);
    }
    p->is_regex = true;
    return 0;
}

void pattern_clear(struct pattern *p)
{
    if (p->is_regex) {
        regfree(&p->regex);
    }
    *p = (struct pattern){0};
}

bool pattern_matches(const struct pattern *p, const char *text, size_t len)
{
    if (len > MATCHED_BYTES_MAX) {
        len = MATCHED_BYTES_MAX;
    }
    if (p->is_regex) {
        regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)len};
        return regexec(&p->regex, len == 0 ? "" : text, 1, &range, REG_STARTEND) == 0;
    }
    return p->plain == NULL || (len > 0 && memmem(text, len, p->plain, strlen(p->plain)) != NULL);
}

int patterns_new(const struct sg_list *rules, size_t item_size, struct pattern **ret,
                 struct sg_error *err)
{
    struct pattern *patterns = calloc(rules->count + 1, sizeof *patterns);
    if (patterns == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory for the rules");
    }
    for (size_t i = 0; i < rules->count; i++) {
        const char *const *when =
            (const char *const *)(const void *)((const char *)rules->items + i * item_size);
        int code = pattern_init(&patterns[i], *when, err);
        if (code != 0) {
            patterns_free(patterns, i);
            return code;
        }
    }
    *ret = patterns;
    return 0;
}

void patterns_free(struct pattern *patterns, size_t count)
{
    for (size_t i = 0; patterns != NULL && i < count; i++) {
        pattern_clear(&patterns[i]);
    }
    free(patterns);
}
