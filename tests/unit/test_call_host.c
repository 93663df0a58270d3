/* core/plugin/host*.c: what the functions of the host's table do, with the plugin in a fiber and again on a worker. */
#include "base/log.h"
#include "call_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_t plugin_thread;
static pthread_t loop_thread;

static int run_plugin(call_invoke *plugin, void *arguments, struct sg_error *err)
{
    loop_thread = pthread_self();
    return call_run(call_of("call"), plugin, arguments, NULL, err);
}

/* ---- time, memory, messages ---- */

static int use_time(const struct instance *i, struct sg_call *call, void *arguments,
                    struct sg_error *err)
{
    (void)i, (void)arguments;
    int64_t began = clock_ms();
    CU_ASSERT_EQUAL(host->time_left_ms(call), INT64_MAX);
    CU_ASSERT_EQUAL(host->sleep(call, 7, err), 0);
    CU_ASSERT(clock_ms() >= began + 7);
    CU_ASSERT_EQUAL(host->sleep(call, -1, err), 0);
    return 0;
}

static int run_out_of_time(const struct instance *i, struct sg_call *call, void *arguments,
                           struct sg_error *err)
{
    (void)i, (void)arguments;
    int64_t before = clock_ms(), left = host->time_left_ms(call);
    CU_ASSERT(left >= 0 && left <= call->deadline - before);
    return host->sleep(call, 100000, err);
}

static void time_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(run_plugin(use_time, NULL, &err), 0);
    CU_ASSERT_EQUAL(run_out_of(run_out_of_time, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): sleep() in 'call' ended: time is up");
}

static void a_plugin_sleeps_no_longer_than_its_call(void)
{
    run_both(time_fiber);
}

static int use_memory(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments, (void)err;
    char *one = host->alloc(call, 10);
    CU_ASSERT(one != NULL && one[0] == 0 && one[9] == 0);
    CU_ASSERT_PTR_NULL(host->alloc(call, LIMIT_CALL_ARENA_BYTES - 9));
    CU_ASSERT_PTR_NULL(host->alloc(call, SIZE_MAX));
    char *most = host->alloc(call, LIMIT_CALL_ARENA_BYTES - 10);
    CU_ASSERT(most != NULL && most[LIMIT_CALL_ARENA_BYTES - 11] == 0);
    CU_ASSERT_PTR_NULL(host->alloc(call, 1));
    return 0;
}

static void memory_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *call = call_of("call");
    (void)arena_get(call_arena(call), 1000); /* the core's own does not count */
    CU_ASSERT_EQUAL(call_run(call, use_memory, NULL, NULL, &err), 0);
}

static void a_plugin_gets_its_memory_to_the_byte_and_no_more(void)
{
    run_both(memory_fiber);
}

static int say_things(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments;
    host->log(call, SG_INFO, "slow: %d tries\nfake=line", 3);
    host->log(call, SG_DEBUG, "not wanted");
    host->log(NULL, (enum sg_level)99, "odd");
    CU_ASSERT_EQUAL(host->fail(NULL, SG_E_LIMIT, "nowhere"), SG_E_LIMIT);
    return host->fail(err, (enum sg_code)77, "a code of %s", "its own");
}

