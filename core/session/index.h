/* The small structures that the table and the registry are made of: a list, a hash and a heap of nodes that are
 * embedded in their owners, so that putting something in never allocates (but for the hash's and heap's arrays) and
 * taking it out needs no search. None of them locks. */
#ifndef SANDGATE_SESSION_INDEX_H
#define SANDGATE_SESSION_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The struct that a node is embedded in. */
#define INDEX_OWNER(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* ---- list: a ring with a head; a node that is in no list points to itself ---- */

struct list {
    struct list *previous, *next;
};

static inline void list_init(struct list *node)
{
    node->previous = node->next = node;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->previous = head->previous;
    node->next = head;
    head->previous->next = node;
    head->previous = node;
}

/* Also of a node that is in none. */
static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* NULL of an empty one. */
static inline struct list *list_first(const struct list *head)
{
    return list_is_empty(head) ? NULL : head->next;
}

/* ---- hash: chains; the owner compares what is behind equal hashes ---- */

struct hash_node {
    struct hash_node *next;
    uint64_t hash;
};

struct hash { /* all zero: empty */
    struct hash_node **buckets;
    size_t buckets_count, count;
};

void hash_put(struct hash *, struct hash_node *, uint64_t hash);
void hash_remove(struct hash *, struct hash_node *); /* must be in it: asserted */
struct hash_node *hash_first(const struct hash *, uint64_t hash);
struct hash_node *hash_next(const struct hash_node *); /* the next with the same hash, or NULL */
void hash_clear(struct hash *);                        /* the array only */

uint64_t hash_bytes(const void *data, size_t len);

/* ---- heap: the earliest time on top ---- */

struct heap_node { /* all zero: in none */
    int64_t at;
    size_t place; /* 1 for the top; 0: in none */
};

struct heap { /* all zero: empty */
    struct heap_node **nodes;
    size_t count, cap;
};

void heap_put(struct heap *, struct heap_node *, int64_t at); /* moves it if it is in already */
void heap_remove(struct heap *, struct heap_node *);          /* also of a node that is in none */
struct heap_node *heap_top(const struct heap *);              /* NULL of an empty one */
void heap_clear(struct heap *);                               /* the array only */

#endif
