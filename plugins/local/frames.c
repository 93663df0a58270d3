/* Reading and writing packets of the control socket. */
#include "frames.h"

#include <string.h>

/* Lower case, digits, and what else type names are made of: no quotes, no control characters. */
static bool mime_is_valid(const char *mime, size_t len)
{
    size_t slashes = 0;
    for (size_t i = 0; i < len; i++) {
        char c = mime[i];
        slashes += c == '/';
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr("/.+-_", c) == NULL)) {
            return false;
        }
    }
    return len >= 3 && len <= FRAME_MIME_MAX && slashes == 1 && mime[0] != '/' &&
           mime[len - 1] != '/';
}

/* Takes one byte from the body's front. */
static bool take_byte(struct frame *frame, unsigned *ret)
{
    if (frame->body_len == 0) {
        return false;
    }
    *ret = (unsigned char)frame->body[0];
    frame->body++;
    frame->body_len--;
    return true;
}

static bool take_mime(struct frame *frame)
{
    unsigned len = 0;
    if (!take_byte(frame, &len) || frame->body_len < len || !mime_is_valid(frame->body, len)) {
        return false;
    }
    frame->mime = frame->body;
    frame->mime_len = len;
    frame->body += len;
    frame->body_len -= len;
    return true;
}

/* Nothing but one byte below `end`. */
static bool take_number(struct frame *frame, unsigned end)
{
    return take_byte(frame, &frame->number) && frame->number < end && frame->body_len == 0;
}

bool frame_read(const void *packet, size_t len, struct frame *ret)
{
    const unsigned char *bytes = packet;
    if (len < FRAME_HEAD_BYTES || len > FRAME_BYTES_MAX || (bytes[1] & ~FLAG_MORE) != 0) {
        return false;
    }
    struct frame frame = {.kind = (enum frame_kind)bytes[0],
                          .more = (bytes[1] & FLAG_MORE) != 0,
                          .body = (const char *)bytes + FRAME_HEAD_BYTES,
                          .body_len = len - FRAME_HEAD_BYTES};
    memcpy(&frame.nonce, bytes + 2, sizeof frame.nonce);
    bool valid = false;
    switch (bytes[0]) {
    case FRAME_HELLO:
    case FRAME_STDOUT:
    case FRAME_STDERR:
        valid = true;
        break;
    case FRAME_FORM:
        valid = take_mime(&frame);
        break;
    case FRAME_SYNC:
    case FRAME_LOST:
        valid = frame.body_len == 0;
        break;
    case FRAME_VALUE:
    case FRAME_RESTARTED:
    case FRAME_FINISHED:
        valid = take_number(&frame, 2);
        break;
    case FRAME_EXITED:
        valid = take_number(&frame, 256);
        break;
    case FRAME_REFUSED:
        valid = take_number(&frame, REFUSALS);
        break;
    case FRAME_EXCEPTION:
        valid = take_byte(&frame, &frame.number) && frame.number < EXCEPTION_FIELDS;
        break;
    default:
        break;
    }
    if (valid) {
        *ret = frame;
    }
    return valid;
}

void frame_head(uint8_t head[FRAME_HEAD_BYTES], enum frame_kind kind, bool more, uint64_t nonce)
{
    head[0] = (uint8_t)kind;
    head[1] = more ? FLAG_MORE : 0;
    memcpy(head + 2, &nonce, sizeof nonce);
}
