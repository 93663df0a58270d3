/* One case of tests/data/attacks.json in a fresh box, and all that must be so afterwards. */
#ifndef TESTS_PLUGIN_LOCAL_ATTACK_H
#define TESTS_PLUGIN_LOCAL_ATTACK_H

#include <cJSON.h>
#include <stdbool.h>

/* Shell and JavaScript cases run as children of Python code, as their authors tried them, and once more in the provider's own
 * language where it has it. */
enum attack_way { ATTACK_BY_PYTHON, ATTACK_IN_LANGUAGE };

/* A member of a case, or of what it expects; NULL if it is no text. */
const char *attack_text(const cJSON *object, const char *name);

/* In a fiber; asserts. The timeouts of cases that must end by themselves are for a machine that does nothing else: they
 * are multiplied. */
void attack_run(const cJSON *attack, enum attack_way way, int times_slower);

#endif
