/* Between the files of the Responses form. */
#ifndef MOCK_RESPONSES_H
#define MOCK_RESPONSES_H

#include "upstream.h"

void responses_read(struct conversation *, struct problem *);

/* Refuses what the strictest server of this form refuses. */
void responses_check(const cJSON *request, struct problem *);

#endif
