/* Which template boxes are made of, and when another one is started. */
#include "broker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define START_MS 60000 /* for modules to be loaded */
#define AGAIN_MS 250   /* after a first failure; twice as long each time */
#define AGAIN_MAX_MS (5 * 60000)
#define LOOK_MS 1000 /* between two looks at the folders of packages */

struct box_template *templates_pick(struct broker *broker, uint64_t *ret_number)
{
    struct templates *templates = &broker->templates;
    *ret_number = templates->current_number;
    return templates->current_number != 0 ? &templates->current : NULL;
}

bool templates_are_settled(const struct broker *broker)
{
    const struct templates *templates = &broker->templates;
    return templates->current_number != 0 ||
           (templates->next_number == 0 && templates->failures > 0);
}

static void forget(struct box_template *template, uint64_t *number)
{
    if (*number != 0) {
        template_leave(template);
        *number = 0;
    }
}

void templates_failed(struct broker *broker, uint64_t number, const char *why)
{
    struct templates *templates = &broker->templates;
    if (number == 0 || (number != templates->current_number && number != templates->next_number)) {
        return; /* it has left already */
    }
    int64_t pause_ms = AGAIN_MS;
    for (unsigned i = 0; i < templates->failures && pause_ms < AGAIN_MAX_MS; i++) {
        pause_ms *= 2;
    }
    templates->failures++;
    templates->try_at = now_ms() + (pause_ms < AGAIN_MAX_MS ? pause_ms : AGAIN_MAX_MS);
    /* With packages that have changed the older one is of no use either. */
    forget(&templates->current, &templates->current_number);
    forget(&templates->next, &templates->next_number);
    broker_note(broker, "boxes start slower, since there is no template of the interpreter: %s",
                why);
}

void templates_proven(struct broker *broker, uint64_t number)
{
    struct templates *templates = &broker->templates;
    if (number == 0 || number != templates->next_number) {
        return;
    }
    forget(&templates->current, &templates->current_number);
    templates->current = templates->next;
    templates->current_number = number;
    templates->next_number = 0;
    templates->failures = 0;
}

static void start_next(struct broker *broker)
{
    struct templates *templates = &broker->templates;
    const char *step = NULL;
    templates->next_number = ++templates->numbers;
    if (!template_start(&templates->next, &broker->maker, &step)) {
        char why[WIRE_STEP_BYTES + 100];
        snprintf(why, sizeof why, "cannot %s: %s", step, strerror(errno));
        templates_failed(broker, templates->next_number, why);
    }
}

static bool is_wanted(struct templates *templates, int64_t now)
{
    if (templates->next_number != 0 || now < templates->try_at) {
        return false;
    }
    if (templates->current_number == 0) {
        return true;
    }
    if (now < templates->look_at) {
        return false;
    }
    templates->look_at = now + LOOK_MS;
    return template_is_outdated(&templates->current);
}

int64_t templates_upkeep(struct broker *broker)
{
    struct templates *templates = &broker->templates;
    int64_t now = now_ms();
    if (templates->next_number != 0 && templates->next.state == TEMPLATE_STARTING &&
        now >= templates->next.since + START_MS) {
        templates_failed(broker, templates->next_number, "it was not ready within 60s");
    }
    if (is_wanted(templates, now)) {
        start_next(broker);
    }
    if (templates->next_number != 0) {
        return templates->next.state == TEMPLATE_STARTING ? templates->next.since + START_MS
                                                          : INT64_MAX;
    }
    return templates->current_number == 0 ? templates->try_at : INT64_MAX;
}

void templates_hear(struct broker *broker)
{
    struct templates *templates = &broker->templates;
    char note[WIRE_NOTE_BYTES] = "";
    if (templates->next_number != 0) {
        const char *why = template_hear(&templates->next, note, sizeof note);
        if (why != NULL) {
            templates_failed(broker, templates->next_number, why);
        } else if (note[0] != '\0') {
            broker_note(broker, "%s", note);
        }
    }
    /* One that makes boxes says nothing unasked. */
    if (templates->current_number != 0 &&
        template_hear(&templates->current, note, sizeof note) != NULL) {
        templates_failed(broker, templates->current_number, "it ended");
    }
}

void templates_reaped(struct broker *broker, pid_t pid)
{
    struct templates *templates = &broker->templates;
    struct box_template *both[] = {&templates->current, &templates->next};
    const uint64_t numbers[] = {templates->current_number, templates->next_number};
    for (size_t i = 0; i < 2; i++) {
        if (numbers[i] != 0 && both[i]->pid == pid) {
            both[i]->pid = 0; /* nobody's any more */
        }
    }
}

void templates_end(struct broker *broker)
{
    forget(&broker->templates.current, &broker->templates.current_number);
    forget(&broker->templates.next, &broker->templates.next_number);
}
