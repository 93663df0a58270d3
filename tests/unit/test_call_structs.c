/* core/plugin/structs.c: a plugin of an older minor passes structs that end earlier than the core's. Nothing beyond their
 * end is read or written; what it does not know is zero. With the plugin in a fiber and again on a worker. */
#include "call_fixture.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#define UP_TO(type, member) ((uint32_t)(offsetof(type, member) + sizeof(((type *)0)->member)))

/* As a smaller 1.0 would have had them, and no search at all. */
static const uint32_t sizes[] = {
    [SG_STRUCT_RUN] = UP_TO(struct sg_run, code_len),
    [SG_STRUCT_QUERY] = UP_TO(struct sg_query, count_max),
    [SG_STRUCT_SINK] = sizeof(struct sg_sink),
    [SG_STRUCT_HTTP_REQUEST] = UP_TO(struct sg_http_request, body_len),
    [SG_STRUCT_HTTP_REPLY] = UP_TO(struct sg_http_reply, headers),
    [SG_STRUCT_SPAWN] = sizeof(struct sg_spawn),
    [SG_STRUCT_SPAWN_FD] = UP_TO(struct sg_spawn_fd, fd),
    [SG_STRUCT_CHILD] = sizeof(struct sg_child),
};
static const struct instance old_on_loop = {
    .name = "one", .plugin = &loop_plugin, .sizes = sizes, .sizes_count = COUNT_OF(sizes)};
static const struct instance old_on_worker = {
    .name = "one", .plugin = &worker_plugin, .sizes = sizes, .sizes_count = COUNT_OF(sizes)};

/* The beginning of a struct on the heap: AddressSanitizer sees a step beyond it. */
static void *cut(const void *whole, uint32_t size)
{
    void *copy = check_alloc(malloc(size));
    memcpy(copy, whole, size);
    return copy;
}

static void run_old(call_invoke *plugin)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("call"), plugin, NULL, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(err.message, "");
}

static void run_both_old(void (*fiber)(void *))
{
    run_once(&old_on_loop, fiber, 2);
    run_once(&old_on_worker, fiber, 2);
}

/* ---- what the gateway does for interceptors ---- */

static struct sg_run seen_run;
static struct sg_query seen_query;

static int note_run(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                    struct sg_error *err)
{
    (void)call;
    seen_run = *run;
    return sink->event(sink->ctx, SG_OUT_LOG_OUT, "out", 3, err);
}

static int note_query(struct sg_call *call, const struct sg_query *query,
                      const struct sg_sink *sink, struct sg_error *err)
{
    (void)call, (void)sink, (void)err;
    seen_query = *query;
    return 0;
}

static int count_event(void *context, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)kind, (void)data, (void)err;
    *(size_t *)context += len;
    return 0;
}

static int ask_gateway(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    size_t bytes = 0;
    struct sg_sink whole_sink = {count_event, &bytes};
    struct sg_run whole_run = {.language = "python", .code = "1", .code_len = 1};
    struct sg_query whole_query = {.text = "x", .count_max = 3};
    struct sg_sink *sink = cut(&whole_sink, sizes[SG_STRUCT_SINK]);
    struct sg_run *run = cut(&whole_run, sizes[SG_STRUCT_RUN]);
    struct sg_query *query = cut(&whole_query, sizes[SG_STRUCT_QUERY]);
    CU_ASSERT_EQUAL(host->run_code(call, run, sink, err), 0);
    CU_ASSERT_EQUAL(bytes, 3);
    CU_ASSERT_EQUAL(host->search(call, query, NULL, err), 0);
    free(sink), free(run), free(query);
    return 0;
}

