/* Circuits of upstreams: see circuit.h. */
#include "gateway/circuit.h"

#include "base/check.h"

void circuit_init(struct circuit *circuit)
{
    *circuit = (struct circuit){.failures = 0};
    lock_init(&circuit->lock);
    atomic_init(&circuit->is_troubled, false);
}

void circuit_destroy(struct circuit *circuit)
{
    lock_destroy(&circuit->lock);
}

static bool is_troubled(struct circuit *circuit)
{
    return atomic_load_explicit(&circuit->is_troubled, memory_order_relaxed);
}

bool circuit_allows(struct circuit *circuit, int64_t now_ms)
{
    if (!is_troubled(circuit)) {
        return true;
    }
    lock_take(&circuit->lock);
    bool is_trial = circuit->is_open && now_ms >= circuit->trial_at_ms;
    bool ret = !circuit->is_open || is_trial;
    if (is_trial) {
        circuit->is_trying = true;
        circuit->trial_at_ms = now_ms + circuit->open_ms;
    }
    lock_release(&circuit->lock);
    return ret;
}

enum circuit_change circuit_success(struct circuit *circuit)
{
    if (!is_troubled(circuit)) {
        return CIRCUIT_SAME;
    }
    lock_take(&circuit->lock);
    bool was_open = circuit->is_open;
    circuit->is_open = circuit->is_trying = false;
    circuit->failures = circuit->open_ms = 0;
    atomic_store_explicit(&circuit->is_troubled, false, memory_order_relaxed);
    lock_release(&circuit->lock);
    return was_open ? CIRCUIT_CLOSED : CIRCUIT_SAME;
}

/* Under the lock. */
static void open_for(struct circuit *circuit, const struct circuit_limits *limits, int64_t now_ms)
{
    int64_t wanted = circuit->is_open ? 2 * circuit->open_ms : limits->open_ms;
    circuit->open_ms = wanted < limits->open_ms_max ? wanted : limits->open_ms_max;
    circuit->trial_at_ms = now_ms + circuit->open_ms;
    circuit->is_open = true;
    circuit->is_trying = false;
}

enum circuit_change circuit_failure(struct circuit *circuit, const struct circuit_limits *limits,
                                    int64_t now_ms)
{
    lock_take(&circuit->lock);
    bool was_open = circuit->is_open;
    atomic_store_explicit(&circuit->is_troubled, true, memory_order_relaxed);
    circuit->failures++;
    if (was_open ? circuit->is_trying
                 : limits->failures > 0 && circuit->failures >= limits->failures) {
        open_for(circuit, limits, now_ms);
    }
    bool is_opened = !was_open && circuit->is_open;
    lock_release(&circuit->lock);
    return is_opened ? CIRCUIT_OPENED : CIRCUIT_SAME;
}

void circuit_unknown(struct circuit *circuit, int64_t now_ms)
{
    if (!is_troubled(circuit)) {
        return;
    }
    lock_take(&circuit->lock);
    if (circuit->is_open && circuit->is_trying) {
        circuit->is_trying = false;
        circuit->trial_at_ms = now_ms;
    }
    lock_release(&circuit->lock);
}

struct circuit_state circuit_look(struct circuit *circuit)
{
    struct circuit_state ret = {0};
    if (is_troubled(circuit)) {
        lock_take(&circuit->lock);
        ret = (struct circuit_state){circuit->is_open, circuit->failures, circuit->open_ms};
        lock_release(&circuit->lock);
    }
    return ret;
}
