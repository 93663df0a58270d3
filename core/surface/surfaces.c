/* The table of surfaces, and the way from a path to its surface. */
#include "surface/surface.h"

const struct surface *const surfaces[] = {&surface_chat, &surface_responses, &surface_messages,
                                          NULL};

const struct surface *surface_of_path(struct str path)
{
    static const struct str version = {"/v1", 3};
    if (str_starts(path, version)) {
        path = (struct str){path.data + version.len, path.len - version.len};
    }
    for (size_t i = 0; surfaces[i] != NULL; i++) {
        if (str_is(path, surfaces[i]->path)) {
            return surfaces[i];
        }
    }
    return NULL;
}

const struct surface *surface_named(const char *name)
{
    for (size_t i = 0; name != NULL && surfaces[i] != NULL; i++) {
        if (strcmp(name, surfaces[i]->name) == 0) {
            return surfaces[i];
        }
    }
    return NULL;
}
