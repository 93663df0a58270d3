/* The arguments of a model's call, whatever the model wrote. */
#ifndef SANDGATE_SURFACE_ARGUMENTS_H
#define SANDGATE_SURFACE_ARGUMENTS_H

#include "surface/surface.h"

/* Is this text a JSON object, as strict servers want it of arguments? */
bool arguments_is_object(struct str text);

/* What the tool gets: the text as it is, or the object within a fence (```json … ```) around the whole of it.
 * *ret_object: what goes up as history, since strict servers refuse arguments that are no JSON object: the text, what
 * was in the fence, or {}. Both borrowed from `text`. */
struct str arguments_settle(struct str text, struct str *ret_object);

#endif
