/* Changing stacks: the few lines that differ between processors. A context is what a switched-out piece of code left on
 * its own stack; a context that was switched to is used up. Which implementation is built is decided in the
 * implementations: switch_x86_64.S, or switch_ucontext.c for every other processor and with -DSANDGATE_UCONTEXT. */
#ifndef SANDGATE_LOOP_SWITCH_H
#define SANDGATE_LOOP_SWITCH_H

#include <stddef.h>

struct context {
    void
        *saved; /* the stack pointer, or the ucontext_t, both on the stack of the code that waits */
};

/* Prepares `context` so that the first switch to it calls entry(arg) on the stack [base, base + size). `entry` must
 * never return. */
void context_init(struct context *context, void *base, size_t size, void (*entry)(void *),
                  void *arg);

/* Leaves the running code, which continues when someone switches to `from`. */
void context_switch(struct context *from, const struct context *to);

#endif
