/* `when`: which texts a rule is for. Written plainly, the text must contain it; written /…/ (or /…/i, either case), a
 * POSIX extended regular expression must match somewhere. Empty or absent: any text. */
#ifndef MOCK_PATTERN_H
#define MOCK_PATTERN_H

#include <sandgate/plugin.h>

#include <regex.h>

struct pattern {
    const char *plain; /* NULL: any, unless is_regex */
    bool is_regex;
    regex_t regex;
};

/* `when` is borrowed for the pattern's life. SG_E_CONFIG where the expression is wrong; nothing to clear then. */
int pattern_init(struct pattern *, const char *when, struct sg_error *err);
void pattern_clear(struct pattern *);

/* Looks at the first 64 KiB of the text. */
bool pattern_matches(const struct pattern *, const char *text, size_t len);

/* The patterns of a list of rules, whose first member is their `when` (const char *). */
int patterns_new(const struct sg_list *rules, size_t item_size, struct pattern **ret,
                 struct sg_error *err);
void patterns_free(struct pattern *, size_t count); /* NULL is fine */

#endif
