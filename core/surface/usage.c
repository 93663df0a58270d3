/* Token counts: read, added up for the log, and summed as JSON for the client. */
#include "surface/usage.h"

const struct usage_names usage_names_chat = {.input = "prompt_tokens",
                                             .output = "completion_tokens",
                                             .total = "total_tokens",
                                             .input_details = "prompt_tokens_details",
                                             .output_details = "completion_tokens_details"};
const struct usage_names usage_names_responses = {.input = "input_tokens",
                                                  .output = "output_tokens",
                                                  .total = "total_tokens",
                                                  .input_details = "input_tokens_details",
                                                  .output_details = "output_tokens_details"};
const struct usage_names usage_names_messages = {
    .input = "input_tokens", .output = "output_tokens", .cached = "cache_read_input_tokens"};

enum { USAGE_DEPTH_MAX = 4 }; /* nested details that are summed; deeper ones are the later turn's */

static void count_take(struct json_value value, int64_t *ret)
{
    int64_t count;
    if (json_int_of(value, &count) && count >= 0) {
        *ret = count;
    }
}

static bool is_named(struct str key, const char *name)
{
    return name != NULL && json_key_is(key, name);
}

static void detail_take(struct json_value details, const char *name, int64_t *ret)
{
    struct json_walk walk = json_walk_of(details);
    struct str key;
    struct json_value value;
    while (details.type == JSON_OBJECT && json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, name)) {
            count_take(value, ret);
        }
    }
}

void usage_read(struct json_value usage, const struct usage_names *names, struct surface_usage *ret)
{
    struct json_walk walk = json_walk_of(usage);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (is_named(key, names->input)) {
            count_take(value, &ret->input_tokens);
        } else if (is_named(key, names->output)) {
            count_take(value, &ret->output_tokens);
        } else if (is_named(key, names->total)) {
            count_take(value, &ret->total_tokens);
        } else if (is_named(key, names->cached)) {
            count_take(value, &ret->cached_tokens);
        } else if (is_named(key, names->input_details)) {
            detail_take(value, "cached_tokens", &ret->cached_tokens);
        } else if (is_named(key, names->output_details)) {
            detail_take(value, "reasoning_tokens", &ret->reasoning_tokens);
        }
    }
}

static void count_add(int64_t *sum, int64_t count)
{
    if (count < 0) {
        return;
    }
    if (*sum < 0 || __builtin_add_overflow(*sum, count, sum)) {
        *sum = count;
    }
}

void usage_add(struct surface_usage *sum, const struct surface_usage *turn)
{
    count_add(&sum->input_tokens, turn->input_tokens);
    count_add(&sum->output_tokens, turn->output_tokens);
    count_add(&sum->total_tokens, turn->total_tokens);
    count_add(&sum->cached_tokens, turn->cached_tokens);
    count_add(&sum->reasoning_tokens, turn->reasoning_tokens);
}

/* Keys of usage objects are compared as they are written: an upstream writes them the same way in each turn. */
static bool member_of(struct json_value object, struct str key_raw, struct json_value *ret)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    while (json_walk_member(&walk, &key, ret)) {
        if (str_eq(key, key_raw)) {
            return true;
        }
    }
    return false;
}

static void key_put(struct str key, bool *first, struct buf *out)
{
    (void)buf_puts(out, *first ? "" : ","); /* overflow is asked for by the owner */
    (void)buf_append_str(out, key);
    (void)buf_putc(out, ':');
    *first = false;
}

static void objects_join(struct json_value earlier, struct json_value later, bool adds,
                         unsigned depth, struct buf *out);

static void values_join(struct json_value earlier, struct json_value later, bool adds,
                        unsigned depth, struct buf *out)
{
    int64_t a, b;
    if (adds && json_int_of(earlier, &a) && json_int_of(later, &b) &&
        !__builtin_add_overflow(a, b, &a)) {
        (void)buf_printf(out, "%lld", (long long)a); /* overflow is asked for by the owner */
    } else if (earlier.type == JSON_OBJECT && later.type == JSON_OBJECT && depth > 0) {
        objects_join(earlier, later, adds, depth - 1, out);
    } else {
        (void)buf_append_str(out, later.type == JSON_NULL ? earlier.raw : later.raw);
    }
}

static void objects_join(struct json_value earlier, struct json_value later, bool adds,
                         unsigned depth, struct buf *out)
{
    bool first = true;
    struct str key;
    struct json_value value, other;
    (void)buf_putc(out, '{'); /* overflow is asked for by the owner */
    struct json_walk walk = json_walk_of(later);
    while (json_walk_member(&walk, &key, &value)) {
        key_put(key, &first, out);
        if (member_of(earlier, key, &other)) {
            values_join(other, value, adds, depth, out);
        } else {
            (void)buf_append_str(out, value.raw);
        }
    }
    walk = json_walk_of(earlier);
    while (json_walk_member(&walk, &key, &value)) {
        if (!member_of(later, key, &other)) {
            key_put(key, &first, out);
            (void)buf_append_str(out, value.raw);
        }
    }
    (void)buf_putc(out, '}');
}

void usage_sum(struct str earlier, struct str later, struct buf *out)
{
    objects_join((struct json_value){JSON_OBJECT, earlier}, (struct json_value){JSON_OBJECT, later},
                 true, USAGE_DEPTH_MAX, out);
}

void usage_overlay(struct str earlier, struct str later, struct buf *out)
{
    objects_join((struct json_value){JSON_OBJECT, earlier}, (struct json_value){JSON_OBJECT, later},
                 false, USAGE_DEPTH_MAX, out);
}
