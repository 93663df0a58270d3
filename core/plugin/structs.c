/* Structs that plugins pass to the core's functions, or have them filled, at the sizes of the plugin's minor: read no
 * further than the plugin wrote them, and write no further than it has room. What the core passes needs no copy: a plugin
 * of an older minor reads the beginning of a struct that has grown at its end. (What a plugin exports is copied when it is
 * loaded, load_set.c; structs inside others by value, sg_map above all, never grow.) */
#include "plugin/call_internal.h"

#include "base/check.h"

/* 0 for a struct that the plugin's minor did not have. */
static size_t size_of(const struct sg_call *call, enum sg_struct what, size_t ours)
{
    const struct instance *instance = call->instance;
    if (instance->sizes == NULL) {
        return ours;
    }
    size_t theirs = what < instance->sizes_count ? instance->sizes[what] : 0;
    CHECK(theirs <= ours); /* so it was loaded */
    return theirs;
}

void struct_take(const struct sg_call *call, enum sg_struct what, const void *from, size_t index,
                 void *to, size_t size)
{
    size_t theirs = size_of(call, what, size);
    memset(to, 0, size);
    memcpy(to, (const char *)from + index * theirs, theirs);
}

void struct_give(const struct sg_call *call, enum sg_struct what, const void *from, size_t size,
                 void *to)
{
    memcpy(to, from, size_of(call, what, size));
}
