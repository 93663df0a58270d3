/* Traces for developers, off unless the environment's SG_TRACE names topics: SG_TRACE=http,sse,plugin,fiber.
 *
 *   http    requests of clients and ours to others: head, status, end
 *   sse     each event that an upstream streams
 *   plugin  each call of a plugin: beginning, end with its code
 *   fiber   beginnings and ends
 *
 * A line is one of the log (event=trace). Unlike logs, traces show what travels: addresses, paths, text of streams. Values
 * are escaped and cut as in logs. A topic that is off costs one comparison. */
#ifndef SANDGATE_BASE_TRACE_H
#define SANDGATE_BASE_TRACE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum trace_topic { TRACE_HTTP = 1, TRACE_SSE = 2, TRACE_PLUGIN = 4, TRACE_FIBER = 8 };

/* Turns on the topics of a list with commas; NULL: none. Before any thread. False: one is unknown, which turns on
 * nothing. */
bool trace_choose(const char *topics);

extern unsigned trace_chosen; /* written by trace_choose() alone */

static inline bool trace_wants(enum trace_topic topic)
{
    return (trace_chosen & topic) != 0;
}

/* One line: what happened (a literal) to which object, a text and a number. Nothing if the topic is off. */
void trace_say(enum trace_topic, const char *step, const void *object, struct str text,
               int64_t number);

#endif
