/* Writers of requests: a conversation in an API's form. What that API has no place for is refused under the name that the
 * client gave it. */
#ifndef SANDGATE_TRANSLATE_WRITING_H
#define SANDGATE_TRANSLATE_WRITING_H

#include "base/buf.h"
#include "translate/reading.h"

int write_chat(const struct reading *, const struct conversation *, struct buf *out,
               struct sg_error *err);

#endif
