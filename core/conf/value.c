/* Single values: numbers, durations, sizes, and the words for them. */
#include "conf/internal.h"

#include "base/check.h"

#include <stdalign.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Ascending, so that the last that divides is the shortest way to write a value. */
static const struct unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
static const struct unit size_units[] = {{"B", 1},
                                         {"KiB", (uint64_t)1 << 10},
                                         {"MiB", (uint64_t)1 << 20},
                                         {"GiB", (uint64_t)1 << 30},
                                         {"TiB", (uint64_t)1 << 40}};

/* Decimal digits without needless zeros in front (YAML 1.1 reads 010 as 8, people as 10). Returns their number. */
static size_t digits_read(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    size_t len = 0;
    for (; text[len] >= '0' && text[len] <= '9'; len++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[len] - '0'), &value)) {
            return 0;
        }
    }
    if (len == 0 || (len > 1 && text[0] == '0')) {
        return 0;
    }
    *ret = value;
    return len;
}

static bool amount_read(const char *text, const struct unit *units, size_t count, uint64_t *ret)
{
    uint64_t number = 0, value = 0;
    size_t len = digits_read(text, &number);
    for (size_t i = 0; len > 0 && i < count; i++) {
        if (strcmp(text + len, units[i].name) == 0) {
            if (__builtin_mul_overflow(number, units[i].factor, &value)) {
                return false;
            }
            *ret = value;
            return true;
        }
    }
    return false;
}

static const char *amount_text(uint64_t amount, const struct unit *units, size_t count,
                               struct arena *arena)
{
    size_t best = 0;
    for (size_t i = 0; i < count && amount != 0; i++) {
        if (amount % units[i].factor == 0) {
            best = i;
        }
    }
    return arena_printf(arena, "%llu%s", (unsigned long long)(amount / units[best].factor),
                        units[best].name);
}

bool conf_duration(const char *text, int64_t *ret_ms)
{
    uint64_t ms = 0;
    if (!amount_read(text, duration_units, COUNT_OF(duration_units), &ms) || ms > INT64_MAX) {
        return false;
    }
    *ret_ms = (int64_t)ms;
    return true;
}

bool conf_size(const char *text, uint64_t *ret_bytes)
{
    return amount_read(text, size_units, COUNT_OF(size_units), ret_bytes);
}

const char *conf_duration_text(int64_t ms, struct arena *arena)
{
    CHECK(ms >= 0);
    return ms == 0 ? "0s"
                   : amount_text((uint64_t)ms, duration_units, COUNT_OF(duration_units), arena);
}

const char *conf_size_text(uint64_t bytes, struct arena *arena)
{
    return amount_text(bytes, size_units, COUNT_OF(size_units), arena);
}

/* What people write who mean one of our units, or the beginning of it: "sec", "mb", "M". */
static const struct word {
    const char *text, *unit;
} duration_words[] = {{"minutes", "m"}, {"mins", "m"},    {"seconds", "s"},      {"secs", "s"},
                      {"hours", "h"},   {"hrs", "h"},     {"days", "d"},         {"ms", "ms"},
                      {"msecs", "ms"},  {"millis", "ms"}, {"milliseconds", "ms"}},
  size_words[] = {{"bytes", "B"}, {"kb", "KiB"},  {"kib", "KiB"}, {"mb", "MiB"}, {"mib", "MiB"},
                  {"gb", "GiB"},  {"gib", "GiB"}, {"tb", "TiB"},  {"tib", "TiB"}};

static const char *unit_meant(const char *text, const struct word *words, size_t count)
{
    struct str written = str_trim(str_of(text));
    for (size_t i = 0; i < count && written.len > 0; i++) {
        struct str word = str_of(words[i].text);
        word.len = written.len < word.len ? written.len : word.len;
        if (str_eq_nocase(word, written)) {
            return words[i].unit;
        }
    }
    return NULL;
}

const char *amount_advice(uint32_t option_type, const char *text, struct arena *arena)
{
    uint64_t number = 0;
    bool is_size = option_type == SG_SIZE;
    size_t len = is_size || option_type == SG_DURATION ? digits_read(text, &number) : 0;
    if (len == 0) {
        return "";
    }
    if (text[len] == '\0') {
        return arena_printf(arena, "; its unit is missing, as in %s%s", text,
                            is_size ? "MiB" : "s");
    }
    const char *unit = is_size ? unit_meant(text + len, size_words, COUNT_OF(size_words))
                               : unit_meant(text + len, duration_words, COUNT_OF(duration_words));
    const char *advised = unit == NULL ? "" : arena_printf(arena, "%.*s%s", (int)len, text, unit);
    int64_t ms = 0;
    bool is_good =
        is_size ? conf_size(advised, &number) && number <= INT64_MAX : conf_duration(advised, &ms);
    return is_good ? arena_printf(arena, "; write %s", advised) : "";
}

bool value_is_bool(const char *text, bool *ret)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (str_eq_nocase(str_of(text), str_of(words[i]))) {
            *ret = i % 2 == 1;
            return true;
        }
    }
    return false;
}

bool value_is_int(const char *text, int64_t *ret)
{
    bool negative = text[0] == '-';
    const char *digits = text + (negative || text[0] == '+');
    uint64_t number = 0;
    size_t len = digits_read(digits, &number);
    if (len == 0 || digits[len] != '\0' || number > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    *ret = negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

struct type {
    const char *words;
    size_t size, alignment;
};

static const struct type types[] = {
    [SG_STRING] = {"text", sizeof(const char *), alignof(const char *)},
    [SG_BOOL] = {"true or false", sizeof(bool), alignof(bool)},
    [SG_INT] = {"a whole number", sizeof(int64_t), alignof(int64_t)},
    [SG_DURATION] = {"a duration such as 30s", sizeof(int64_t), alignof(int64_t)},
    [SG_SIZE] = {"a size such as 64MiB", sizeof(uint64_t), alignof(uint64_t)},
    [SG_CHOICE] = {"one of its choices", sizeof(const char *), alignof(const char *)},
    [SG_STRINGS] = {"a list of texts", sizeof(const char *const *), alignof(const char *const *)},
    [SG_MAP] = {"a map of names to texts", sizeof(struct sg_map), alignof(struct sg_map)},
    [SG_LIST] = {"a list of maps", sizeof(struct sg_list), alignof(struct sg_list)},
};

const char *conf_type_words(uint32_t option_type)
{
    return option_type < COUNT_OF(types) ? types[option_type].words : NULL;
}

size_t conf_type_size(uint32_t option_type)
{
    return option_type < COUNT_OF(types) ? types[option_type].size : 0;
}

size_t conf_type_alignment(uint32_t option_type)
{
    return option_type < COUNT_OF(types) ? types[option_type].alignment : 0;
}
