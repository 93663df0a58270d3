/* HTTP/1.1 messages, line by line and then by lengths. */
#include "message.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void message_start(struct message *m)
{
    m->state = MESSAGE_HEAD;
    m->status = 0;
    m->chunked = m->begun = m->closes = false;
    m->left = 0;
    m->line_len = 0;
}

static const char *value_of(const char *line, const char *name)
{
    size_t len = strlen(name);
    if (strncasecmp(line, name, len) != 0 || line[len] != ':') {
        return NULL;
    }
    return line + len + 1 + strspn(line + len + 1, " \t");
}

static void head_end(struct message *m)
{
    m->state = m->chunked ? MESSAGE_CHUNK_LINE : m->left > 0 ? MESSAGE_BODY : MESSAGE_DONE;
    if (m->status >= 100 && m->status < 200) {
        message_start(m); /* the answer proper follows */
    }
}

static void head_line(struct message *m)
{
    const char *value;
    if (m->line_len == 0) {
        head_end(m);
    } else if (!m->begun) {
        m->begun = true;
        if (strncmp(m->line, "HTTP/1.", 7) == 0 && m->line_len >= 12) {
            m->status = (int)strtol(m->line + 9, NULL, 10);
        }
    } else if ((value = value_of(m->line, "content-length")) != NULL) {
        m->left = strtoull(value, NULL, 10);
    } else if ((value = value_of(m->line, "transfer-encoding")) != NULL) {
        m->chunked = strncasecmp(value, "chunked", 7) == 0;
    } else if ((value = value_of(m->line, "connection")) != NULL) {
        m->closes = strncasecmp(value, "close", 5) == 0;
    }
}

static void chunk_line(struct message *m)
{
    char *end;
    m->left = strtoull(m->line, &end, 16);
    m->state = end == m->line ? MESSAGE_BROKEN
               : m->left == 0 ? MESSAGE_TRAILER
                              : MESSAGE_CHUNK_DATA;
}

static void line_end(struct message *m)
{
    if (m->line_len > 0 && m->line[m->line_len - 1] == '\r') {
        m->line_len--;
    }
    m->line[m->line_len] = '\0';
    switch (m->state) {
    case MESSAGE_HEAD:
        head_line(m);
        break;
    case MESSAGE_CHUNK_LINE:
        chunk_line(m);
        break;
    case MESSAGE_CHUNK_END:
        m->state = m->line_len == 0 ? MESSAGE_CHUNK_LINE : MESSAGE_BROKEN;
        break;
    case MESSAGE_TRAILER:
        m->state = m->line_len == 0 ? MESSAGE_DONE : MESSAGE_TRAILER;
        break;
    default:
        m->state = MESSAGE_BROKEN;
    }
    m->line_len = 0;
}

static size_t take_line(struct message *m, const char *data, size_t len)
{
    const char *end = memchr(data, '\n', len);
    size_t taken = end != NULL ? (size_t)(end - data) : len;
    if (m->line_len + taken + 1 > sizeof m->line) {
        m->state = MESSAGE_BROKEN;
        return len;
    }
    memcpy(m->line + m->line_len, data, taken);
    m->line_len += taken;
    if (end == NULL) {
        return len;
    }
    line_end(m);
    return taken + 1;
}

static size_t take_body(struct message *m, const char *data, size_t len, message_body_fn *body,
                        void *arg)
{
    size_t taken = len < m->left ? len : (size_t)m->left;
    body(arg, data, taken);
    m->left -= taken;
    if (m->left == 0) {
        m->state = m->chunked ? MESSAGE_CHUNK_END : MESSAGE_DONE;
    }
    return taken;
}

size_t message_feed(struct message *m, const char *data, size_t len, message_body_fn *body,
                    void *arg)
{
    size_t at = 0;
    while (at < len && m->state != MESSAGE_DONE && m->state != MESSAGE_BROKEN) {
        bool in_body = m->state == MESSAGE_BODY || m->state == MESSAGE_CHUNK_DATA;
        at += in_body ? take_body(m, data + at, len - at, body, arg)
                      : take_line(m, data + at, len - at);
    }
    return at;
}
