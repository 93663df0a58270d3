/* Comparing and trimming borrowed bytes. */
#include "base/str.h"

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower((unsigned char)a.data[i]) != lower((unsigned char)b.data[i])) {
            return false;
        }
    }
    return true;
}

struct str str_trim(struct str a)
{
    while (a.len > 0 && (a.data[0] == ' ' || a.data[0] == '\t')) {
        a.data++;
        a.len--;
    }
    while (a.len > 0 && (a.data[a.len - 1] == ' ' || a.data[a.len - 1] == '\t')) {
        a.len--;
    }
    return a;
}
