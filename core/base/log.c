/* One line of key=value, written at once. */
#include "base/log.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static enum sg_level level_least = SG_INFO; /* set before any thread */
static int log_fd = 2;

void log_set_level(enum sg_level level)
{
    level_least = level;
}

void log_set_fd(int fd)
{
    log_fd = fd;
}

bool log_wants(enum sg_level level)
{
    return level >= level_least;
}

static void put(struct log_line *line, const char *data, size_t len)
{
    size_t room = sizeof line->text - 1 - line->len; /* one byte is kept for the end of the line */
    if (len <= room) {
        memcpy(line->text + line->len, data, len);
        line->len += len;
    }
}

static void put_time(struct log_line *line)
{
    int64_t now = clock_unix_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm parts;
    char text[40], whole[64];
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts)); /* fits */
    int len = snprintf(whole, sizeof whole, "time=%s.%03dZ", text, (int)(now % 1000));
    put(line, whole, (size_t)len);
}

void log_begin(struct log_line *line, enum sg_level level, const char *event)
{
    static const char *const names[] = {"debug", "debug", "info", "warn", "error"};
    CHECK(level >= SG_DEBUG && level <= SG_ERROR);
    line->wanted = log_wants(level);
    line->len = 0;
    if (line->wanted) {
        put_time(line);
        log_text(line, "level", names[level]);
        log_text(line, "event", event);
    }
}

static bool is_plain(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '=') {
            return false;
        }
    }
    return value.len > 0;
}

static void put_quoted(struct log_line *line, struct str value)
{
    put(line, "\"", 1);
    for (size_t i = 0; i < value.len;) {
        unsigned char c = (unsigned char)value.data[i];
        size_t length = utf8_length(value.data + i, value.len - i);
        char escape[8];
        if (c == '"' || c == '\\') {
            escape[0] = '\\';
            escape[1] = (char)c;
            put(line, escape, 2);
        } else if (length > 1 && !(c == 0xC2 && (unsigned char)value.data[i + 1] < 0xA0)) {
            put(line, value.data + i, length); /* C1 controls are left to the escape below */
        } else if (c < 0x20 || c >= 0x7F) {
            (void)snprintf(escape, sizeof escape, "\\x%02x", c);
            put(line, escape, 4);
            length = 1;
        } else {
            put(line, (const char *)&value.data[i], 1);
        }
        i += length > 0 ? length : 1;
    }
    put(line, "\"", 1);
}

void log_str(struct log_line *line, const char *key, struct str value)
{
    if (!line->wanted) {
        return;
    }
    value.len = utf8_cut(value, LOG_VALUE_BYTES);
    size_t before = line->len;
    put(line, " ", 1);
    put(line, key, strlen(key));
    put(line, "=", 1);
    if (is_plain(value)) {
        put(line, value.data, value.len);
    } else {
        put_quoted(line, value);
    }
    if (line->len >= sizeof line->text - 2) { /* would not be whole */
        line->len = before;
    }
}

void log_text(struct log_line *line, const char *key, const char *value)
{
    if (value != NULL) {
        log_str(line, key, str_of(value));
    }
}

void log_int(struct log_line *line, const char *key, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)value);
    log_str(line, key, (struct str){text, (size_t)len});
}

void log_count(struct log_line *line, const char *key, int64_t value)
{
    if (value >= 0) {
        log_int(line, key, value);
    }
}

void log_end(struct log_line *line)
{
    if (!line->wanted) {
        return;
    }
    line->text[line->len++] = '\n';
    ssize_t done = write(log_fd, line->text, line->len);
    (void)done; /* a log that cannot be written must not stop the gateway */
}
