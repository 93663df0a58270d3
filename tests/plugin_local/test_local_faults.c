/* What a box rests on, and that none is used where one piece of it is not there: a broker whose system calls fail, or do
 * nothing, in one place (faults.c) is put in the place of the real one, and the provider must refuse to open, and say
 * why. */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/sandgate-local-faults-XXXXXX";

static bool broker_place(const char *fault)
{
    char path[128];
    snprintf(path, sizeof path, "%s/local-broker", folder);
    if (access(path, X_OK) != 0 && symlink(FAULTY_BROKER, path) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "%s/fault", folder);
    FILE *file = fopen(path, "we");
    return file != NULL && fputs(fault, file) >= 0 && fclose(file) == 0;
}

/* Opens the provider with the fault: open_code and `e`. */
static void open_with(const char *fault, const struct host_options *given)
{
    struct host_options options = given != NULL ? *given : (struct host_options){0};
    options.libexec = folder;
    CU_ASSERT_TRUE_FATAL(broker_place(fault));
    host_run(open_fiber, &options);
}

static void expect_refusal(const char *fault, const char *message)
{
    open_with(fault, NULL);
    if (open_code != SG_E_CONFIG) {
        fprintf(stderr, "\nwith '%s': %d\n", fault, open_code);
    }
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message, message);
}

static void without_a_fault_it_opens(void)
{
    open_with("none - 0", NULL);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL(open_code, 0);
}

/* ---- what fails ---- */

static void a_cover_that_fails_ends_the_box(void)
{
    static const char *const covered[][2] = {
        {"move_mount proc/sys", "cannot make /proc/sys read-only: "},
        {"move_mount proc/sysrq-trigger", "cannot make /proc/sysrq-trigger read-only: "},
        {"move_mount proc/irq", "cannot make /proc/irq read-only: "},
        {"move_mount proc/bus", "cannot make /proc/bus read-only: "},
        {"move_mount proc/fs", "cannot make /proc/fs read-only: "},
        {"move_mount proc/kcore", "cannot cover /proc/kcore: "},
        {"move_mount proc/keys", "cannot cover /proc/keys: "},
        {"move_mount proc/key-users", "cannot cover /proc/key-users: "},
        {"move_mount proc/timer_list", "cannot cover /proc/timer_list: "},
        {"move_mount proc/kallsyms", "cannot cover /proc/kallsyms: "},
        {"move_mount proc/modules", "cannot cover /proc/modules: "},
        {"move_mount proc/cmdline", "cannot cover /proc/cmdline: "},
        {"move_mount proc/interrupts", "cannot cover /proc/interrupts: "},
        {"move_mount proc/vmallocinfo", "cannot cover /proc/vmallocinfo: "},
        {"move_mount proc/slabinfo", "cannot cover /proc/slabinfo: "},
        {"move_mount proc/kmsg", "cannot cover /proc/kmsg: "},
        {"move_mount proc/locks", "cannot cover /proc/locks: "},
        {"mount proc/acpi", "cannot cover /proc/acpi: "},
        {"mount proc/scsi", "cannot cover /proc/scsi: "},
        {"mount proc/driver", "cannot cover /proc/driver: "},
    };
    size_t tried = 0;
    for (size_t i = 0; i < COUNT_OF(covered); i++) {
        char path[64], fault[80];
        snprintf(path, sizeof path, "/%s", strchr(covered[i][0], ' ') + 1);
        if (access(path, F_OK) == 0) {
            snprintf(fault, sizeof fault, "%s 1", covered[i][0]);
            expect_refusal(fault, covered[i][1]);
            tried++;
        }
    }
    CU_ASSERT_TRUE(tried > 4);
}