static void gateway_fiber(void *arg)
{
    (void)arg;
    memset(&seen_run, 0xFF, sizeof seen_run);
    memset(&seen_query, 0xFF, sizeof seen_query);
    run_old(ask_gateway);
    CU_ASSERT_STRING_EQUAL(seen_run.language, "python");
    CU_ASSERT_EQUAL(seen_run.code_len, 1);
    CU_ASSERT_EQUAL(seen_run.timeout_ms, 0);
    CU_ASSERT_STRING_EQUAL(seen_query.text, "x");
    CU_ASSERT_EQUAL(seen_query.count_max, 3);
    CU_ASSERT_PTR_NULL(seen_query.allowed);
    CU_ASSERT_PTR_NULL(seen_query.language);
}

static void runs_and_queries_end_where_the_plugins_do(void)
{
    run_both_old(gateway_fiber);
}

/* ---- http ---- */

static int ask_http(const struct instance *i, struct sg_call *call, void *arguments,
                    struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_http_request whole = {
        .method = "PUT", .url = "http://h/x", .body = "in", .body_len = 2};
    struct sg_http_request *request = cut(&whole, sizes[SG_STRUCT_HTTP_REQUEST]);
    struct sg_http_reply none = {0}, *reply = cut(&none, sizes[SG_STRUCT_HTTP_REPLY]);
    CU_ASSERT_EQUAL(host->http(call, request, reply, NULL, err), 0);
    CU_ASSERT_EQUAL(reply->status, 204);
    CU_ASSERT_EQUAL(reply->headers.count, 0);
    free(request), free(reply);
    return 0;
}

static void http_fiber(void *arg)
{
    static const char *const pieces[] = {"more than it can see", NULL};
    (void)arg;
    fetch_script = (struct fetch_script){.status = 204, .pieces = pieces};
    run_old(ask_http);
    CU_ASSERT_STRING_EQUAL(fetch_script.method, "PUT");
    CU_ASSERT_STRING_EQUAL(fetch_script.body, "in");
    CU_ASSERT_EQUAL(fetch_script.silence_ms,
                    60000); /* the default: zero is what it does not know */
}

static void an_exchange_and_its_reply_too(void)
{
    run_both_old(http_fiber);
}

/* ---- children ---- */

/* An array goes by the plugin's stride: its one descriptor, at the only number that it knows of, 0. */
static int start_child(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    static const char *const argv[] = {"sh", "-c", "read -r word && [ \"$word\" = hello ]", NULL};
    int ends[2], status = -1;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(write(ends[1], "hello\n", 6) == 6);
    (void)close(ends[1]);
    int *fds = cut(&ends[0], sizes[SG_STRUCT_SPAWN_FD]);
    struct sg_spawn spawn = {
        .path = "/bin/sh", .argv = argv, .fds = (const struct sg_spawn_fd *)fds, .fds_count = 1};
    struct sg_child child = {.pidfd = -1};
    CU_ASSERT_EQUAL(host->spawn(call, &spawn, &child, err), 0);
    CU_ASSERT_EQUAL(host->wait_child(call, &child, -1, &status, err), 0);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(child.pidfd);
    (void)close(ends[0]);
    free(fds);
    return 0;
}

static void child_fiber(void *arg)
{
    (void)arg;
    run_old(start_child);
}

static void arrays_go_by_the_plugins_stride(void)
{
    run_both_old(child_fiber);
}

static int spawn_many(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_child child = {0};
    struct sg_spawn spawn = {.path = "/bin/true", .fds_count = 257};
    return host->spawn(call, &spawn, &child, err);
}

static void many_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("call"), spawn_many, NULL, NULL, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): spawn(): 257 descriptors are more than 256");
}

static void too_many_descriptors_are_refused(void)
{
    run_both(many_fiber);
}

static const struct test tests[] = {
    TEST(runs_and_queries_end_where_the_plugins_do),
    TEST(an_exchange_and_its_reply_too),
    TEST(arrays_go_by_the_plugins_stride),
    TEST(too_many_descriptors_are_refused),
};

int main(int argc, char **argv)
{
    static const struct core_services services = {.run_code = note_run, .search = note_query};
    core_services_set(&services);
    return run_tests("call_structs", tests, COUNT_OF(tests), argc, argv);
}
