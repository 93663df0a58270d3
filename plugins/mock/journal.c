/* The journal. Its lock is held while a line is written to a file: short, and never across a function that waits. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int journal_open(struct journal *j, const char *path, struct sg_error *err)
{
    *j = (struct journal){.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (path == NULL || path[0] == '\0') {
        return 0;
    }
    j->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (j->fd < 0) {
        return sg->fail(err, SG_E_CONFIG, "cannot open the journal '%s': %s", path,
                        strerror(errno));
    }
    return 0;
}

void journal_close(struct journal *j)
{
    if (j->fd >= 0) {
        close(j->fd);
    }
    pthread_mutex_destroy(&j->lock);
    j->fd = -1;
}

void journal_write(struct journal *j, struct sg_call *call, const char *line, size_t len)
{
    if (j->fd < 0) {
        return;
    }
    struct iovec parts[2] = {{(void *)(uintptr_t)line, len}, {(void *)(uintptr_t) "\n", 1}};
    pthread_mutex_lock(&j->lock);
    ssize_t written = writev(j->fd, parts, 2);
    int error = errno;
    pthread_mutex_unlock(&j->lock);
    if (written != (ssize_t)len + 1) {
        sg->log(call, SG_WARN, "journal: a line could not be written: %s",
                written < 0 ? strerror(error) : "the file is full");
    }
}

void journal_printf(struct journal *j, struct sg_call *call, const char *format, ...)
{
    if (j->fd < 0) {
        return;
    }
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t used = len < 0 ? 0 : (size_t)len < sizeof line ? (size_t)len : sizeof line - 1;
    for (size_t i = 0; i < used; i++) { /* a line stays a line */
        line[i] = (unsigned char)line[i] < ' ' ? '?' : line[i];
    }
    journal_write(j, call, line, used);
}