static void a_step_that_fails_ends_the_box(void)
{
    static const char *const steps[][2] = {
        {"mount / 1", "cannot make mounts private: Operation not permitted"},
        {"mount proc 1", "cannot mount /proc: Operation not permitted"},
        {"mount work 28", "cannot mount the box's disk (tmpfs): No space left on device"},
        {"move_mount usr 1", "cannot bind /usr read-only: Operation not permitted"},
        {"move_mount dev/null 1", "cannot bind /dev/null: Operation not permitted"},
        {"move_mount tmp 12", "cannot mount /tmp: Cannot allocate memory"},
        {"mount_setattr proc 1", "cannot make /proc read-only: Operation not permitted"},
        {"mount_setattr / 1", "cannot make the box's root read-only: Operation not permitted"},
        {"umount2 . 16", "cannot leave the host's root: Device or resource busy"},
        {"umount2 work 16", "cannot hide the disk's own root: Device or resource busy"},
        {"pivot_root - 22", "cannot change to the box's root (pivot_root): Invalid argument"},
        {"setrlimit NPROC 1", "cannot set RLIMIT_NPROC: Operation not permitted"},
        {"setrlimit DATA 1", "cannot prepare the interpreter's process: Operation not permitted"},
        {"seccomp - 38", "cannot load the system call filter (seccomp): "},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        expect_refusal(steps[i][0], steps[i][1]);
    }
}

/* The kernel says ENOENT for a file that was replaced between its opening and its mounting. Not without end. */
static void files_of_the_host_may_be_replaced_meanwhile(void)
{
    open_with("move_mount etc/ld.so.cache 2 3", NULL);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL(open_code, 0);
    expect_refusal("move_mount etc/ld.so.cache 2",
                   "cannot bind /etc/ld.so.cache: No such file or directory");
    expect_refusal("move_mount etc/ld.so.cache 1 1",
                   "cannot bind /etc/ld.so.cache: Operation not permitted");
}

/* Where no group counts the memory; else it is not done at all. */
static void huge_pages_that_stay_end_the_box(void)
{
    open_with("prctl THP 22", NULL);
    if (open_code == 0) {
        fprintf(stderr, "not tested: a control group counts memory here ");
        return;
    }
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message, "cannot switch huge pages off (PR_SET_THP_DISABLE): Invalid argument");
}

/* ---- what does nothing, and says that it did ---- */

static void what_only_seems_to_be_done_is_found_out(void)
{
    static const char *const steps[][2] = {
        {"move_mount proc/timer_list 0", "/proc/timer_list"},
        {"mount_setattr proc 0", "|written: /proc/self/oom_score_adj|"},
        {"mount_setattr / 0", "|written: /x|"},
        {"umount2 . 0", "|the host is in reach|"},
        {"seccomp - 0", "the test container has capabilities or no system call filter"},
        {"seccomp open 0", "|calls not filtered|"},
        {"setrlimit NPROC 0", "processes, which must be at most 65"},
        {"setrlimit DATA 0", "|memory not limited|"},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        expect_refusal(steps[i][0], steps[i][1]);
    }
}

/* ---- what is only late ---- */

/* Before it is the interpreter, its process is a copy of the broker, or of a template, that hides what it maps. */
static void an_interpreter_that_comes_late_is_not_taken_for_one_that_takes_memory(void)
{
    open_with("seccomp late 0", NULL);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL(open_code, 0);
}

/* The gateway leaves as soon as it has heard what the broker found, while that waits for the compiler, which never comes. */
static void a_broker_that_waits_for_the_compiler_ends_with_its_gateway(void)
{
    char ended[128];
    snprintf(ended, sizeof ended, "%s/ended", folder);
    (void)remove(ended); /* of the cases before */
    if (geteuid() == 0) {
        fprintf(stderr, "not tested: root's broker may have all that is strict ");
        return;
    }
    open_with("seccomp never 0", &(struct host_options){.isolation = "strict"});
    EXPECT_PART(e.message, "local (box): 'isolation: strict' needs control groups");
    CU_ASSERT_EQUAL(access(ended, F_OK), 0);
}

static const struct test tests[] = {
    TEST(without_a_fault_it_opens),
    TEST(a_cover_that_fails_ends_the_box),
    TEST(a_step_that_fails_ends_the_box),
    TEST(files_of_the_host_may_be_replaced_meanwhile),
    TEST(huge_pages_that_stay_end_the_box),
    TEST(what_only_seems_to_be_done_is_found_out),
    TEST(an_interpreter_that_comes_late_is_not_taken_for_one_that_takes_memory),
    TEST(a_broker_that_waits_for_the_compiler_ends_with_its_gateway),
};

int main(int argc, char **argv)
{
    CHECK(mkdtemp(folder) != NULL);
    int result = run_tests("local_faults", tests, COUNT_OF(tests), argc, argv);
    char path[128];
    static const char *const names[] = {"/local-broker", "/fault", "/ended", ""};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        (void)remove(path); /* it may never have been made */
    }
    return result;
}
