/* Drives the translation between APIs as the gateway does: a request there, an answer in pieces of `piece` bytes back
 * (0: whole). Without CUnit, so that fuzzers use it too. */
#ifndef TESTS_SUPPORT_TRANSLATE_BENCH_H
#define TESTS_SUPPORT_TRANSLATE_BENCH_H

#include "base/check.h"
#include "translate/translate.h"

#include <stdio.h>
#include <stdlib.h>

#define TRANSLATE_ID "0123abcd"

static const struct translate_pair {
    const char *from, *to;
} translate_pairs[] = {
    {"chat", "messages"}, {"responses", "chat"}, {"messages", "chat"}, {"responses", "messages"}};

static inline struct translation *translate_open(struct translate_pair pair,
                                                 const char *const *drop)
{
    const struct translation_options options = {
        .from = pair.from, .to = pair.to, .id = TRANSLATE_ID, .drop = drop};
    return translation_new(&options);
}

static inline int translate_request(struct translate_pair pair, const char *const *drop,
                                    struct str body, struct buf *out, struct sg_error *err)
{
    struct translation *translation = translate_open(pair, drop);
    int code = translation_request(translation, body, out, err);
    translation_free(translation);
    return code;
}

static inline int translate_answer(struct translate_pair pair, bool is_stream, struct str bytes,
                                   size_t piece, struct buf *out, struct sg_error *err)
{
    struct translation *translation = translate_open(pair, NULL);
    int code = 0;
    translation_answer_begin(translation, is_stream);
    while (code == 0 && bytes.len > 0) {
        size_t len = piece == 0 || bytes.len < piece ? bytes.len : piece;
        char *copy = check_alloc(malloc(len)); /* so that reading past a piece is seen */
        memcpy(copy, bytes.data, len);
        code = translation_answer_feed(translation, (struct str){copy, len}, out, err);
        free(copy);
        bytes = (struct str){bytes.data + len, bytes.len - len};
    }
    code = code == 0 ? translation_answer_end(translation, out, err) : code;
    translation_free(translation);
    return code;
}

#endif
