/* Traces: which topics are on, and what a line says. */
#include "base/trace.h"

#include "base/check.h"
#include "base/log.h"
#include "cunit_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char said[LOG_LINE_BYTES];

/* What is written to the log by one trace. */
static const char *say(enum trace_topic topic, const char *text, int64_t number)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    log_set_fd(fds[1]);
    trace_say(topic, "step", &fds, str_of(text), number);
    log_set_fd(2);
    close(fds[1]);
    ssize_t len = read(fds[0], said, sizeof said - 1);
    close(fds[0]);
    said[len > 0 ? len : 0] = '\0';
    return said;
}

static void only_chosen_topics_are_traced(void)
{
    CU_ASSERT_TRUE(trace_choose("sse,plugin"));
    CU_ASSERT_STRING_EQUAL(say(TRACE_HTTP, "x", 1), "");
    CU_ASSERT_STRING_EQUAL(say(TRACE_FIBER, "x", 1), "");
    CU_ASSERT_PTR_NOT_NULL(strstr(say(TRACE_SSE, "x", 1), " event=trace topic=sse step=step "));
    CU_ASSERT_PTR_NOT_NULL(strstr(say(TRACE_PLUGIN, "x", 1), " topic=plugin "));
    CU_ASSERT_TRUE(trace_choose(NULL));
    CU_ASSERT_STRING_EQUAL(say(TRACE_SSE, "x", 1), "");
}

static void an_unknown_topic_turns_on_nothing(void)
{
    CU_ASSERT_TRUE(trace_choose("http"));
    CU_ASSERT_FALSE(trace_choose("http,htp"));
    CU_ASSERT_STRING_EQUAL(say(TRACE_HTTP, "x", 1), "");
    CU_ASSERT_FALSE(trace_choose("http "));
    CU_ASSERT_TRUE(trace_choose(""));
}

static void a_trace_stays_one_line(void)
{
    CU_ASSERT_TRUE(trace_choose("http,fiber"));
    const char *line = say(TRACE_FIBER, "two\nlines", -7);
    CU_ASSERT_PTR_NOT_NULL(strstr(line, " text=\"two\\x0alines\" number=-7\n"));
    CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + strlen(line) - 1);
}

static const struct test tests[] = {
    TEST(only_chosen_topics_are_traced),
    TEST(an_unknown_topic_turns_on_nothing),
    TEST(a_trace_stays_one_line),
};

int main(int argc, char **argv)
{
    return run_tests("trace", tests, COUNT_OF(tests), argc, argv);
}
