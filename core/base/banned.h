/* Functions that do not compile here (style.md): included before every file by the build. Each redeclaration makes a
 * call a compile error that says what to use. */
#ifndef SANDGATE_BASE_BANNED_H
#define SANDGATE_BASE_BANNED_H

#ifndef __cplusplus
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* gcc only: clang refuses the attribute on a redeclaration. Every change is built with both. */
#if defined(__GNUC__) && !defined(__clang__)
#define SANDGATE_BANNED(instead) __attribute__((error("banned: use " instead)))
char *strcpy(char *, const char *) SANDGATE_BANNED("snprintf or buf_append");
char *strcat(char *, const char *) SANDGATE_BANNED("buf_append");
int sprintf(char *, const char *, ...) SANDGATE_BANNED("snprintf or buf_printf");
char *strtok(char *, const char *) SANDGATE_BANNED("strcspn");
int atoi(const char *) SANDGATE_BANNED("strtol with its checks");
struct tm *localtime(const time_t *) SANDGATE_BANNED("gmtime_r");
#endif
#endif

#endif
