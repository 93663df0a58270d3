/* Between the files of the Chat Completions form. */
#ifndef MOCK_CHAT_H
#define MOCK_CHAT_H

#include "upstream.h"

void chat_read(struct conversation *, struct problem *);

/* Refuses what the strictest server of this form refuses. */
void chat_check(const cJSON *request, struct problem *);

#endif
