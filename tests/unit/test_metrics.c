/* core/gateway/metrics: what is counted, on which loop, and the text that is read. Two upstreams, one sandbox, and two
 * interceptors of one name, as an operator may have them. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/metrics.h"
#include "gateway/upstream_state.h"
#include "loop/loop.h"

#include <stdio.h>

static struct upstream upstreams[] = {{.name = "fast"}, {.name = "slow"}};
static struct upstream_states *states;
static struct sandbox sandboxes[] = {{.name = "box"}};
static struct search searches[] = {{.name = "web"}};
static struct interceptor interceptors[] = {
    {.name = "code"}, {.name = "say \"hi\"\\\n"}, {.name = "code"}};
static const struct config config = {.sandboxes = sandboxes,
                                     .sandboxes_count = COUNT_OF(sandboxes),
                                     .searches = searches,
                                     .searches_count = COUNT_OF(searches),
                                     .interceptors = interceptors,
                                     .interceptors_count = COUNT_OF(interceptors)};
static struct metrics *metrics;
static struct buf text;

static void read_text(void)
{
    struct metrics_now now = {.registry = {.creating = 1, .ready = 2, .lost = 3, .created = 9},
                              .containers_max = 1000,
                              .descriptors = 7,
                              .descriptors_max = 500,
                              .is_draining = true,
                              .cpu_us = 1500000,
                              .resident_bytes = 4096};
    buf_reset(&text);
    metrics_put(metrics, &now, &text);
}

/* A whole line of the text. */
static bool has_line(const char *line)
{
    BUF_CLEANUP struct buf wanted = {0};
    (void)buf_printf(&wanted, "\n%s\n", line);
    bool found = strstr(text.data, wanted.data) != NULL;
    if (!found) {
        fprintf(stderr, "no line: %s\n", line);
    }
    return found;
}

static void begin(void)
{
    states = upstream_states_new();
    metrics = metrics_new(&config, states, 2);
    for (size_t i = 0; i < COUNT_OF(upstreams); i++) {
        upstreams[i].state = upstream_state_of(states, upstreams[i].name);
    }
}

static void end(void)
{
    metrics_free(metrics);
    upstream_states_free(states);
    buf_clear(&text);
}

static void every_series_is_there_from_the_start(void)
{
    begin();
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_requests_total{route=\"chat\",status=\"2xx\"} 0"));
    CU_ASSERT_TRUE(
        has_line("sandgate_upstream_errors_total{upstream=\"slow\",kind=\"timeout\"} 0"));
    CU_ASSERT_TRUE(has_line("sandgate_runs_total{sandbox=\"box\",outcome=\"gone\"} 0"));
    CU_ASSERT_TRUE(has_line("sandgate_client_disconnects_total 0"));
    CU_ASSERT_TRUE(has_line("sandgate_containers{state=\"lost\"} 3"));
    CU_ASSERT_TRUE(has_line("sandgate_containers_created_total 9"));
    CU_ASSERT_TRUE(has_line("sandgate_descriptors_used 7"));
    CU_ASSERT_TRUE(has_line("sandgate_draining 1"));
    CU_ASSERT_TRUE(has_line("process_cpu_seconds_total 1.500000"));
    end();
}

static void each_family_is_described_once_before_its_series(void)
{
    begin();
    read_text();
    CU_ASSERT_TRUE(strncmp(text.data, "# HELP sandgate_requests_total ", 31) == 0);
    CU_ASSERT_TRUE(has_line("# TYPE sandgate_requests_total counter"));
    CU_ASSERT_TRUE(has_line("# TYPE sandgate_run_duration_seconds histogram"));
    CU_ASSERT_TRUE(has_line("# TYPE sandgate_containers gauge"));
    const char *first = strstr(text.data, "# TYPE sandgate_runs_total ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 1, "# TYPE sandgate_runs_total "));
    CU_ASSERT_EQUAL(text.data[text.len - 1], '\n');
    end();
}

static void requests_are_counted_by_route_and_status(void)
{
    begin();
    struct metric_request request = {.route = METRIC_ROUTE_CHAT, .status = 200, .us = 1};
    request.bytes_in = 10;
    request.bytes_out = 300;
    metrics_request(metrics, &request);
    request.status = 424;
    metrics_request(metrics, &request);
    request.route = METRIC_ROUTE_NONE;
    request.status = 503;
    metrics_request(metrics, &request);
    request.status = 0;
    request.is_client_gone = true;
    metrics_request(metrics, &request);
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_requests_total{route=\"chat\",status=\"2xx\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_requests_total{route=\"chat\",status=\"4xx\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_requests_total{route=\"none\",status=\"5xx\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_requests_total{route=\"none\",status=\"gone\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_client_disconnects_total 1"));
    CU_ASSERT_TRUE(has_line("sandgate_request_body_bytes_total 40"));
    CU_ASSERT_TRUE(has_line("sandgate_answer_body_bytes_total 1200"));
    end();
}

