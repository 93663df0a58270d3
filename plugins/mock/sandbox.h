/* One configured mock sandbox. */
#ifndef MOCK_SANDBOX_H
#define MOCK_SANDBOX_H

#include "containers.h"
#include "faults.h"
#include "pattern.h"

struct sandbox_rule {
    const char *when; /* first: see patterns_new() */
    const char *output, *errors, *result, *error_name, *error_value, *fault;
    const char *const *files; /* "name" or "name=content" */
    int64_t delay, times, exit;
    bool image;
};

struct sandbox_config {
    struct sg_list rules;
    int64_t delay, create_delay, destroy_delay;
    const char *create_fault, *destroy_fault, *touch_fault;
    int64_t create_fault_count, destroy_fault_count;
    const char *journal, *state;
};

struct sandbox {
    const struct sandbox_config *config;
    struct pattern *patterns; /* one a rule */
    atomic_llong *rules_used; /* one a rule */
    atomic_llong creates_failed, destroys_failed;
    struct journal journal;
    struct containers *containers;
};

int sandbox_run(void *self, struct sg_call *, const char *handle, const struct sg_run *,
                struct sg_error *);

/* Waits until the call is cancelled or its deadline has come; returns that code. */
int sandbox_hang(struct sg_call *, struct sg_error *);

#endif
