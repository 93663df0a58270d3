/* UTF-8: checking, writing, cutting. */
#include "base/utf8.h"

bool utf8_valid(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t length = utf8_length(text.data + i, text.len - i);
        if (length == 0) {
            return false;
        }
        i += length;
    }
    return true;
}

size_t utf8_put(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t utf8_cut(struct str text, size_t max)
{
    if (text.len <= max) {
        return text.len;
    }
    while (max > 0 && ((unsigned char)text.data[max] & 0xC0) == 0x80) {
        max--;
    }
    return max;
}