static void log_fiber(void *arg)
{
    int *fds = arg;
    char text[2048] = "";
    struct sg_error err = {0};
    log_set_fd(fds[1]);
    CU_ASSERT_EQUAL(run_plugin(say_things, NULL, &err), SG_E_INTERNAL);
    log_set_fd(2);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): a code of its own");
    CU_ASSERT(read(fds[0], text, sizeof text - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text,
                                  "level=info event=plugin plugin=fake instance=one operation=call "
                                  "request=req_1 message=\"slow: 3 tries\\x0afake=line\"\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "level=info event=plugin message=odd\n"));
    CU_ASSERT_PTR_NULL(strstr(text, "not wanted"));
}

static int log_fds[2];

static void log_fiber_both(void *arg)
{
    (void)arg;
    log_fiber(log_fds);
}

static void a_plugins_line_names_plugin_instance_and_request(void)
{
    CU_ASSERT_EQUAL_FATAL(pipe2(log_fds, O_CLOEXEC), 0);
    run_both(log_fiber_both);
    close(log_fds[0]);
    close(log_fds[1]);
}

/* ---- who asks ---- */

static int ask_identity(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)err;
    const char *identity = host->identity(call);
    CU_ASSERT_EQUAL(identity == NULL, arguments == NULL);
    CU_ASSERT_TRUE(identity == NULL || strcmp(identity, arguments) == 0);
    return 0;
}

static void identity_fiber(void *arg)
{
    static const struct sg_interceptor_ops operations = {0};
    struct sg_error err = {0};
    struct sg_plugin plugin = {.name = "hook", .flags = instance->plugin->flags};
    struct instance hook = {.name = "hook", .plugin = &plugin};
    static char name[] = "team-a";
    char *const expected[] = {NULL, name, NULL}; /* a provider's, an interceptor's, nobody's */
    (void)arg;
    for (int i = 0; i < 3; i++) {
        plugin.interceptor = i == 0 ? NULL : &operations;
        struct sg_call *call = call_new(&hook, "request", NULL, NULL, DEADLINE_NONE);
        if (i < 2) {
            call_set_identity(call, STR("team-a"));
        }
        CU_ASSERT_EQUAL(call_run(call, ask_identity, expected[i], NULL, &err), 0);
    }
}

static void interceptors_are_told_who_asks_and_providers_are_not(void)
{
    run_both(identity_fiber);
}

static int ask_tool_options(const struct instance *i, struct sg_call *call, void *arguments,
                            struct sg_error *err)
{
    (void)i, (void)err;
    const char *options = host->tool_options(call);
    CU_ASSERT_EQUAL(options == NULL, arguments == NULL);
    CU_ASSERT_TRUE(options == NULL || strcmp(options, arguments) == 0);
    return 0;
}

static void tool_options_fiber(void *arg)
{
    static char text[] = "{\"max_uses\": 3}";
    char *const expected[] = {text, NULL, NULL};
    struct sg_error err = {0};
    (void)arg;
    for (int i = 0; i < 3; i++) {
        struct sg_call *call = call_new(instance, "call", NULL, NULL, DEADLINE_NONE);
        if (i < 2) {
            call_set_tool_options(call, str_of(expected[i]));
        }
        CU_ASSERT_EQUAL(call_run(call, ask_tool_options, expected[i], NULL, &err), 0);
    }
}

static void a_tool_is_told_what_the_client_asked_of_it(void)
{
    run_both(tool_options_fiber);
}

/* ---- descriptors and threads ---- */

