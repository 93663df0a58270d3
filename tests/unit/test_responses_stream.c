/* The client's stream on responses, fed by streams of every kind. Each scenario is run with whole events, single bytes and
 * odd pieces, and the client's bytes must be the same; the strict checker reads them. */
#include "responses_bench.h"

static void run_then_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    CU_ASSERT_TRUE(surface_responses.wants_stream(b->exchange));
    bench_turn(b, RUN_42);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42\n");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "It is 42.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(
        c.order.data,
        "created in_progress output_item.added code_interpreter_call.in_progress "
        "code_interpreter_call_code.delta code_interpreter_call_code.done "
        "code_interpreter_call.interpreting code_interpreter_call.completed output_item.done "
        "output_item.added content_part.added output_text.delta output_text.done "
        "content_part.done output_item.done completed ");
    CU_ASSERT_STRING_EQUAL(c.text.data, "It is 42.");
    CU_ASSERT_STRING_EQUAL(c.items[0].code.data, "print(40+2)");
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "function_call"));
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "fc_1"));
}

static void b17_a_run_and_then_a_message_come_in_the_hosted_order(void)
{
    in_any_pieces(run_then_text);
}

static const struct test tests[] = {
    TEST(b17_a_run_and_then_a_message_come_in_the_hosted_order),
};

int main(int argc, char **argv)
{
    return run_tests("responses_stream", tests, COUNT_OF(tests), argc, argv);
}
