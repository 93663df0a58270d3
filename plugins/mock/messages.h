/* Between the files of the Messages form. */
#ifndef MOCK_MESSAGES_H
#define MOCK_MESSAGES_H

#include "upstream.h"

void messages_read(struct conversation *, struct problem *);

/* Refuses what the strictest server of this form refuses. */
void messages_check(const cJSON *request, struct problem *);

#endif