static int use_fd(const struct instance *i, struct sg_call *call, void *arguments,
                  struct sg_error *err)
{
    (void)i;
    int *fds = arguments, events = 0;
    CU_ASSERT_EQUAL(host->wait_fd(call, fds[0], SG_READ, 3, &events, err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err->message, "wait_fd() in 'call' ended: time is up");
    CU_ASSERT_EQUAL(write(fds[1], "x", 1), 1);
    CU_ASSERT_EQUAL(host->wait_fd(call, fds[0], SG_READ, -1, &events, err), 0);
    CU_ASSERT_EQUAL(events, SG_READ);
    char got = 0;
    CU_ASSERT_EQUAL(read(fds[0], &got, 1), 1);
    CU_ASSERT_EQUAL(host->wait_fd(call, fds[1], SG_READ | SG_WRITE, -1, &events, err), 0);
    CU_ASSERT_EQUAL(events, SG_WRITE);
    CU_ASSERT_EQUAL(host->wait_fd(call, fds[0], SG_HANGUP, -1, &events, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "wait_fd(): events must be SG_READ, SG_WRITE or both");
    CU_ASSERT_EQUAL(host->wait_fd(call, -1, SG_READ, -1, &events, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "wait_fd(): -1 is no open descriptor");
    (void)host->emit(call, SG_OUT_STATUS, "waits", 5, err);
    return host->wait_fd(call, fds[0], SG_READ, -1, &events, err); /* until cancelled */
}

static void fd_fiber(void *arg)
{
    (void)arg;
    int fds[2];
    struct sg_error err = {0};
    struct call_output output = {0};
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct sg_call *call = call_of("call");
    call_start(call, use_fd, fds);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    call_cancel(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "fake (one): wait_fd() in 'call' ended: the call is cancelled");
    call_unref(call);
    close(fds[0]);
    close(fds[1]);
}

static void a_plugin_waits_for_a_descriptor(void)
{
    run_both(fd_fiber);
}

static int note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return SG_E_DENIED;
}

static int use_blocking(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    pthread_t thread = loop_thread;
    (void)i, (void)arguments;
    CU_ASSERT_EQUAL(host->blocking(call, note_thread, &thread, err), SG_E_DENIED);
    CU_ASSERT_FALSE(pthread_equal(thread, loop_thread));
    CU_ASSERT_EQUAL(pthread_equal(thread, pthread_self()) != 0, tests_worker());
    return 0;
}

static void blocking_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(run_plugin(use_blocking, NULL, &err), 0);
}

static void what_blocks_runs_on_a_worker(void)
{
    run_both(blocking_fiber);
}

/* ---- the gateway's services: the core's part on the home loop, sinks in the plugin's thread ---- */

static int count_events;

static int service_run_code(struct sg_call *call, const struct sg_run *run,
                            const struct sg_sink *sink, struct sg_error *err)
{
    CU_ASSERT(pthread_equal(pthread_self(), loop_thread));
    CU_ASSERT_PTR_NOT_NULL(fiber_self());
    CU_ASSERT_STRING_EQUAL(call_request_id(call), "req_1");
    for (count_events = 0; count_events < 100; count_events++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s %d", run->code, count_events);
        int code = sink->event(sink->ctx, SG_OUT_LOG_OUT, text, strlen(text), err);
        memset(text, '#', sizeof text); /* borrowed until event() returned, and no longer */
        if (code != 0) {
            return code;
        }
        fiber_yield();
    }
    return error_set(err, SG_E_GONE, "the container is gone");
}

static int sink_code_at; /* the event that the sink refuses */

static int take_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct sg_call *call = ctx;
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "print %d", count_events);
    CU_ASSERT(pthread_equal(pthread_self(), plugin_thread));
    CU_ASSERT_EQUAL(kind, SG_OUT_LOG_OUT);
    CU_ASSERT(len == strlen(wanted) && memcmp(data, wanted, len) == 0);
    if (count_events == sink_code_at) {
        return host->fail(err, SG_E_LIMIT, "enough");
    }
    return host->emit(call, kind, data, len, err);
}

static int use_run_code(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_run run = {.code = "print", .code_len = 5};
    struct sg_sink sink = {take_event, call};
    plugin_thread = pthread_self();
    return host->run_code(call, &run, &sink, err);
}

static void run_code_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    sink_code_at = -1;
    CU_ASSERT_EQUAL(run_plugin(use_run_code, NULL, &err), SG_E_GONE);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): the container is gone");
    CU_ASSERT_EQUAL(count_events, 100);
    sink_code_at = 7;
    CU_ASSERT_EQUAL(run_plugin(use_run_code, NULL, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): enough");
    CU_ASSERT_EQUAL(count_events, 7);
}

static void a_sink_runs_in_the_plugins_own_thread(void)
{
    core_services_set(&(struct core_services){.run_code = service_run_code});
    run_both(run_code_fiber);
}

