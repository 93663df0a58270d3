/* What the two OpenAI forms have in common: words of tool_choice, strict looks at members and metadata, errors. */
#ifndef MOCK_OPENAI_H
#define MOCK_OPENAI_H

#include "upstream.h"

void openai_read_mode(struct conversation *, const cJSON *mode);
void openai_read_model(struct conversation *, struct problem *);

/* Every member of the object must be among the names; none may come twice. `where` is its path, "" for the body. */
void openai_check_members(const cJSON *object, const char *where, const char *const *names,
                          struct problem *);
void openai_check_metadata(const cJSON *metadata, struct problem *);
void openai_check_mode(const cJSON *mode, const char *where, struct problem *);
/* The value at the path is not there. */
void openai_missing(const char *path, struct problem *);

const char *openai_error_type(int status);
void openai_put_error(const struct problem *, int status, struct text *out); /* {"message":…} */
void openai_write_error(const struct problem *, int status, struct text *out);

#endif
