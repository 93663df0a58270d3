/* Where control groups are, and what they have counted, is read out of texts as several systems have them. */
#include "fixture.h"

#include "box/cgroup.h"

static void expect_tree(const struct group_tree *tree, const char *path, unsigned controls,
                        bool is_v2)
{
    EXPECT_TEXT(tree->path, path);
    CU_ASSERT_EQUAL(tree->controls, controls);
    CU_ASSERT_EQUAL(tree->is_v2, is_v2);
}

static void a_group_of_v2_is_found(void)
{
    struct group_tree trees[GROUP_TREES_MAX];
    CU_ASSERT_EQUAL_FATAL(
        group_trees_find("0::/system.slice/sandgate.service\n",
                         "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 "
                         "rw,nsdelegate,memory_recursiveprot\n"
                         "30 23 0:27 / /proc rw - proc proc rw\n",
                         trees),
        1);
    expect_tree(&trees[0], "/sys/fs/cgroup/system.slice/sandgate.service", GROUP_FREEZE, true);
    CU_ASSERT_EQUAL(group_controls_read("cpuset cpu io memory hugetlb pids rdma\n"), GROUP_LIMITS);
    CU_ASSERT_EQUAL(group_controls_read("cpuset memory_other memory"), GROUP_MEMORY);
    CU_ASSERT_EQUAL(group_controls_read("\n"), 0);
}

static void groups_of_v1_are_found_each_in_its_hierarchy(void)
{
    struct group_tree trees[GROUP_TREES_MAX];
    CU_ASSERT_EQUAL_FATAL(
        group_trees_find("9:name=systemd:/user\n6:pids:/\n4:memory:/app/one\n1:cpu,cpuacct:/c\n"
                         "0::/u\n",
                         "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup "
                         "rw,cpu,cpuacct\n"
                         "35 31 0:32 / /sys/fs/cgroup/memory rw shared:3 master:1 - cgroup cgroup "
                         "rw,memory\n"
                         "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                         "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                         trees),
        4);
    expect_tree(&trees[0], "/sys/fs/cgroup/unified/u", GROUP_FREEZE, true);
    expect_tree(&trees[1], "/sys/fs/cgroup/cpu,cpuacct/c", GROUP_CPU, false);
    expect_tree(&trees[2], "/sys/fs/cgroup/memory/app/one", GROUP_MEMORY, false);
    expect_tree(&trees[3], "/sys/fs/cgroup/pids", GROUP_PIDS, false);
    /* Controllers that share a hierarchy share a group. */
    CU_ASSERT_EQUAL_FATAL(group_trees_find("1:cpu,memory:/a\n",
                                           "1 0 0:1 / /c rw - cgroup none rw,cpu,memory\n", trees),
                          1);
    expect_tree(&trees[0], "/c/a", GROUP_CPU | GROUP_MEMORY, false);
}

static void a_mount_that_shows_a_part_is_read_so(void)
{
    struct group_tree trees[GROUP_TREES_MAX];
    /* As in a container without a cgroup namespace: the mount's root is the container's group. */
    CU_ASSERT_EQUAL_FATAL(group_trees_find("4:memory:/docker/abc/in\n",
                                           "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - "
                                           "cgroup cgroup rw,memory\n",
                                           trees),
                          1);
    expect_tree(&trees[0], "/sys/fs/cgroup/memory/in", GROUP_MEMORY, false);
    static const struct {
        const char *memberships, *mounts;
    } unseen[] = {
        {"4:memory:/docker/abcd\n", "35 31 0:32 /docker/abc /m ro - cgroup cgroup rw,memory\n"},
        {"4:memory:/other\n", "35 31 0:32 /docker/abc /m ro - cgroup cgroup rw,memory\n"},
        {"0::/../above\n", "35 31 0:32 / /m ro - cgroup2 cgroup2 rw\n"},
        {"0::/a\n", "35 31 0:32 / /with\\040space ro - cgroup2 cgroup2 rw\n"},
        {"0::/a\n", ""},
        {"", "35 31 0:32 / /m ro - cgroup2 cgroup2 rw\n"},
        {"0::\n", "35 31 0:32 / /m ro - cgroup2 cgroup2 rw\n"},
        {"0:/a\n::\n:\n\n0", "35 31 0:32 / /m ro - cgroup2 cgroup2 rw\n"},
        {"0::/a\n", "35 31 0:32 / /m ro cgroup2 cgroup2 rw\n"},
        {"0::/a\n", "- - - - - -\n"},
        {"0::/a\n", "35 31 0:32 / /m ro - cgroup2\n"},
    };
    for (size_t i = 0; i < COUNT_OF(unseen); i++) {
        CU_ASSERT_EQUAL(group_trees_find(unseen[i].memberships, unseen[i].mounts, trees), 0);
    }
}

static void a_folder_is_a_brokers_only_by_its_exact_name(void)
{
    char name[GROUP_NAME_BYTES];
    struct group_owner owner = {0};
    group_owner_write(&(struct group_owner){4026531836, 123, 456789}, name);
    EXPECT_TEXT(name, "sandgate-local.4026531836.123.456789");
    CU_ASSERT_TRUE(group_owner_read(name, &owner));
    CU_ASSERT_EQUAL(owner.pid_namespace, 4026531836);
    CU_ASSERT_EQUAL(owner.pid, 123);
    CU_ASSERT_EQUAL(owner.start, 456789);
    static const char *const others[] = {
        "",
        "box-1",
        "sandgate-main",
        "sandgate-local",
        "sandgate-local.",
        "sandgate-local.1.2",
        "sandgate-local.1.2.3.4",
        "sandgate-local.1.2.3x",
        "sandgate-local.1.2.",
        "sandgate-local.1..3",
        "sandgate-local.1.-2.3",
        "sandgate-local.1. 2.3",
        "sandgate-local.01.2.3",
        "sandgate-local.1.2.99999999999999999999999",
        "Sandgate-local.1.2.3",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        CU_ASSERT_FALSE(group_owner_read(others[i], &owner));
    }
}

static void the_counter_of_kills_is_read_in_both_forms(void)
{
    static const struct {
        const char *text;
        uint64_t kills;
    } cases[] = {
        {"low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n", 2},
        {"oom_kill_disable 0\nunder_oom 0\noom_kill 17\n", 17},
        {"oom_kill 5", 5},
        {"oom_kill_disable 1\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        FILE *file = tmpfile();
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fputs(cases[i].text, file);
        fflush(file);
        CU_ASSERT_EQUAL(group_kills(fileno(file)), cases[i].kills);
        fclose(file);
    }
    CU_ASSERT_EQUAL(group_kills(-1), 0);
}

static const struct test tests[] = {
    TEST(a_group_of_v2_is_found),
    TEST(groups_of_v1_are_found_each_in_its_hierarchy),
    TEST(a_mount_that_shows_a_part_is_read_so),
    TEST(a_folder_is_a_brokers_only_by_its_exact_name),
    TEST(the_counter_of_kills_is_read_in_both_forms),
};

int main(int argc, char **argv)
{
    return run_tests("local_group_texts", tests, COUNT_OF(tests), argc, argv);
}
