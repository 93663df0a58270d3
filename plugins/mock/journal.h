/* A file to which every operation appends one line, by one write(2), so that a test can count what happened. */
#ifndef MOCK_JOURNAL_H
#define MOCK_JOURNAL_H

#include <sandgate/plugin.h>

#include <pthread.h>

struct journal {
    int fd; /* -1: none wanted */
    pthread_mutex_t lock;
};

/* `path` NULL or empty: no journal. SG_E_CONFIG where it cannot be opened. */
int journal_open(struct journal *, const char *path, struct sg_error *err);
void journal_close(struct journal *);

/* The line's break is added. A failure is logged; it changes nothing else. */
void journal_write(struct journal *, struct sg_call *, const char *line, size_t len);
void journal_printf(struct journal *, struct sg_call *, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
