#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
/* Operations that other parts of the plugin bring. */
#include "e2b.h"
#define PENDING(name, ...)                      \
    __attribute__((weak)) int name(__VA_ARGS__) \
    {                                           \
        return SG_E_INTERNAL;                   \
    }
PENDING(e2b_run, void *s, struct sg_call *c, const char *h, const struct sg_run *r,
        struct sg_error *e)
PENDING(e2b_interrupt, void *s, struct sg_call *c, const char *h, struct sg_error *e)
PENDING(e2b_put, void *s, struct sg_call *c, const char *h, const char *p, const void *d, size_t l,
        struct sg_error *e)
PENDING(e2b_get, void *s, struct sg_call *c, const char *h, const char *p, struct sg_error *e)
PENDING(e2b_list, void *s, struct sg_call *c, const char *h, const char *p, struct sg_error *e)