static void a_histogram_is_cumulative_and_its_bounds_belong_to_it(void)
{
    begin();
    metrics_run(metrics, &sandboxes[0], METRIC_RUN_COMPLETED, 5000);
    metrics_run(metrics, &sandboxes[0], METRIC_RUN_RAISED, 5001);
    metrics_run(metrics, &sandboxes[0], METRIC_RUN_TIMEOUT, 900000000);
    read_text();
    CU_ASSERT_TRUE(
        has_line("sandgate_run_duration_seconds_bucket{sandbox=\"box\",le=\"0.001\"} 0"));
    CU_ASSERT_TRUE(
        has_line("sandgate_run_duration_seconds_bucket{sandbox=\"box\",le=\"0.005\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_run_duration_seconds_bucket{sandbox=\"box\",le=\"0.01\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_run_duration_seconds_bucket{sandbox=\"box\",le=\"600\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_run_duration_seconds_bucket{sandbox=\"box\",le=\"+Inf\"} 3"));
    CU_ASSERT_TRUE(has_line("sandgate_run_duration_seconds_sum{sandbox=\"box\"} 900.010001"));
    CU_ASSERT_TRUE(has_line("sandgate_run_duration_seconds_count{sandbox=\"box\"} 3"));
    CU_ASSERT_TRUE(has_line("sandgate_runs_total{sandbox=\"box\",outcome=\"raised\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_runs_total{sandbox=\"box\",outcome=\"failed\"} 0"));
    end();
}

static void upstreams_are_told_apart(void)
{
    begin();
    metrics_upstream_call(metrics, &upstreams[0], false);
    metrics_upstream_call(metrics, &upstreams[1], true);
    metrics_upstream_call(metrics, &upstreams[1], true);
    metrics_upstream_fault(metrics, &upstreams[1], METRIC_FAULT_LIMITED);
    metrics_upstream_first_byte(metrics, &upstreams[1], 250000);
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"fast\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"slow\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_turns_total{upstream=\"fast\"} 0"));
    CU_ASSERT_TRUE(has_line("sandgate_turns_total{upstream=\"slow\"} 2"));
    CU_ASSERT_TRUE(
        has_line("sandgate_upstream_errors_total{upstream=\"slow\",kind=\"limited\"} 1"));
    CU_ASSERT_TRUE(
        has_line("sandgate_upstream_errors_total{upstream=\"fast\",kind=\"limited\"} 0"));
    CU_ASSERT_TRUE(
        has_line("sandgate_upstream_first_byte_seconds_sum{upstream=\"slow\"} 0.250000"));
    end();
}

static void interceptors_of_one_name_share_a_series_and_odd_names_are_escaped(void)
{
    begin();
    metrics_tool_call(metrics, &interceptors[0], METRIC_CALL_COMPLETED);
    metrics_tool_call(metrics, &interceptors[2], METRIC_CALL_COMPLETED);
    metrics_tool_call(metrics, &interceptors[1], METRIC_CALL_REFUSED);
    read_text();
    CU_ASSERT_TRUE(
        has_line("sandgate_tool_calls_total{interceptor=\"code\",outcome=\"completed\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_tool_calls_total{interceptor=\"say \\\"hi\\\"\\\\\\n\","
                            "outcome=\"refused\"} 1"));
    const char *first = strstr(text.data, "{interceptor=\"code\",outcome=\"failed\"}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 1, "{interceptor=\"code\",outcome=\"failed\"}"));
    end();
}

