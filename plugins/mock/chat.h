/* Between chat.c and chat_strict.c. */
#ifndef MOCK_CHAT_H
#define MOCK_CHAT_H

#include "upstream.h"

bool json_is(const cJSON *string, const char *text);
const cJSON *json_member(const cJSON *object, const char *name); /* exact; NULL is fine */

/* Refuses what the strictest server of this form refuses. */
void chat_check(const cJSON *request, struct problem *);

#endif
