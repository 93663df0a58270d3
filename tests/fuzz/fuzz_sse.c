/* Fuzzes the reader of server-sent events: cut in two at a place that the first byte chooses, the stream gives the same
 * events as whole. */
#include "base/check.h"
#include "http/sse.h"

#define EVENT_BYTES_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_piece(struct sse_reader *reader, struct str piece, struct buf *out)
{
    int result = 1;
    while (result == 1) {
        struct sse_event event = {0};
        size_t used = 0;
        result = sse_reader_feed(reader, piece, &used, &event);
        CHECK(used <= piece.len);
        piece = (struct str){piece.data + used, piece.len - used};
        if (result == 1) {
            CHECK(event.data.len <= EVENT_BYTES_MAX);
            buf_append_str(out, event.name);
            buf_putc(out, '|');
            buf_append_str(out, event.data);
            buf_putc(out, ';');
        }
    }
    return result;
}

static int read_cut(struct str text, size_t cut, struct buf *out)
{
    struct sse_reader reader;
    sse_reader_init(&reader, EVENT_BYTES_MAX);
    int result = read_piece(&reader, (struct str){text.data, cut}, out);
    if (result == 0) {
        result = read_piece(&reader, (struct str){text.data + cut, text.len - cut}, out);
    }
    sse_reader_clear(&reader);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_CLEANUP struct buf whole = {0}, cut = {0};
    if (size == 0) {
        return 0;
    }
    struct str text = {(const char *)data + 1, size - 1};
    int first = read_cut(text, text.len, &whole);
    int second = read_cut(text, data[0] * text.len / 255, &cut);
    CHECK(first == second);
    CHECK(str_eq(buf_str(&whole), buf_str(&cut)));
    return 0;
}
