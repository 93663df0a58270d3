/* Sums by identity and model: see usage_table.h. One lock for all: it is taken once a request, for as long as it takes to find
 * a row and add to it. */
#include "gateway/usage_table.h"

#include "base/check.h"
#include "base/lock.h"
#include "gateway/metrics.h"
#include "session/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OTHER STR("other")

enum count { REQUESTS, INPUT, OUTPUT, CACHED, REASONING, RUNS, SEARCHES, CONTAINER_US, COUNTS };

static const struct {
    const char *name, *help;
} families[COUNTS] = {
    [REQUESTS] = {"sandgate_usage_requests_total", "Requests that were answered well."},
    [INPUT] = {"sandgate_usage_input_tokens_total", "Tokens of their input, all turns."},
    [OUTPUT] = {"sandgate_usage_output_tokens_total", "Tokens of their output, all turns."},
    [CACHED] = {"sandgate_usage_cached_tokens_total", "Tokens read from upstreams' prompt caches."},
    [REASONING] = {"sandgate_usage_reasoning_tokens_total", "Tokens of reasoning in the output."},
    [RUNS] = {"sandgate_usage_runs_total", "Runs of code."},
    [SEARCHES] = {"sandgate_usage_searches_total", "Searches, cached ones too."},
    [CONTAINER_US] = {"sandgate_usage_container_seconds_total", "Time for which they held a "
                                                                "container."},
};

struct row {
    struct hash_node node;
    struct row *next; /* in the order of their making */
    char *identity, *model;
    size_t models; /* "other" alone, which each identity has: how many others it has */
    uint64_t counts[COUNTS];
};

struct usage_table {
    struct lock lock; /* of all */
    struct hash rows;
    struct row *first, **last;
    size_t named; /* rows that are not "other" */
};

struct usage_table *usage_table_new(void)
{
    struct usage_table *table = check_alloc(calloc(1, sizeof *table));
    lock_init(&table->lock);
    table->last = &table->first;
    return table;
}

void usage_table_free(struct usage_table *table)
{
    if (table == NULL) {
        return;
    }
    while (table->first != NULL) {
        struct row *row = table->first;
        table->first = row->next;
        hash_remove(&table->rows, &row->node);
        free(row->identity);
        free(row->model);
        free(row);
    }
    hash_clear(&table->rows);
    lock_destroy(&table->lock);
    free(table);
}

static uint64_t key_of(struct str identity, struct str model)
{
    return hash_bytes(identity.data, identity.len) * 31 + hash_bytes(model.data, model.len);
}

static struct row *row_find(const struct usage_table *table, struct str identity, struct str model)
{
    for (struct hash_node *node = hash_first(&table->rows, key_of(identity, model)); node != NULL;
         node = hash_next(node)) {
        struct row *row = INDEX_OWNER(node, struct row, node);
        if (str_is(identity, row->identity) && str_is(model, row->model)) {
            return row;
        }
    }
    return NULL;
}

static char *text_copy(struct str text)
{
    return check_alloc(strndup(text.data, text.len));
}

static struct row *row_make(struct usage_table *table, struct str identity, struct str model)
{
    struct row *row = check_alloc(calloc(1, sizeof *row));
    row->identity = text_copy(identity);
    row->model = text_copy(model);
    hash_put(&table->rows, &row->node, key_of(identity, model));
    *table->last = row;
    table->last = &row->next;
    return row;
}

static bool name_fits(struct str model)
{
    return model.len > 0 && model.len <= USAGE_NAME_BYTES_MAX &&
           memchr(model.data, '\0', model.len) == NULL;
}

/* Under the lock. */
static struct row *row_of(struct usage_table *table, struct str identity, struct str model)
{
    struct row *row = row_find(table, identity, model);
    if (row != NULL) {
        return row;
    }
    struct row *other = row_find(table, identity, OTHER);
    other = other != NULL ? other : row_make(table, identity, OTHER);
    if (!name_fits(model) || str_eq(model, OTHER) || other->models >= USAGE_MODELS_MAX ||
        table->named >= USAGE_ROWS_MAX) {
        return other;
    }
    other->models++;
    table->named++;
    return row_make(table, identity, model);
}

void usage_table_add(struct usage_table *table, const struct usage_entry *entry)
{
    const int64_t counts[COUNTS] = {1,
                                    entry->tokens.input_tokens,
                                    entry->tokens.output_tokens,
                                    entry->tokens.cached_tokens,
                                    entry->tokens.reasoning_tokens,
                                    entry->runs,
                                    entry->searches,
                                    entry->container_us};
    lock_take(&table->lock);
    struct row *row = row_of(table, entry->identity, entry->model);
    for (size_t i = 0; i < COUNTS; i++) {
        row->counts[i] += counts[i] > 0 ? (uint64_t)counts[i] : 0; /* -1: not said */
    }
    lock_release(&table->lock);
}

static void put_row(const struct row *row, enum count count, struct buf *out)
{
    uint64_t value = row->counts[count];
    (void)buf_printf(out, "%s{", families[count].name); /* overflow shows in the buffer */
    metrics_put_label(out, "identity", row->identity);
    (void)buf_putc(out, ',');
    metrics_put_label(out, "model", row->model);
    if (count == CONTAINER_US) {
        (void)buf_printf(out, "} %" PRIu64 ".%06" PRIu64 "\n", value / 1000000, value % 1000000);
    } else {
        (void)buf_printf(out, "} %" PRIu64 "\n", value);
    }
}

void usage_table_put(struct usage_table *table, struct buf *out)
{
    lock_take(&table->lock);
    for (size_t i = 0; i < COUNTS; i++) {
        metrics_put_head(out, families[i].name, families[i].help, "counter");
        for (const struct row *row = table->first; row != NULL; row = row->next) {
            if (row->counts[REQUESTS] > 0) { /* else it only keeps the place of "other" */
                put_row(row, (enum count)i, out);
            }
        }
    }
    lock_release(&table->lock);
}
