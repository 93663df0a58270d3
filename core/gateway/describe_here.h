/* What a plugin says about this machine, for `sandgate describe`. */
#ifndef SANDGATE_GATEWAY_DESCRIBE_HERE_H
#define SANDGATE_GATEWAY_DESCRIBE_HERE_H

#include "base/buf.h"
#include "plugin/load.h"

/* Appends a paragraph for each plugin of the file that has SG_TELLS_OF_HOST: opens it with its default options, in a loop
 * made for that, and closes it. */
void describe_here(const struct plugin_file *, struct buf *out);

#endif
