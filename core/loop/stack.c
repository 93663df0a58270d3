/* Stacks of fibers: 256 KiB and a guard page below, of which the kernel gives only the pages that are touched. Unused
 * ones are kept, the last used first, since its pages are still in the caches. */
#include "loop/internal.h"

#include "base/check.h"
#include "loop/sanitize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t guard_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct stack *stack_map(struct sg_error *err)
{
    size_t size = guard_bytes() + FIBER_STACK_BYTES;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        (void)error_set(err, SG_E_LIMIT, "no stack for one more fiber: %s", strerror(errno));
        return NULL;
    }
    if (mprotect(memory, guard_bytes(), PROT_NONE) != 0) { /* the kernel's limit of mappings */
        (void)error_set(err, SG_E_LIMIT, "no guard page for one more fiber: %s (vm.max_map_count)",
                        strerror(errno));
        CHECK(munmap(memory, size) == 0);
        return NULL;
    }
    struct stack *stack = check_alloc(calloc(1, sizeof *stack));
    stack->base = memory + guard_bytes();
#if defined(SANDGATE_VALGRIND)
    stack->valgrind_id = VALGRIND_STACK_REGISTER(stack->base, stack->base + FIBER_STACK_BYTES);
#endif
    return stack;
}

static void stack_unmap(struct stack *stack)
{
#if defined(SANDGATE_VALGRIND)
    VALGRIND_STACK_DEREGISTER(stack->valgrind_id);
#endif
    CHECK(munmap(stack->base - guard_bytes(), guard_bytes() + FIBER_STACK_BYTES) == 0);
    free(stack);
}

struct stack *stack_get(struct stack_pool *pool, struct sg_error *err)
{
    struct stack *stack = pool->kept;
    if (stack != NULL) {
        pool->kept = stack->next;
        pool->kept_count--;
        return stack;
    }
    stack = stack_map(err);
    pool->mapped_count += stack != NULL;
    return stack;
}

void stack_put(struct stack_pool *pool, struct stack *stack)
{
    sanitize_stack_clean(stack->base, FIBER_STACK_BYTES);
    if (pool->kept_count == STACKS_KEPT_MAX) {
        stack_unmap(stack);
        pool->mapped_count--;
        return;
    }
    stack->next = pool->kept;
    pool->kept = stack;
    pool->kept_count++;
}

void stack_pool_clear(struct stack_pool *pool)
{
    CHECK(pool->kept_count == pool->mapped_count); /* none is in use */
    while (pool->kept != NULL) {
        struct stack *next = pool->kept->next;
        stack_unmap(pool->kept);
        pool->kept = next;
    }
    pool->kept_count = 0;
    pool->mapped_count = 0;
}
