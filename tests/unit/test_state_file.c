/* core/gateway/state_file: its lock, where somebody removes the file of it at the worst of moments. Reading, writing and what an
 * operator is told are looked at from outside (e2e/test_restart.py). */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/state_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sandgate-test-state-XXXXXX";
static char path[100], lock_path[sizeof path + 10];
static int removals; /* that are left: each lets a lock be taken of a file without a name */
static const char *link_target; /* NULL: none; else what is removed is a link there afterwards */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
    if (removals > 0) {
        removals--;
        CHECK(unlink(lock_path) == 0);
        CHECK(link_target == NULL || symlink(link_target, lock_path) == 0);
    }
    return __real_flock(fd, operation);
}

static int open_state(struct state_file **ret, struct sg_error *err)
{
    *err = (struct sg_error){0};
    return state_file_open(path, ret, err);
}

static void a_lock_whose_file_goes_while_it_is_taken_is_taken_again(void)
{
    struct state_file *first, *second;
    struct sg_error err;
    removals = 3;
    CU_ASSERT_EQUAL_FATAL(open_state(&first, &err), 0);
    CU_ASSERT_EQUAL(removals, 0);
    CU_ASSERT_EQUAL(open_state(&second, &err), SG_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "another gateway uses"));
    state_file_close(first);
}

static void a_lock_that_is_removed_again_and_again_is_none(void)
{
    struct state_file *file;
    struct sg_error err;
    char wanted[200];
    removals = 1000;
    CU_ASSERT_EQUAL(open_state(&file, &err), SG_E_CONFIG);
    (void)snprintf(wanted, sizeof wanted,
                   "sessions.state_file: '%s' cannot be locked: somebody removes its lock again "
                   "and again",
                   path);
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    removals = 0;
}

static void a_lock_that_was_removed_is_taken_anew_or_told_to_be_anothers(void)
{
    struct state_file *first, *second;
    struct sg_error err;
    bool was_gone = true;
    CU_ASSERT_EQUAL_FATAL(open_state(&first, &err), 0);
    CU_ASSERT_EQUAL(state_file_hold(first, &was_gone, &err), 0);
    CU_ASSERT_FALSE(was_gone);
    CU_ASSERT_EQUAL(unlink(lock_path), 0);
    CU_ASSERT_EQUAL(state_file_hold(first, &was_gone, &err), 0);
    CU_ASSERT_TRUE(was_gone);
    CU_ASSERT_EQUAL(open_state(&second, &err), SG_E_CONFIG);
    CU_ASSERT_EQUAL(unlink(lock_path), 0);
    CU_ASSERT_EQUAL_FATAL(open_state(&second, &err), 0);
    CU_ASSERT_EQUAL(state_file_hold(first, &was_gone, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_FALSE(was_gone);
    CU_ASSERT_EQUAL(state_file_hold(second, &was_gone, &err), 0);
    state_file_close(second);
    CU_ASSERT_EQUAL(state_file_hold(first, &was_gone, &err), 0); /* the other has ended */
    CU_ASSERT_TRUE(was_gone);
    state_file_close(first);
}

/* A link in its place would have us lock, or make, a file of somebody's choice: whether it is there before or comes after that was
 * looked at. */
static void a_link_is_no_lock(void)
{
    struct state_file *file;
    struct sg_error err;
    struct stat is;
    char target[100], wanted[400];
    (void)snprintf(target, sizeof target, "%s/target", folder);
    (void)unlink(lock_path);
    CU_ASSERT_EQUAL_FATAL(symlink(target, lock_path), 0);
    CU_ASSERT_EQUAL(open_state(&file, &err), SG_E_CONFIG);
    (void)snprintf(wanted, sizeof wanted,
                   "sessions.state_file: '%s.lock' is no plain file and cannot be the lock of "
                   "'%s': remove it, or choose another name",
                   path, path);
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    CU_ASSERT_EQUAL(unlink(lock_path), 0);
    removals = 1;
    link_target = target;
    CU_ASSERT_EQUAL(open_state(&file, &err), SG_E_CONFIG);
    CU_ASSERT_EQUAL(removals, 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.message, "cannot be locked (its folder must be writable for us): "));
    link_target = NULL;
    CU_ASSERT_EQUAL(lstat(target, &is), -1);
    CU_ASSERT_EQUAL(unlink(lock_path), 0);
}

static const struct test tests[] = {
    TEST(a_lock_whose_file_goes_while_it_is_taken_is_taken_again),
    TEST(a_lock_that_is_removed_again_and_again_is_none),
    TEST(a_lock_that_was_removed_is_taken_anew_or_told_to_be_anothers),
    TEST(a_link_is_no_lock),
};

int main(int argc, char **argv)
{
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/sessions.json", folder);
    (void)snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    int result = run_tests("state_file", tests, COUNT_OF(tests), argc, argv);
    (void)unlink(lock_path);
    (void)rmdir(folder);
    return result;
}
