/* Finding the next byte of a JSON string that needs a look, 16 at a time where SSE2 is there and 8 at a time elsewhere.
 * Private to json*.c. */
#ifndef SANDGATE_BASE_JSON_STRING_H
#define SANDGATE_BASE_JSON_STRING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(SANDGATE_PORTABLE)
#include <emmintrin.h>
#define JSON_SSE2 1
#else
#define JSON_SSE2 0
#endif

/* Tells where a string may hide something: quote, backslash, a control character, or the start of a longer character. */
static inline bool json_byte_special(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
}

static inline bool json_byte_ends(unsigned char c)
{
    return c == '"' || c == '\\';
}

#if JSON_SSE2

/* Signed comparison takes bytes from 0x80 on as below 0x20: one instruction finds both. */
static inline __m128i json_special_of(const char *p)
{
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i low = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    return _mm_or_si128(low, _mm_or_si128(quote, backslash));
}

/* The first special byte from p on, or `end`. */
static inline const char *json_special_find(const char *p, const char *end)
{
    while (end - p >= 16) {
        unsigned mask = (unsigned)_mm_movemask_epi8(json_special_of(p));
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
        p += 16;
        while (end - p >= 64) { /* a long text: four at once */
            __m128i a = _mm_or_si128(json_special_of(p), json_special_of(p + 16));
            __m128i b = _mm_or_si128(json_special_of(p + 32), json_special_of(p + 48));
            if (_mm_movemask_epi8(_mm_or_si128(a, b)) != 0) {
                break;
            }
            p += 64;
        }
    }
    while (p < end && !json_byte_special((unsigned char)*p)) {
        p++;
    }
    return p;
}

/* In a checked text: the first quote or backslash from p on. */
static inline const char *json_ends_find(const char *p, const char *end)
{
    while (end - p >= 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
        __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
        unsigned mask = (unsigned)_mm_movemask_epi8(_mm_or_si128(quote, backslash));
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
        p += 16;
    }
    while (p < end && !json_byte_ends((unsigned char)*p)) {
        p++;
    }
    return p;
}

#else

#define JSON_ONES UINT64_C(0x0101010101010101)
#define JSON_HIGHS UINT64_C(0x8080808080808080)

/* Eight bytes in one word: non-zero if one of them is zero (exact, as nothing but the answer "some" is asked). */
static inline uint64_t json_zero_in(uint64_t word)
{
    return (word - JSON_ONES) & ~word & JSON_HIGHS;
}

static inline uint64_t json_word_at(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline const char *json_special_find(const char *p, const char *end)
{
    while (end - p >= 8) {
        uint64_t word = json_word_at(p);
        uint64_t low = (word - JSON_ONES * 0x20) & ~word & JSON_HIGHS;
        uint64_t quote = json_zero_in(word ^ (JSON_ONES * '"'));
        uint64_t backslash = json_zero_in(word ^ (JSON_ONES * '\\'));
        if ((low | quote | backslash | (word & JSON_HIGHS)) != 0) {
            break;
        }
        p += 8;
    }
    while (p < end && !json_byte_special((unsigned char)*p)) {
        p++;
    }
    return p;
}

static inline const char *json_ends_find(const char *p, const char *end)
{
    while (end - p >= 8) {
        uint64_t word = json_word_at(p);
        if ((json_zero_in(word ^ (JSON_ONES * '"')) | json_zero_in(word ^ (JSON_ONES * '\\'))) !=
            0) {
            break;
        }
        p += 8;
    }
    while (p < end && !json_byte_ends((unsigned char)*p)) {
        p++;
    }
    return p;
}

#endif

/* In a checked text: past the closing quote of the string that starts at p. */
static inline const char *json_string_skip(const char *p, const char *end)
{
    p = json_ends_find(p + 1, end);
    while (*p == '\\') {
        p = json_ends_find(p + 2, end);
    }
    return p + 1;
}

static inline bool json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

#endif
