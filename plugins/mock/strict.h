/* What no upstream may ever see, whatever the form. */
#ifndef MOCK_STRICT_H
#define MOCK_STRICT_H

#include "upstream.h"

/* The internal keys by which gateways steer themselves: none may travel on, at the top or in metadata. */
bool is_control_key(const char *name);

#endif
