/* Attacks on the machine, on other sessions and on the gateway, each in a fresh box, several side by side.
 *
 * tests/data/attacks.json has the cases of the specification, tests/data/attacks_more.json further ones. A case gives code,
 * how its run must end ("ok", "error", "oom", "timeout-killed", "crash:SIGSEGV" …, a regular expression), what must and must not
 * be printed, whether the session lives on, and what files say when they are read and written from outside. "adapted" says why
 * a case of the specification differs from it here. The machine is furnished with things to find first (bait.h). After every
 * case: the second session lives and is untouched, no process of the box is left, nothing secret was printed; after all
 * of a group: no descriptor and no process is left, nobody has connected, and what was laid out is as it was. */
#include "attack.h"
#include "bait.h"
#include "fixture.h"
#include "loop/loop.h"

#include <stdlib.h>
#include <unistd.h>

#define AT_ONCE 4

static const struct host_options limits = {.memory = (uint64_t)256 << 20,
                                           .disk = (uint64_t)64 << 20,
                                           .inodes = 4000,
                                           .processes = 32,
                                           .files = 256};

/* ---- the cases ---- */

static cJSON *attacks_read(const char *path)
{
    FILE *file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    BUF_CLEANUP struct buf text = {0};
    char part[8192];
    size_t len;
    while ((len = fread(part, 1, sizeof part, file)) > 0) {
        buf_append(&text, part, len);
    }
    fclose(file);
    cJSON *attacks = cJSON_ParseWithLength(text.data, text.len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(attacks);
    return attacks;
}

static bool has_language(const cJSON *attack, const char *language)
{
    return strcmp(attack_text(attack, "language"), language) == 0;
}

/* ---- several at once ---- */

static const char *group;
static int running, begun;

struct start {
    const cJSON *attack;
    enum attack_way way;
};

static void attack_fiber(void *arg)
{
    struct start *start = arg;
    attack_run(start->attack, start->way, AT_ONCE);
    free(start);
    running--;
}

static void wait_until_at_most(int count)
{
    while (running > count) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
}

static void attack_start(const cJSON *attack, enum attack_way way)
{
    struct start *start = check_alloc(calloc(1, sizeof *start));
    struct fiber *fiber = NULL;
    *start = (struct start){attack, way};
    wait_until_at_most(AT_ONCE - 1);
    CU_ASSERT_EQUAL_FATAL(fiber_start(loop_self(), "attack", attack_fiber, start, &fiber, &e), 0);
    running++;
    begun++;
}

/* Whose descriptors are counted runs alone. */
static void attack_start_alone(const cJSON *attack)
{
    wait_until_at_most(0);
    size_t fds = fds_open();
    attack_start(attack, ATTACK_BY_PYTHON);
    wait_until_at_most(0);
    CU_ASSERT_EQUAL(fds_open(), fds);
}

static void attack_start_every_way(const cJSON *attack)
{
    const cJSON *expect = cJSON_GetObjectItemCaseSensitive(attack, "expect");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(expect, "check_fds"))) {
        attack_start_alone(attack);
    } else {
        attack_start(attack, ATTACK_BY_PYTHON);
    }
    if (!has_language(attack, "python")) {
        attack_start(attack, ATTACK_IN_LANGUAGE);
    }
}

/* ---- groups ---- */

static void group_of(const cJSON *attacks)
{
    const cJSON *attack;
    cJSON_ArrayForEach(attack, attacks)
    {
        if (strncmp(attack_text(attack, "id"), group, strlen(group)) == 0) {
            attack_start_every_way(attack);
        }
    }
    wait_until_at_most(0);
}

static void group_body(void)
{
    size_t fds = fds_open();
    cJSON *attacks = attacks_read(TEST_DATA "/attacks.json");
    cJSON *more = attacks_read(TEST_DATA "/attacks_more.json");
    bait_peer_begin();
    begun = 0;
    group_of(attacks);
    CU_ASSERT_TRUE(begun > 0);
    group_of(more);
    bait_peer_end();
    CU_ASSERT_EQUAL(fds_open(), fds);
    while (host_boxes(NULL, 0) > 0) { /* the broker reaps in its own time */
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    cJSON_Delete(attacks);
    cJSON_Delete(more);
}

static void run_group(const char *prefix)
{
    group = prefix;
    bait_lay();
    without_box(&limits, group_body);
    bait_take_up();
}

static void the_network_is_out_of_reach(void)
{
    run_group("net-");
}

static void files_of_the_host_and_of_others_are_out_of_reach(void)
{
    run_group("fs-");
}

static void dangerous_system_calls_are_refused(void)
{
    run_group("sys-");
}

static void resources_are_limited(void)
{
    run_group("res-");
}

static void output_of_any_kind_and_size_is_borne(void)
{
    run_group("out-");
}

static void the_protocol_bears_what_is_sent_and_what_is_not(void)
{
    run_group("pro-");
}

static void shells_are_held_as_well(void)
{
    run_group("sh-");
}

static void javascript_is_held_as_well(void)
{
    if (access("/usr/bin/node", X_OK) != 0) {
        fprintf(stderr, "left out: there is no /usr/bin/node\n");
        return;
    }
    run_group("js-");
}

static const struct test tests[] = {
    TEST(the_network_is_out_of_reach),
    TEST(files_of_the_host_and_of_others_are_out_of_reach),
    TEST(dangerous_system_calls_are_refused),
    TEST(resources_are_limited),
    TEST(output_of_any_kind_and_size_is_borne),
    TEST(the_protocol_bears_what_is_sent_and_what_is_not),
    TEST(shells_are_held_as_well),
    TEST(javascript_is_held_as_well),
};

int main(int argc, char **argv)
{
    return run_tests("local_attacks", tests, COUNT_OF(tests), argc, argv);
}
