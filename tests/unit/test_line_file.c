/* Lines written by a thread of their own: whole, in order, bounded while the disk is full, into a new file once the old one was
 * renamed. What is waited for is the file's state, never a time. */
#include "cunit_main.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/line_file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sandgate-lines-XXXXXX";
static char path[64], renamed[64];

static struct line_file *open_file(size_t waiting_max)
{
    struct line_file_options options = {
        .name = "accounting", .path = path, .waiting_max = waiting_max};
    struct line_file *file = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(line_file_open(&options, &file, &err), 0);
    return file;
}

static void await(struct line_file *file, uint64_t written, uint64_t lost)
{
    struct line_file_stats stats = {0};
    for (int64_t until = deadline_in(60000); clock_ms() < until;) {
        line_file_stats(file, &stats);
        if (stats.written >= written && stats.lost >= lost) {
            break;
        }
        (void)usleep(1000);
    }
    CU_ASSERT_EQUAL(stats.written, written);
    CU_ASSERT_EQUAL(stats.lost, lost);
}

static void expect_text(const char *of, const char *wanted)
{
    char text[256] = "";
    FILE *file = fopen(of, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    CU_ASSERT_STRING_EQUAL(text, wanted);
}

static void lines_are_appended_in_order_and_only_the_owner_may_read_them(void)
{
    struct stat status;
    struct line_file *file = open_file(1024);
    line_file_put(file, STR("one"));
    line_file_put(file, STR("two"));
    line_file_close(file);
    file = open_file(1024);
    line_file_put(file, STR("three"));
    line_file_close(file);
    expect_text(path, "one\ntwo\nthree\n");
    CU_ASSERT_EQUAL(stat(path, &status), 0);
    CU_ASSERT_EQUAL(status.st_mode & 07777, 0600);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void a_file_that_was_renamed_is_left_where_it_is(void)
{
    struct line_file *file = open_file(1024);
    line_file_put(file, STR("one"));
    await(file, 1, 0);
    CU_ASSERT_EQUAL(rename(path, renamed), 0);
    line_file_put(file, STR("two"));
    await(file, 2, 0);
    line_file_reopen(file);
    while (access(path, F_OK) != 0) {
        (void)usleep(1000);
    }
    line_file_put(file, STR("three"));
    line_file_close(file);
    expect_text(renamed, "one\ntwo\n");
    expect_text(path, "three\n");
    CU_ASSERT_EQUAL(unlink(path), 0);
    CU_ASSERT_EQUAL(unlink(renamed), 0);
}

static void a_full_disk_loses_what_finds_no_room_and_nothing_else(void)
{
    CU_ASSERT_EQUAL(symlink("/dev/full", path), 0);
    struct line_file *file = open_file(8); /* of what waits; what is being written is beside it */
    line_file_put(file, STR("far too long a line"));
    await(file, 0, 1);
    for (uint64_t tries = 0; tries < 1000; tries++) {
        line_file_put(file, STR("one"));
    }
    struct line_file_stats stats;
    line_file_stats(file, &stats);
    CU_ASSERT_TRUE(stats.lost >= 1 + 1000 - 4);
    CU_ASSERT_EQUAL(stats.written, 0);
    uint64_t waiting = 1001 - stats.lost;
    CU_ASSERT_EQUAL(unlink(path), 0); /* there is room again, elsewhere */
    line_file_reopen(file);
    await(file, waiting, stats.lost);
    line_file_put(file, STR("two"));
    line_file_close(file);
    char wanted[32] = "";
    for (uint64_t i = 0; i < waiting; i++) {
        (void)strncat(wanted, "one\n", sizeof wanted - strlen(wanted) - 1);
    }
    (void)strncat(wanted, "two\n", sizeof wanted - strlen(wanted) - 1);
    expect_text(path, wanted);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

/* The file takes no more than so many bytes. */
static void file_bytes_max(rlim_t bytes)
{
    struct rlimit limit;
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_line_that_is_torn_is_not_continued_in_another_file(void)
{
    struct line_file *file = open_file(1024);
    file_bytes_max(10);
    line_file_put(file, STR("one"));
    line_file_put(file, STR("twotwo"));
    await(file, 1, 0);
    CU_ASSERT_EQUAL(rename(path, renamed), 0);
    line_file_reopen(file);
    await(file, 1, 1);
    line_file_put(file, STR("three"));
    await(file, 2, 1);
    file_bytes_max(RLIM_INFINITY);
    line_file_close(file);
    expect_text(renamed, "one\ntwotwo");
    expect_text(path, "three\n");
    CU_ASSERT_EQUAL(unlink(path), 0);
    CU_ASSERT_EQUAL(unlink(renamed), 0);
}

static void a_line_that_is_torn_is_made_whole_when_there_is_room(void)
{
    struct line_file *file = open_file(1024);
    file_bytes_max(10);
    line_file_put(file, STR("one"));
    line_file_put(file, STR("twotwo"));
    await(file, 1, 0);
    file_bytes_max(RLIM_INFINITY);
    await(file, 2, 0);
    line_file_close(file);
    expect_text(path, "one\ntwotwo\n");
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void an_end_on_a_full_disk_is_an_end(void)
{
    CU_ASSERT_EQUAL(symlink("/dev/full", path), 0);
    struct line_file *file = open_file(1024);
    line_file_put(file, STR("one"));
    line_file_close(file);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void what_cannot_be_opened_is_told_with_its_path(void)
{
    struct line_file_options options = {
        .name = "audit", .path = "/no/such/folder/x", .waiting_max = 8, .is_private = true};
    struct line_file *file = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(line_file_open(&options, &file, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "'/no/such/folder/x' cannot be opened: No such file or directory");
    FILE *made = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    (void)fclose(made);
    CU_ASSERT_EQUAL(chmod(path, 0640), 0);
    options.path = path;
    CU_ASSERT_EQUAL(line_file_open(&options, &file, &err), SG_E_CONFIG);
    char wanted[256];
    (void)snprintf(wanted, sizeof wanted, "'%s' is open to others (mode 0640): chmod 600 '%s'",
                   path, path);
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    CU_ASSERT_PTR_NULL(file);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static const struct test tests[] = {
    TEST(lines_are_appended_in_order_and_only_the_owner_may_read_them),
    TEST(a_file_that_was_renamed_is_left_where_it_is),
    TEST(a_full_disk_loses_what_finds_no_room_and_nothing_else),
    TEST(a_line_that_is_torn_is_not_continued_in_another_file),
    TEST(a_line_that_is_torn_is_made_whole_when_there_is_room),
    TEST(an_end_on_a_full_disk_is_an_end),
    TEST(what_cannot_be_opened_is_told_with_its_path),
};

int main(int argc, char **argv)
{
    CHECK(mkdtemp(folder) != NULL);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    (void)snprintf(path, sizeof path, "%s/lines", folder);
    (void)snprintf(renamed, sizeof renamed, "%s/renamed", folder);
    int code = run_tests("line_file", tests, COUNT_OF(tests), argc, argv);
    CHECK(rmdir(folder) == 0);
    return code;
}
