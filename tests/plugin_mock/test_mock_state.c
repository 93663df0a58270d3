/* The mock sandbox with a folder (`state`): its containers outlive the instance, as those of a service outlive the gateway.
 * Two instances, one after the other, use the same handles. */
#include "sandbox_fixture.h"

#include <dirent.h>
#include <sched.h>
#include <time.h>

static char folder[64];

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void folder_open(struct fixture *f)
{
    fixture_init(f);
    config_set(plugin, f->config, "state", folder);
    fixture_open(f);
}

/* Another process: nothing but the folder, the handle and the journal is left. */
static void next_process(struct fixture *f)
{
    struct fixture next = {.config = config_new(plugin)};
    memcpy(next.handle, f->handle, sizeof next.handle);
    memcpy(next.journal, f->journal, sizeof next.journal);
    plugin->close(f->self, f->call);
    call_free(f->call);
    config_free(plugin, f->config);
    *f = next;
    config_set(plugin, f->config, "journal", f->journal);
    config_set(plugin, f->config, "state", folder);
    fixture_open(f);
}

static size_t files_in_folder(void)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void with_folder(void (*body)(struct fixture *f))
{
    struct fixture f;
    snprintf(folder, sizeof folder, "/tmp/mock_state_XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    folder_open(&f);
    body(&f);
    fixture_free(&f);
    CU_ASSERT_EQUAL(files_in_folder(), 0);
    rmdir(folder);
}

static int put(struct fixture *f, const char *path, const void *data, size_t len)
{
    begin_call(f);
    return plugin->sandbox->put(f->self, f->call, f->handle, path, data, len, call_error(f->call));
}

static int get(struct fixture *f, const char *path)
{
    begin_call(f);
    return plugin->sandbox->get(f->self, f->call, f->handle, path, call_error(f->call));
}

static void everything_is_there(struct fixture *f)
{
    static const char bytes[] = "a\0\xff\n\"b";
    CU_ASSERT_EQUAL(create(f, "sg-one", 0), 0);
    CU_ASSERT_EQUAL(run(f, "x = 5; y = -9223372036854775807 - 1; s = \"it's \" + '\"\\n'"), 0);
    CU_ASSERT_EQUAL(put(f, "a.bin", bytes, sizeof bytes - 1), 0);
    next_process(f);
    CU_ASSERT_EQUAL(run(f, "print(x, y, s)"), 0);
    expect_text(f, SG_OUT_LOG_OUT, "5 -9223372036854775808 it's \"\n\n");
    CU_ASSERT_EQUAL(get(f, "a.bin"), 0);
    CU_ASSERT_EQUAL(f->call->outputs[0].len, sizeof bytes - 1);
    CU_ASSERT_EQUAL(memcmp(f->call->outputs[0].data, bytes, sizeof bytes - 1), 0);
    CU_ASSERT_EQUAL(destroy(f), 0);
    CU_ASSERT_EQUAL(run(f, "x"), SG_E_GONE_BEFORE);
    next_process(f);
    CU_ASSERT_EQUAL(run(f, "x"), SG_E_GONE_BEFORE);
    expect_journal(
        f, "create sg-one live=1\nrun sg-one\nclose live=1\nrun sg-one\n"
           "load sg-one live=1\ndestroy sg-one live=0\nrun sg-one\nclose live=0\nrun sg-one\n");
}

static void another_instance_finds_variables_and_files_by_the_handle(void)
{
    with_folder(everything_is_there);
}

static void own_labels(struct fixture *f)
{
    char first[sizeof f->handle];
    CU_ASSERT_EQUAL(create(f, "sg-one", 0), 0);
    CU_ASSERT_EQUAL(run(f, "x = 1"), 0);
    memcpy(first, f->handle, sizeof first);
    next_process(f);
    CU_ASSERT_EQUAL(create(f, "sg-two", 0), 0); /* with the same serial number */
    CU_ASSERT_EQUAL(run(f, "x = 2"), 0);
    char second[sizeof f->handle];
    memcpy(second, f->handle, sizeof second);
    memcpy(f->handle, first, sizeof first);
    CU_ASSERT_EQUAL(run(f, "print(x)"), 0);
    expect_text(f, SG_OUT_LOG_OUT, "1\n");
    CU_ASSERT_EQUAL(destroy(f), 0);
    memcpy(f->handle, second, sizeof second);
    CU_ASSERT_EQUAL(run(f, "print(x)"), 0);
    expect_text(f, SG_OUT_LOG_OUT, "2\n");
    CU_ASSERT_EQUAL(destroy(f), 0);
}

static void a_container_of_before_is_not_taken_for_a_new_one(void)
{
    with_folder(own_labels);
}

static void life_goes_on(struct fixture *f)
{
    CU_ASSERT_EQUAL(create(f, "sg-one", 1), 0); /* a millisecond */
    for (int64_t then = now_ms(); now_ms() <= then + 1;) {
        sched_yield(); /* until it is over */
    }
    next_process(f);
    CU_ASSERT_EQUAL(run(f, "1"), SG_E_GONE_BEFORE);
    CU_ASSERT_PTR_NOT_NULL(strstr(read_journal(f), "expire sg-one live=0\n"));
}

static void its_life_ends_while_nobody_runs(void)
{
    with_folder(life_goes_on);
}

static void no_paths(struct fixture *f)
{
    static const char *const handles[] = {"mock:1:../one", "mock:1:", "mock:1:a/b", "none",
                                          "mock:1:.hidden"};
    for (size_t i = 0; i < COUNT_OF(handles); i++) {
        snprintf(f->handle, sizeof f->handle, "%s", handles[i]);
        CU_ASSERT_EQUAL(run(f, "1"), SG_E_GONE_BEFORE);
    }
}

static void a_handle_leads_nowhere_but_into_the_folder(void)
{
    with_folder(no_paths);
}

static void not_whole(struct fixture *f)
{
    char path[128];
    CU_ASSERT_EQUAL(create(f, "sg-one", 0), 0);
    next_process(f);
    snprintf(path, sizeof path, "%s/sg-one.json", folder);
    FILE *file = fopen(path, "w");
    fputs("{\"ends_unix_ms\":\"", file);
    fclose(file);
    CU_ASSERT_EQUAL(run(f, "1"), SG_E_GONE_BEFORE);
    unlink(path);
}

static void one_that_is_not_whole_is_gone(void)
{
    with_folder(not_whole);
}

static void without_a_folder_handles_end_with_the_process(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_TRUE((plugin->flags & SG_DURABLE) != 0);
    CU_ASSERT_PTR_NULL(plugin->sandbox->account(f.self));
    fixture_free(&f);
}

static void the_folder_is_the_account(struct fixture *f)
{
    CU_ASSERT_STRING_EQUAL(plugin->sandbox->account(f->self), folder);
}

static void containers_belong_to_their_folder(void)
{
    with_folder(the_folder_is_the_account);
}

static void a_folder_that_cannot_be_used_stops_the_start(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "state", "/nonexistent/folder");
    begin_call(&f);
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(
        f.call->error.message,
        "'state': the folder '/nonexistent/folder' cannot be used: No such file or directory");
    call_free(f.call);
    config_free(plugin, f.config);
    unlink(f.journal);
}

static const struct test tests[] = {
    TEST(another_instance_finds_variables_and_files_by_the_handle),
    TEST(a_container_of_before_is_not_taken_for_a_new_one),
    TEST(its_life_ends_while_nobody_runs),
    TEST(a_handle_leads_nowhere_but_into_the_folder),
    TEST(one_that_is_not_whole_is_gone),
    TEST(without_a_folder_handles_end_with_the_process),
    TEST(containers_belong_to_their_folder),
    TEST(a_folder_that_cannot_be_used_stops_the_start),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[0];
    return run_tests("mock_state", tests, COUNT_OF(tests), argc, argv);
}
