/* Traces as lines of the log. */
#include "base/trace.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

unsigned trace_chosen;

static const struct {
    const char *name;
    enum trace_topic topic;
} topics_known[] = {
    {"http", TRACE_HTTP}, {"sse", TRACE_SSE}, {"plugin", TRACE_PLUGIN}, {"fiber", TRACE_FIBER}};

enum { TOPICS = sizeof topics_known / sizeof topics_known[0] };

static unsigned topic_of(struct str name)
{
    for (size_t i = 0; i < TOPICS; i++) {
        if (str_is(name, topics_known[i].name)) {
            return topics_known[i].topic;
        }
    }
    return 0;
}

bool trace_choose(const char *topics)
{
    unsigned chosen = 0;
    for (const char *at = topics; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ",");
        unsigned topic = topic_of((struct str){at, len});
        if (topic == 0) {
            trace_chosen = 0;
            return false;
        }
        chosen |= topic;
        at += len + (at[len] == ',');
    }
    trace_chosen = chosen;
    return true;
}

static const char *name_of(enum trace_topic topic)
{
    for (size_t i = 0; i < TOPICS; i++) {
        if (topics_known[i].topic == topic) {
            return topics_known[i].name;
        }
    }
    return NULL;
}

void trace_say(enum trace_topic topic, const char *step, const void *object, struct str text,
               int64_t number)
{
    if (!trace_wants(topic)) {
        return;
    }
    char address[24];
    struct log_line line;
    log_begin(&line, SG_INFO, "trace");
    log_text(&line, "topic", name_of(topic));
    log_text(&line, "step", step);
    (void)snprintf(address, sizeof address, "%p", object); /* fits */
    log_text(&line, "object", address);
    log_str(&line, "text", text);
    log_int(&line, "number", number);
    log_end(&line);
}