static int service_put(struct sg_call *call, const char *path, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)call;
    CU_ASSERT(pthread_equal(pthread_self(), loop_thread));
    return error_set(err, SG_E_DENIED, "put %s %.*s", path, (int)len, (const char *)data);
}

static int service_get(struct sg_call *call, const char *path, const struct sg_sink *sink,
                       struct sg_error *err)
{
    (void)call;
    CU_ASSERT(pthread_equal(pthread_self(), loop_thread));
    int code = sink->event(sink->ctx, SG_OUT_DATA, path, strlen(path), err);
    return code != 0 ? code : sink->event(sink->ctx, SG_OUT_DATA, "!", 1, err);
}

static int service_search(struct sg_call *call, const struct sg_query *query,
                          const struct sg_sink *sink, struct sg_error *err)
{
    return service_get(call, query->text, sink, err);
}

static int collect(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)err;
    CU_ASSERT_EQUAL(kind, SG_OUT_DATA);
    CU_ASSERT(pthread_equal(pthread_self(), plugin_thread));
    return buf_append(ctx, data, len) ? 0 : SG_E_LIMIT;
}

static int use_files(const struct instance *i, struct sg_call *call, void *arguments,
                     struct sg_error *err)
{
    (void)i, (void)arguments;
    BUF_CLEANUP struct buf got = {0};
    struct sg_sink sink = {collect, &got};
    struct sg_query query = {.text = "words"};
    plugin_thread = pthread_self();
    CU_ASSERT_EQUAL(host->file_put(call, "/a", "data", 4, err), SG_E_DENIED);
    CU_ASSERT_STRING_EQUAL(err->message, "put /a data");
    CU_ASSERT_EQUAL(host->file_get(call, "/b", &sink, err), 0);
    CU_ASSERT_EQUAL(host->file_list(call, "/c", &sink, err), 0);
    CU_ASSERT_EQUAL(host->search(call, &query, &sink, err), 0);
    CU_ASSERT_EQUAL(host->search(call, &query, NULL, err), 0);
    CU_ASSERT_STRING_EQUAL(got.data, "/b!/c!words!");
    return 0;
}

static void files_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(run_plugin(use_files, NULL, &err), 0);
}

static void files_and_search_go_to_the_gateways_services(void)
{
    core_services_set(&(struct core_services){.file_put = service_put,
                                              .file_get = service_get,
                                              .file_list = service_get,
                                              .search = service_search});
    run_both(files_fiber);
}

