/* Fuzzes the readers of request heads, paths and chunked bodies: what was accepted must hold together. */
#include "base/check.h"
#include "http/head.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Accepted parts lie within the head and hold nothing that could end a line. */
static void check_head(struct str text, const struct http_head *head)
{
    CHECK(!head->chunked || head->content_length < 0);
    CHECK(head->count <= LIMIT_HEADER_COUNT);
    for (size_t i = 0; i < head->count; i++) {
        CHECK(head->fields[i].name.data >= text.data);
        CHECK(head->fields[i].value.data + head->fields[i].value.len <= text.data + text.len);
        CHECK(http_token_valid(head->fields[i].name));
        CHECK(http_value_valid(head->fields[i].value));
    }
    CHECK(head->path.len > 0 && (head->path.data[0] == '/' || head->path.data[0] == '*'));
    CHECK(head->minor == 0 || head->host.data != NULL);
}

static void read_path(struct str path)
{
    char *out = check_alloc(malloc(path.len + 1));
    size_t len = 0;
    struct sg_error err = {0};
    if (http_path_decode(path, out, &len, &err) == 0) {
        CHECK(len <= path.len && out[0] == '/' && strlen(out) == len);
        CHECK(strstr(out, "//") == NULL && strstr(out, "/../") == NULL);
    }
    free(out);
}

/* The body read whole and byte by byte comes out the same. */
static void read_chunks(struct str text)
{
    uint64_t bytes[2] = {0, 0};
    int results[2] = {0, 0};
    for (size_t pass = 0; pass < 2; pass++) {
        struct http_chunks chunks = {0};
        size_t at = 0;
        while (at < text.len && results[pass] == 0) {
            struct str span, piece = {text.data + at, pass == 0 ? text.len - at : 1};
            size_t used = 0;
            results[pass] = http_chunks_feed(&chunks, piece, &used, &span);
            bytes[pass] += span.len;
            at += used;
        }
    }
    CHECK(results[0] == results[1]);
    CHECK(bytes[0] == bytes[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    size_t length = http_head_length(text);
    CHECK(length <= size);
    struct sg_error err = {0};
    struct http_head head;
    struct str whole = {text.data, length};
    if (length > 0 && http_head_parse(whole, &head, &err) == 0) {
        check_head(whole, &head);
        read_path(head.path);
    }
    read_path(text);
    read_chunks((struct str){text.data + length, size - length});
    return 0;
}
