/* Writers of requests: a conversation in an API's form. What that API has no place for is refused under the name that the
 * client gave it. */
#ifndef SANDGATE_TRANSLATE_WRITING_H
#define SANDGATE_TRANSLATE_WRITING_H

#include "base/buf.h"
#include "translate/reading.h"

/* A comma where something stands before, in the array or object that is open. */
void json_comma_put(struct buf *out);
void json_member_put(struct buf *out, const char *name, struct str text);
void json_raw_put(struct buf *out, const char *name, struct str raw);

/* May the tool be called? Where a choice is among some, the others are not. */
bool choice_allows(const struct choice *, struct str name);

/* What becomes of an option in this API. */
enum option_fate { OPTION_CARRIED, OPTION_REFUSED, OPTION_NOT_NEEDED };
enum option_fate write_chat_fate(enum option_kind);
enum option_fate write_messages_fate(enum option_kind);
/* Where it stands in a request of this API; NULL: nowhere. */
const char *write_chat_field(enum option_kind);
const char *write_messages_field(enum option_kind);

int write_chat(const struct reading *, const struct conversation *, struct buf *out,
               struct sg_error *err);
int write_messages(const struct reading *, const struct conversation *, struct buf *out,
                   struct sg_error *err);

#endif