static void causes_of_sandboxes_searches_and_limits_have_words(void)
{
    begin();
    metrics_sandbox_error(metrics, &sandboxes[0], SG_E_GONE_BEFORE);
    metrics_sandbox_error(metrics, &sandboxes[0], SG_E_LIMIT);
    metrics_sandbox_error(metrics, &sandboxes[0], 77);
    metrics_search(metrics, &searches[0], METRIC_CALL_COMPLETED, 3000);
    metrics_search(metrics, &searches[0], METRIC_CALL_FAILED, 4000);
    metrics_search(metrics, &searches[0], METRIC_CALL_REFUSED, 0);
    metrics_search_cached(metrics, &searches[0]);
    metrics_search_hits(metrics, &searches[0],
                        (const size_t[HIT_FATES]){[HIT_PASSED] = 5, [HIT_FILTERED] = 2});
    metrics_limited(metrics, METRIC_LIMIT_IN_FLIGHT, true);
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_limited_total{limit=\"in_flight\",of=\"user\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_limited_total{limit=\"in_flight\",of=\"key\"} 0"));
    CU_ASSERT_TRUE(has_line("sandgate_sandbox_errors_total{sandbox=\"box\",cause=\"limit\"} 1"));
    CU_ASSERT_TRUE(
        has_line("sandgate_sandbox_errors_total{sandbox=\"box\",cause=\"gone_before\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_sandbox_errors_total{sandbox=\"box\",cause=\"other\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_searches_total{search=\"web\",outcome=\"completed\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_searches_total{search=\"web\",outcome=\"failed\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_searches_total{search=\"web\",outcome=\"refused\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_searches_cached_total{search=\"web\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_search_duration_seconds_count{search=\"web\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_search_hits_total{search=\"web\",fate=\"passed\"} 5"));
    CU_ASSERT_TRUE(has_line("sandgate_search_hits_total{search=\"web\",fate=\"filtered\"} 2"));
    CU_ASSERT_TRUE(has_line("sandgate_search_hits_total{search=\"web\",fate=\"surplus\"} 0"));
    end();
}

static void an_upstream_that_comes_later_is_counted_and_one_that_comes_back_goes_on(void)
{
    begin();
    metrics_upstream_call(metrics, &upstreams[1], false);
    struct upstream late = {.name = "late", .state = upstream_state_of(states, "late")};
    struct upstream back = {.name = "slow", .state = upstream_state_of(states, "slow")};
    metrics_upstream_call(metrics, &late, true);
    metrics_upstream_call(metrics, &back, false);
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"late\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"slow\"} 2"));
    CU_ASSERT_PTR_NULL(strstr(text.data, "upstream=\"other\""));
    end();
}

static void upstreams_beyond_the_most_share_a_series(void)
{
    begin();
    struct upstream one = {0};
    for (size_t i = COUNT_OF(upstreams); i < METRICS_UPSTREAMS_MAX + 2; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "u%zu", i); /* fits */
        one.state = upstream_state_of(states, name);
        metrics_upstream_call(metrics, &one, false);
    }
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"u999\"} 1"));
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"other\"} 2"));
    CU_ASSERT_PTR_NULL(strstr(text.data, "\"u1000\""));
    end();
}

static void count_one_and_stop(void *loop)
{
    metrics_upstream_call(metrics, &upstreams[0], false);
    loop_stop(loop);
}

static void count_on_loop(unsigned index)
{
    struct sg_error err = {0};
    struct loop *loop;
    struct fiber *fiber;
    CU_ASSERT_EQUAL_FATAL(loop_new(index, NULL, &loop, &err), 0);
    CU_ASSERT_EQUAL_FATAL(fiber_start(loop, "count", count_one_and_stop, loop, &fiber, &err), 0);
    loop_run(loop);
    loop_free(loop);
}

static void loops_are_summed(void)
{
    begin();
    count_on_loop(0);
    count_on_loop(1);
    count_on_loop(1);
    read_text();
    CU_ASSERT_TRUE(has_line("sandgate_upstream_calls_total{upstream=\"fast\"} 3"));
    end();
}

static void without_metrics_nothing_is_counted(void)
{
    struct metric_request request = {.status = 200};
    metrics_request(NULL, &request);
    metrics_run(NULL, &sandboxes[0], METRIC_RUN_COMPLETED, 1);
    metrics_upstream_call(NULL, &upstreams[0], true);
    metrics_free(NULL);
    CU_ASSERT_TRUE(true); /* none of them looked behind NULL */
}

static const struct test tests[] = {
    TEST(every_series_is_there_from_the_start),
    TEST(each_family_is_described_once_before_its_series),
    TEST(requests_are_counted_by_route_and_status),
    TEST(a_histogram_is_cumulative_and_its_bounds_belong_to_it),
    TEST(upstreams_are_told_apart),
    TEST(an_upstream_that_comes_later_is_counted_and_one_that_comes_back_goes_on),
    TEST(upstreams_beyond_the_most_share_a_series),
    TEST(interceptors_of_one_name_share_a_series_and_odd_names_are_escaped),
    TEST(causes_of_sandboxes_searches_and_limits_have_words),
    TEST(loops_are_summed),
    TEST(without_metrics_nothing_is_counted),
};

int main(int argc, char **argv)
{
    return run_tests("metrics", tests, COUNT_OF(tests), argc, argv);
}
