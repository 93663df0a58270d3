/* When memory fails libcurl while a transfer is put away, the next one does not suffer from it. libcurl is given its
 * allocator here, which one can make fail. */
#include "fetch_fixture.h"

#include <string.h>

static bool fails; /* whatever is asked for */

static void *take(size_t size)
{
    return fails ? NULL : malloc(size);
}

static void *take_again(void *old, size_t size)
{
    return fails ? NULL : realloc(old, size);
}

static char *take_text(const char *text)
{
    return fails ? NULL : strdup(text);
}

static void *take_zeroed(size_t count, size_t size)
{
    return fails ? NULL : calloc(count, size);
}

enum { BODY_BYTES = 100000 };

static void post_body(struct result *result, const char *body)
{
    struct fetch_request request = request_of(result, "/");
    request.method = "POST";
    request.body = (struct str){body, BODY_BYTES};
    request.deadline = clock_ms() + 60000;
    CU_ASSERT_EQUAL(result_fetch(result, &request), 0);
    CU_ASSERT_EQUAL(result->reply.status, 200);
}

static void put_away_body(void)
{
    char *body = check_alloc(malloc(BODY_BYTES));
    memset(body, 'x', BODY_BYTES);
    struct result first = {0}, second = {0};
    post_body(&first, body);
    fails = true;
    result_clear(&first);
    fails = false;
    post_body(&second, body);
    result_clear(&second);
    free(body);
}

static void a_transfer_does_not_suffer_from_how_the_last_was_put_away(void)
{
    run((const struct step[]){ACCEPT, READ(BODY_BYTES),
                              SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                              READ(BODY_BYTES),
                              SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), END},
        put_away_body);
}

static const struct test tests[] = {
    TEST(a_transfer_does_not_suffer_from_how_the_last_was_put_away),
};

int main(int argc, char **argv)
{
    if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, take, free, take_again, take_text, take_zeroed) !=
        CURLE_OK) {
        return 1;
    }
    int ret = run_tests("fetch_memory", tests, COUNT_OF(tests), argc, argv);
    curl_global_cleanup();
    return ret;
}