static int use_nothing(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_query query = {0};
    CU_ASSERT_EQUAL(host->file_put(call, "/a", "data", 4, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "file_put() is not available here");
    CU_ASSERT_EQUAL(host->file_get(call, "/a", NULL, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "file_get() is not available here");
    CU_ASSERT_EQUAL(host->file_list(call, "/a", NULL, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "file_list() is not available here");
    CU_ASSERT_EQUAL(host->search(call, &query, NULL, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "search() is not available here");
    return use_run_code(i, call, arguments, err);
}

static void nothing_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(run_plugin(use_nothing, NULL, &err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): run_code() is not available here");
}

static void services_that_are_not_there_say_so(void)
{
    core_services_set(&(struct core_services){0});
    run_both(nothing_fiber);
}

static int wait_for_ever(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    (void)run;
    int code = sink->event(sink->ctx, SG_OUT_LOG_OUT, "print 0", 7, err);
    CU_ASSERT_EQUAL(code, 0);
    code = fiber_park(DEADLINE_NONE);
    return error_set(err, code, "service of %s ended", call_instance(call)->name);
}

static void cancel_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct call_output output = {0};
    sink_code_at = -1;
    count_events = 0;
    struct sg_call *call = call_of("call");
    call_start(call, use_run_code, NULL);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    call_cancel(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): service of one ended");
    call_unref(call);
    CU_ASSERT_EQUAL(run_out_of(use_run_code, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): service of one ended");
}

static void cancelling_and_the_deadline_reach_a_service(void)
{
    core_services_set(&(struct core_services){.run_code = wait_for_ever});
    run_both(cancel_fiber);
}

/* ---- the table ---- */

/* All of it is pointers behind the two numbers; a function that was forgotten would be NULL. */
static void every_function_of_the_table_is_there(void)
{
    CU_ASSERT_EQUAL_FATAL(host_table()->size, sizeof(struct sg_host));
    for (size_t at = offsetof(struct sg_host, log); at < sizeof(struct sg_host);
         at += sizeof(void *)) {
        void *function;
        memcpy(&function, (const char *)host_table() + at, sizeof function);
        CU_ASSERT_PTR_NOT_NULL(function);
    }
}

static void a_plugin_reads_what_an_error_says(void)
{
    struct sg_error err = {0};
    CU_ASSERT_STRING_EQUAL(host_table()->message(&err), "");
    (void)host_table()->fail(&err, SG_E_GONE, "box %d is gone", 7); /* the text is looked at */
    CU_ASSERT_STRING_EQUAL(host_table()->message(&err), "box 7 is gone");
    (void)host_table()->fail(&err, SG_E_GONE, "%s: %s", "wrapped", host_table()->message(&err));
    CU_ASSERT_STRING_EQUAL(host_table()->message(&err), "wrapped: box 7 is gone");
}

/* ---- misuse ---- */

static void *use_on_other_thread(void *arg)
{
    struct sg_call *call = arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_DATA, "x", 1, &err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err.message, "emit() was used on a thread that was not called");
    CU_ASSERT_EQUAL(host->sleep(call, 1, &err), SG_E_INTERNAL);
    CU_ASSERT_PTR_NULL(host->alloc(call, 1));
    CU_ASSERT_EQUAL(host->sleep(NULL, 1, &err), SG_E_INTERNAL);
    return NULL;
}

static int hand_call_on(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments, (void)err;
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, use_on_other_thread, call), 0);
    pthread_join(thread, NULL);
    return 0;
}

static void misuse_fiber(void *arg)
{
    (void)arg;
    char text[4096] = "";
    struct sg_error err = {0};
    log_set_fd(log_fds[1]);
    CU_ASSERT_EQUAL(run_plugin(hand_call_on, NULL, &err), 0);
    log_set_fd(2);
    CU_ASSERT(read(log_fds[0], text, sizeof text - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        text,
        "level=error event=plugin_misuse function=emit plugin=fake instance=one operation=call\n"));
}

static void a_call_used_on_another_thread_is_refused_and_logged(void)
{
    CU_ASSERT_EQUAL_FATAL(pipe2(log_fds, O_CLOEXEC), 0);
    run_both(misuse_fiber);
    close(log_fds[0]);
    close(log_fds[1]);
}

static const struct test tests[] = {
    TEST(a_plugin_sleeps_no_longer_than_its_call),
    TEST(a_plugin_gets_its_memory_to_the_byte_and_no_more),
    TEST(a_plugins_line_names_plugin_instance_and_request),
    TEST(a_plugin_waits_for_a_descriptor),
    TEST(what_blocks_runs_on_a_worker),
    TEST(a_sink_runs_in_the_plugins_own_thread),
    TEST(files_and_search_go_to_the_gateways_services),
    TEST(services_that_are_not_there_say_so),
    TEST(cancelling_and_the_deadline_reach_a_service),
    TEST(every_function_of_the_table_is_there),
    TEST(a_plugin_reads_what_an_error_says),
    TEST(a_call_used_on_another_thread_is_refused_and_logged),
    TEST(interceptors_are_told_who_asks_and_providers_are_not),
    TEST(a_tool_is_told_what_the_client_asked_of_it),
};

int main(int argc, char **argv)
{
    return run_tests("call_host", tests, COUNT_OF(tests), argc, argv);
}
