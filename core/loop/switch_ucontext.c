/* Changing stacks with <ucontext.h>: for processors without an own switch, and for a test of it (SANDGATE_UCONTEXT).
 * Slower (each switch is a system call for the signal mask), otherwise the same. */
#include "loop/switch.h"

#if defined(SANDGATE_UCONTEXT) || !defined(__x86_64__)

#include "base/check.h"

#include <stdint.h>
#include <ucontext.h>

struct beginning { /* at the top of a new stack */
    ucontext_t context;
    void (*entry)(void *);
    void *arg;
};

/* makecontext() passes ints only: the pointer comes in two halves. */
static void stack_begin(unsigned high, unsigned low)
{
    struct beginning *beginning = (void *)(((uintptr_t)high << 16 << 16) | low);
    beginning->entry(beginning->arg);
    CHECK(!"the end of a stack");
}

void context_init(struct context *context, void *base, size_t size, void (*entry)(void *),
                  void *arg)
{
    size_t room = (size - sizeof(struct beginning)) & ~(size_t)63;
    struct beginning *beginning = (void *)((char *)base + room);
    CHECK(getcontext(&beginning->context) == 0);
    beginning->entry = entry;
    beginning->arg = arg;
    beginning->context.uc_stack.ss_sp = base;
    beginning->context.uc_stack.ss_size = room;
    beginning->context.uc_link = NULL;
    uintptr_t at = (uintptr_t)beginning;
    makecontext(&beginning->context, (void (*)(void))stack_begin, 2, (unsigned)(at >> 16 >> 16),
                (unsigned)at);
    context->saved = &beginning->context;
}

/* Not instrumented: ThreadSanitizer has been told of the switch already, and would count this function's entry on one
 * stack and its return on the other. */
__attribute__((no_sanitize_thread)) void context_switch(struct context *from,
                                                        const struct context *to)
{
    ucontext_t here;
    from->saved = &here; /* lives on the stack that waits */
    CHECK(swapcontext(&here, to->saved) == 0);
}

#else
typedef int switch_ucontext_unused; /* a translation unit is never empty */
#endif
