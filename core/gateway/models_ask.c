/* The lists of models of several upstreams, asked for side by side: one that is silent costs its time once, and not on top of
 * the others'. Fibers of the request's loop take one upstream after the other; the request's own is one of them, so that all
 * are asked where no other can be had. */
#include "gateway/model_list.h"
#include "gateway/upstream.h"

enum { ASKERS_MAX = 16 }; /* of one request, its own fiber included */

struct asking;

struct asker { /* another fiber than the request's */
    struct asking *asking;
    struct fiber *fiber; /* NULL: it has ended */
};

struct asking { /* all on one loop */
    struct request *request;
    struct asked_list *lists;
    size_t count, next; /* next: the first that nobody has taken */
    struct fiber *own;
    bool is_waiting; /* the request's own fiber, for the others */
    struct asker others[ASKERS_MAX - 1];
    size_t others_left;
};

static void ask_on(struct asking *asking)
{
    while (asking->next < asking->count && !fiber_is_cancelled(fiber_self())) {
        struct asked_list *one = &asking->lists[asking->next++];
        one->code = model_list_of(asking->request, one->upstream, &one->list, &one->err);
    }
}

static void other_run(void *arg)
{
    struct asker *asker = arg;
    struct asking *asking = asker->asking;
    ask_on(asking);
    asker->fiber = NULL;
    asking->others_left--;
    if (asking->others_left == 0 && asking->is_waiting) {
        fiber_wake(asking->own);
    }
}

static void others_start(struct asking *asking)
{
    struct sg_error ignored = {0};
    size_t wanted = asking->count < ASKERS_MAX ? asking->count : ASKERS_MAX;
    for (size_t i = 0; i + 1 < wanted; i++) {
        struct asker *asker = &asking->others[i];
        asker->asking = asking;
        if (fiber_start(loop_self(), "models", other_run, asker, &asker->fiber, &ignored) != 0) {
            return; /* those that there are ask for all */
        }
        fiber_set_deadline(asker->fiber, fiber_deadline(asking->own));
        asking->others_left++;
    }
}

/* They work on what is this request's: none outlives it, whoever leaves. */
static void others_wait(struct asking *asking)
{
    asking->is_waiting = true;
    while (asking->others_left > 0 && fiber_park(DEADLINE_NONE) == 0) {
    }
    for (size_t i = 0; i < ASKERS_MAX - 1; i++) {
        if (asking->others[i].fiber != NULL) {
            fiber_cancel(asking->others[i].fiber);
        }
    }
    fiber_shield();
    while (asking->others_left > 0) {
        (void)fiber_park(DEADLINE_NONE); /* the count decides */
    }
    fiber_unshield();
}

void models_ask(struct request *r, struct asked_list *lists, size_t count)
{
    struct asking asking = {.request = r, .lists = lists, .count = count, .own = fiber_self()};
    others_start(&asking);
    ask_on(&asking);
    others_wait(&asking);
    for (; asking.next < count; asking.next++) {
        lists[asking.next].code = SG_E_CANCELLED;
    }
}
