/* The keys of TLS sessions' tickets: how long each makes and reads them. What is read from files, and what clients see, is
 * tested with the real binary (tests/e2e/test_tls.py). */
#include "base/check.h"
#include "cunit_main.h"
#include "http/tls_internal.h"

#include <string.h>

static struct tickets tickets;

static struct ticket_key made_at(int64_t second)
{
    struct ticket_key key = {0};
    CU_ASSERT_TRUE(tickets_key_for_new(&tickets, second, &key));
    return key;
}

/* -1: not any more; 1: it reads, and the ticket should be made anew. */
static int reads_at(const struct ticket_key *key, int64_t second)
{
    struct ticket_key found = {0};
    bool is_old = false;
    if (!tickets_key_named(&tickets, key->name, second, &found, &is_old)) {
        return -1;
    }
    CU_ASSERT_EQUAL(memcmp(found.cipher, key->cipher, sizeof key->cipher), 0);
    CU_ASSERT_EQUAL(memcmp(found.mac, key->mac, sizeof key->mac), 0);
    return is_old ? 1 : 0;
}

static bool is_same(const struct ticket_key *one, const struct ticket_key *other)
{
    return memcmp(one->name, other->name, sizeof one->name) == 0;
}

static void a_key_makes_tickets_for_two_hours(void)
{
    tickets_init(&tickets);
    struct ticket_key first = made_at(1000), same = made_at(1000 + TICKET_KEY_S - 1);
    struct ticket_key second = made_at(1000 + TICKET_KEY_S);
    CU_ASSERT_TRUE(is_same(&first, &same));
    CU_ASSERT_FALSE(is_same(&first, &second));
    CU_ASSERT_NOT_EQUAL(memcmp(first.cipher, second.cipher, sizeof first.cipher), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(first.mac, second.mac, sizeof first.mac), 0);
    tickets_clear(&tickets);
}

static void a_key_reads_its_tickets_for_two_hours_more(void)
{
    tickets_init(&tickets);
    struct ticket_key first = made_at(0);
    CU_ASSERT_EQUAL(reads_at(&first, TICKET_KEY_S - 1), 0);
    struct ticket_key second = made_at(TICKET_KEY_S);
    CU_ASSERT_EQUAL(reads_at(&first, TICKET_KEY_S), 1);
    CU_ASSERT_EQUAL(reads_at(&second, TICKET_KEY_S), 0);
    CU_ASSERT_EQUAL(reads_at(&first, 2 * TICKET_KEY_S - 1), 1);
    CU_ASSERT_EQUAL(reads_at(&first, 2 * TICKET_KEY_S), -1);
    struct ticket_key third = made_at(2 * TICKET_KEY_S);
    CU_ASSERT_EQUAL(reads_at(&second, 2 * TICKET_KEY_S), 1);
    CU_ASSERT_EQUAL(reads_at(&third, 2 * TICKET_KEY_S), 0);
    tickets_clear(&tickets);
}

/* After a night without a client the key of before is gone, though nobody asked for a new one meanwhile. */
static void a_key_ends_without_being_replaced(void)
{
    tickets_init(&tickets);
    struct ticket_key first = made_at(0);
    CU_ASSERT_EQUAL(reads_at(&first, 10 * TICKET_KEY_S), -1);
    struct ticket_key second = made_at(10 * TICKET_KEY_S);
    CU_ASSERT_EQUAL(reads_at(&first, 10 * TICKET_KEY_S), -1);
    CU_ASSERT_EQUAL(reads_at(&second, 10 * TICKET_KEY_S), 0);
    tickets_clear(&tickets);
}

static void a_name_that_was_never_given_reads_nothing(void)
{
    tickets_init(&tickets);
    struct ticket_key none = {0}; /* all zero, as the place of a key that is not there */
    CU_ASSERT_EQUAL(reads_at(&none, 0), -1);
    struct ticket_key first = made_at(0);
    first.name[15] ^= 1;
    CU_ASSERT_EQUAL(reads_at(&first, 0), -1);
    tickets_clear(&tickets);
}

static void every_outcome_of_a_handshake_has_a_name_of_its_own(void)
{
    for (int i = 0; i < HTTP_HANDSHAKE_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            CU_ASSERT_STRING_NOT_EQUAL(http_handshake_name((enum http_handshake)i),
                                       http_handshake_name((enum http_handshake)k));
        }
    }
}

static const struct test tests[] = {
    TEST(a_key_makes_tickets_for_two_hours),
    TEST(a_key_reads_its_tickets_for_two_hours_more),
    TEST(a_key_ends_without_being_replaced),
    TEST(a_name_that_was_never_given_reads_nothing),
    TEST(every_outcome_of_a_handshake_has_a_name_of_its_own),
};

int main(int argc, char **argv)
{
    return run_tests("tls", tests, COUNT_OF(tests), argc, argv);
}
