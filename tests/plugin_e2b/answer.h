/* What the tests of the interpreter's answer share: an answer given in pieces, and what was emitted as expected.txt has it. */
#ifndef TESTS_E2B_ANSWER_H
#define TESTS_E2B_ANSWER_H

#include "event.h"
#include "fake_host.h"

#include "cunit_main.h"

#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define MIB ((size_t)1 << 20)
#define SHOWN_MAX 400 /* see derive.py */

const struct sg_host *sg;

/* ---- one answer ---- */

struct answer {
    struct sg_call *call;
    struct stream stream;
    size_t piece; /* bytes given at a time; 0: all at once; SIZE_MAX: of any number */
    uint32_t seed;
};

static inline void answer_begin(struct answer *a)
{
    sg = host_table();
    a->call = call_new();
    a->stream = (struct stream){.call = a->call};
}

static inline size_t next_piece(struct answer *a, size_t left)
{
    size_t part = a->piece == 0 ? left : a->piece;
    if (a->piece == SIZE_MAX) { /* most are short, some long */
        a->seed = a->seed * 1664525u + 1013904223u;
        part = 1 + (a->seed >> 8) % ((a->seed >> 28) == 0 ? 70000 : 90);
    }
    return part < left ? part : left;
}

/* Each piece stands in memory of its own size, so that reading past it is seen. */
static inline int give(struct answer *a, const char *data, size_t len)
{
    int result = 0;
    for (size_t at = 0, part; at < len && result == 0; at += part) {
        part = next_piece(a, len - at);
        char *piece = malloc(part);
        memcpy(piece, data + at, part);
        result = stream_take(&a->stream, piece, part, call_error(a->call));
        free(piece);
    }
    return result;
}

static inline int answer_end(struct answer *a)
{
    return stream_end(&a->stream, call_error(a->call));
}

static inline void answer_free(struct answer *a)
{
    stream_clear(&a->stream);
    call_free(a->call);
}

static inline int take_all(struct answer *a, const char *text)
{
    *a = (struct answer){.piece = 0};
    answer_begin(a);
    int result = give(a, text, strlen(text));
    return result != 0 ? result : answer_end(a);
}

/* ---- what was emitted, as expected.txt writes it ---- */

static inline void show_data(FILE *out, const struct output *output)
{
    if (output->len > SHOWN_MAX) {
        uint64_t hash = 0xCBF29CE484222325u;
        for (size_t i = 0; i < output->len; i++) {
            hash = (hash ^ (unsigned char)output->data[i]) * 0x100000001B3u;
        }
        fprintf(out, "#%zu %016llx", output->len, (unsigned long long)hash);
        return;
    }
    for (size_t i = 0; i < output->len; i++) {
        unsigned char c = (unsigned char)output->data[i];
        if (c == '\\') {
            fputs("\\\\", out);
        } else if (c >= 32 && c < 127) {
            fputc(c, out);
        } else {
            fprintf(out, "\\x%02x", c);
        }
    }
}

static inline void show_events(FILE *out, const struct sg_call *call)
{
    static const char *const names[] = {[SG_OUT_LOG_OUT] = "out",
                                        [SG_OUT_LOG_ERR] = "err",
                                        [SG_OUT_RESULT] = "result",
                                        [SG_OUT_STATUS] = "status",
                                        [SG_OUT_EXCEPTION] = "exception"};
    for (size_t i = 0; i < call->outputs_count; i++) {
        fprintf(out, "%s ", names[call->outputs[i].kind]);
        show_data(out, &call->outputs[i]);
        fputc('\n', out);
    }
}

static inline char *show(const struct answer *a, const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const struct stream *s = &a->stream;
    fprintf(out, "= %s%s%s%s%s", name, s->has_begun ? " begun" : "", s->has_ended ? " ended" : "",
            s->was_restarted ? " restarted" : "", s->is_kept_alive ? " alive" : "");
    if (s->unreadable_count > 0) {
        fprintf(out, " unreadable:%zu", s->unreadable_count);
    }
    fputc('\n', out);
    show_events(out, a->call);
    fclose(out);
    return text;
}

static inline void expect_events(const struct answer *a, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    show_events(out, a->call);
    fclose(out);
    CU_ASSERT_STRING_EQUAL(text, expected);
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "got\n%sbut expected\n%s", text, expected);
    }
    free(text);
}

static inline void expect(const char *lines, const char *expected)
{
    struct answer a;
    CU_ASSERT_EQUAL(take_all(&a, lines), 0);
    expect_events(&a, expected);
    answer_free(&a);
}

#endif
