/* A run that goes on in a container: what sandbox_run.c and sandbox_shell.c share. */
#ifndef MOCK_ACTIVITY_H
#define MOCK_ACTIVITY_H

#include "sandbox.h"

struct activity {
    struct sandbox *sandbox;
    struct sg_call *call;
    struct container *container;
    const char *handle;
    bool is_shell;
    int64_t timeout_ms; /* 0: none */
    int64_t begun_ms;   /* clock_ms() */
    int64_t slept_ms;   /* what was waited for; the clock may say more */
};

#define INTERRUPTED (-1) /* internal: the run ends because it was interrupted */

/* 0, or why the run shall end now: INTERRUPTED, or a code of sg->fail(). */
int activity_emit(struct activity *, enum sg_out, const char *data, size_t len,
                  struct sg_error *err);
/* SG_OUT_STATUS: how a shell command ended. */
int activity_exit(struct activity *, int64_t status, struct sg_error *err);

/* sandbox_shell.c: the few words of a shell, to their end. */
int shell_run(struct activity *, const struct sg_run *, struct sg_error *err);

#endif
