/* The hash and the heap of embedded nodes. */
#include "session/index.h"

#include "base/check.h"

#include <stdlib.h>

static void hash_grow(struct hash *hash)
{
    size_t count = hash->buckets_count == 0 ? 64 : 2 * hash->buckets_count;
    struct hash_node **buckets = check_alloc(calloc(count, sizeof *buckets));
    for (size_t i = 0; i < hash->buckets_count; i++) {
        struct hash_node *next;
        for (struct hash_node *node = hash->buckets[i]; node != NULL; node = next) {
            next = node->next;
            node->next = buckets[node->hash % count];
            buckets[node->hash % count] = node;
        }
    }
    free(hash->buckets);
    hash->buckets = buckets;
    hash->buckets_count = count;
}

void hash_put(struct hash *hash, struct hash_node *node, uint64_t value)
{
    if (hash->count >= hash->buckets_count) {
        hash_grow(hash);
    }
    struct hash_node **bucket = &hash->buckets[value % hash->buckets_count];
    node->hash = value;
    node->next = *bucket;
    *bucket = node;
    hash->count++;
}

void hash_remove(struct hash *hash, struct hash_node *node)
{
    CHECK(hash->count > 0);
    struct hash_node **at = &hash->buckets[node->hash % hash->buckets_count];
    while (*at != node) {
        CHECK(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    node->next = NULL;
    hash->count--;
}

static struct hash_node *same_hash(struct hash_node *node, uint64_t value)
{
    while (node != NULL && node->hash != value) {
        node = node->next;
    }
    return node;
}

struct hash_node *hash_first(const struct hash *hash, uint64_t value)
{
    if (hash->count == 0) {
        return NULL;
    }
    return same_hash(hash->buckets[value % hash->buckets_count], value);
}

struct hash_node *hash_next(const struct hash_node *node)
{
    return same_hash(node->next, node->hash);
}

void hash_clear(struct hash *hash)
{
    free(hash->buckets);
    *hash = (struct hash){0};
}

/* FNV-1a: the names and ids that it is used for are chosen by the operator or by us. */
uint64_t hash_bytes(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) {
        value = (value ^ bytes[i]) * 0x100000001b3u;
    }
    return value ^ value >> 32;
}

static void heap_set(struct heap *heap, size_t place, struct heap_node *node)
{
    heap->nodes[place - 1] = node;
    node->place = place;
}

static void heap_rise(struct heap *heap, struct heap_node *node)
{
    size_t place = node->place;
    while (place > 1 && heap->nodes[place / 2 - 1]->at > node->at) {
        heap_set(heap, place, heap->nodes[place / 2 - 1]);
        place /= 2;
    }
    heap_set(heap, place, node);
}

static void heap_sink(struct heap *heap, struct heap_node *node)
{
    size_t place = node->place;
    for (size_t child = 2 * place; child <= heap->count; child = 2 * place) {
        if (child < heap->count && heap->nodes[child]->at < heap->nodes[child - 1]->at) {
            child++;
        }
        if (heap->nodes[child - 1]->at >= node->at) {
            break;
        }
        heap_set(heap, place, heap->nodes[child - 1]);
        place = child;
    }
    heap_set(heap, place, node);
}

void heap_put(struct heap *heap, struct heap_node *node, int64_t at)
{
    if (node->place == 0) {
        if (heap->count == heap->cap) {
            heap->cap = heap->cap == 0 ? 64 : 2 * heap->cap;
            heap->nodes = check_alloc(realloc(heap->nodes, heap->cap * sizeof *heap->nodes));
        }
        heap_set(heap, ++heap->count, node);
    }
    CHECK(heap->nodes[node->place - 1] == node);
    node->at = at;
    heap_rise(heap, node);
    heap_sink(heap, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (node->place == 0) {
        return;
    }
    size_t place = node->place;
    CHECK(place <= heap->count && heap->nodes[place - 1] == node);
    struct heap_node *last = heap->nodes[--heap->count];
    node->place = 0;
    if (last != node) {
        heap_set(heap, place, last);
        heap_rise(heap, last);
        heap_sink(heap, last);
    }
}

struct heap_node *heap_top(const struct heap *heap)
{
    return heap->count == 0 ? NULL : heap->nodes[0];
}

void heap_clear(struct heap *heap)
{
    free(heap->nodes);
    *heap = (struct heap){0};
}
