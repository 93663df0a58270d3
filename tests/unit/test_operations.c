/* What operators use besides requests: keys, what a service manager is told and hands over, what a run prints, and the
 * description of the configuration. */
#include "base/check.h"
#include "base/log.h"
#include "cunit_main.h"
#include "gateway/command.h"
#include "gateway/systemd.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- keys ---- */

static void a_key_has_256_bits_in_43_characters(void)
{
    char one[KEY_BYTES], other[KEY_BYTES];
    key_generate(one);
    key_generate(other);
    CU_ASSERT_EQUAL(strlen(one), 46);
    CU_ASSERT_TRUE(strncmp(one, "sg-", 3) == 0);
    CU_ASSERT_EQUAL(strspn(one + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_"),
                    43);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
}

/* 43 digits have two bits more than 32 bytes: they are zero, so that every key is canonical base64url. */
static void the_last_digit_of_a_key_holds_four_bits(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    bool seen[64] = {0}, any[64] = {0};
    for (int i = 0; i < 2000; i++) {
        char key[KEY_BYTES];
        key_generate(key);
        seen[strchr(digits, key[KEY_BYTES - 2]) - digits] = true;
        any[strchr(digits, key[3]) - digits] = true;
    }
    size_t last = 0, first = 0;
    for (size_t i = 0; i < 64; i++) {
        CU_ASSERT_TRUE(!seen[i] || i % 4 == 0);
        last += seen[i];
        first += any[i];
    }
    CU_ASSERT_EQUAL(last, 16);
    CU_ASSERT_EQUAL(first, 64);
}

/* ---- telling the service manager ---- */

static int listen_for_notes(const struct sockaddr_un *at, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (const void *)at, len), 0);
    return fd;
}

static void check_note(int fd)
{
    char got[100] = {0};
    service_notify("READY=1\nSTATUS=here");
    CU_ASSERT_EQUAL(recv(fd, got, sizeof got, 0), 19);
    CU_ASSERT_STRING_EQUAL(got, "READY=1\nSTATUS=here");
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

static void a_note_reaches_a_socket_with_a_path(void)
{
    char folder[] = "/tmp/sandgate-test-XXXXXX", path[100];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/notify", folder);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = listen_for_notes(&at, sizeof at);
    setenv("NOTIFY_SOCKET", path, 1);
    check_note(fd);
    unlink(path);
    rmdir(folder);
}

static void a_note_reaches_an_abstract_socket(void)
{
    char name[60];
    int len = snprintf(name, sizeof name, "@sandgate-test-%d", (int)getpid());
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path + 1, name + 1, (size_t)len - 1);
    int fd = listen_for_notes(&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    setenv("NOTIFY_SOCKET", name, 1);
    check_note(fd);
}

/* What is logged when a note cannot be sent to `path`. */
static void note_log(const char *path, char *ret, size_t size)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0);
    setenv("NOTIFY_SOCKET", path, 1);
    log_set_fd(fd);
    service_notify("READY=1");
    log_set_fd(2);
    ssize_t len = pread(fd, ret, size - 1, 0);
    CU_ASSERT_FATAL(len >= 0);
    ret[len] = '\0';
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

static void a_note_that_nobody_hears_is_logged(void)
{
    char said[LOG_LINE_BYTES];
    note_log("relative/path", said, sizeof said);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "event=notify_failed message=\"NOTIFY_SOCKET must be an "
                                        "absolute path or an abstract name\""));
    note_log("/nowhere/at/all", said, sizeof said);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said, "event=notify_failed message=\"No such file or directory\""));
    note_log("", said, sizeof said);
    CU_ASSERT_STRING_EQUAL(said, ""); /* nobody asked to be told */
}

/* ---- the socket that is handed over ---- */

static int tcp_socket(bool listens)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (void *)&at, sizeof at), 0);
    CU_ASSERT_EQUAL_FATAL(listens ? listen(fd, 1) : 0, 0);
    return fd;
}

static void announce(const char *count, long pid)
{
    char text[20];
    snprintf(text, sizeof text, "%ld", pid);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDNAMES", "sandgate.socket", 1);
}

static void a_listening_socket_is_taken_over_once(void)
{
    struct listen listen = {0};
    struct sg_error err = {0};
    int fd = tcp_socket(true);
    announce("1", getpid());
    CU_ASSERT_EQUAL(activation_take_from(fd, &listen, &err), 0);
    CU_ASSERT_EQUAL(listen.count, 1);
    CU_ASSERT_EQUAL(listen.at[0].listen_fd, fd);
    CU_ASSERT_EQUAL(listen.at[0].address.ss_family, AF_INET);
    CU_ASSERT_NOT_EQUAL(http_address_port(&listen.at[0].address), 0);
    CU_ASSERT_PTR_NULL(getenv("LISTEN_FDS"));
    CU_ASSERT_PTR_NULL(getenv("LISTEN_PID"));
    CU_ASSERT_PTR_NULL(getenv("LISTEN_FDNAMES"));
    CU_ASSERT_EQUAL(activation_take_from(fd, &listen, &err), 0);
    CU_ASSERT_EQUAL(listen.count, 0);
    close(fd);
}

/* They stand at descriptors behind each other, as a service manager leaves them. */
static void several_sockets_are_taken_over_in_their_order(void)
{
    struct listen listen = {0};
    struct sg_error err = {0};
    int first = fcntl(tcp_socket(true), F_DUPFD, 200), second = dup2(tcp_socket(true), first + 1);
    announce("2", getpid());
    CU_ASSERT_EQUAL_FATAL(activation_take_from(first, &listen, &err), 0);
    CU_ASSERT_EQUAL(listen.count, 2);
    CU_ASSERT_EQUAL(listen.at[0].listen_fd, first);
    CU_ASSERT_EQUAL(listen.at[1].listen_fd, second);
    CU_ASSERT_NOT_EQUAL(http_address_port(&listen.at[0].address),
                        http_address_port(&listen.at[1].address));
    CU_ASSERT_EQUAL(fcntl(second, F_GETFD), FD_CLOEXEC);
    close(first), close(second);
}

static void a_socket_for_another_process_is_left(void)
{
    struct listen listen = {.count = 5};
    struct sg_error err = {0};
    announce("1", (long)getpid() + 1);
    CU_ASSERT_EQUAL(activation_take_from(3, &listen, &err), 0);
    CU_ASSERT_EQUAL(listen.count, 0);
    announce("nonsense", getpid());
    CU_ASSERT_EQUAL(activation_take_from(3, &listen, &err), 0);
    CU_ASSERT_EQUAL(listen.count, 0);
}

static void other_kinds_of_sockets_are_refused(void)
{
    struct listen listen = {0};
    struct sg_error err = {0};
    int fd = tcp_socket(false);
    announce("1", getpid());
    CU_ASSERT_EQUAL(activation_take_from(fd, &listen, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(
        err.message, "what the service manager handed over as socket 1 is not a listening stream "
                     "socket: the socket unit needs 'ListenStream=ADDRESS:PORT' or "
                     "'ListenStream=/PATH', and 'Accept=no'");
    announce("17", getpid());
    CU_ASSERT_EQUAL(activation_take_from(fd, &listen, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "the service manager handed over 17 sockets; sandgate serves at 16 at "
                           "the most: leave some ListenStream= out of the socket units");
    CU_ASSERT_EQUAL(listen.count, 0);
    close(fd);
}

/* ---- what a run prints ---- */

static void a_result_shows_its_text_or_what_it_is(void)
{
    BUF_CLEANUP struct buf out = {0};
    run_put_result(STR("{\"image/png\": \"AAAA\", \"text/plain\": \"<Figure>\"}"), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "<Figure>\n");
    buf_reset(&out);
    run_put_result(STR("{\"text/plain\": \"a\\u00e4\\n\"}"), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "a\xC3\xA4\n");
    buf_reset(&out);
    run_put_result(STR("{\"image/png\": \"AAAA\", \"text/html\": \"x\"}"), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "[image/png, text/html]\n");
    buf_reset(&out);
    run_put_result(STR("{}"), &out);
    run_put_result(STR("no JSON"), &out);
    CU_ASSERT_EQUAL(out.len, 0);
}

static void an_exception_shows_its_traceback_or_its_name(void)
{
    BUF_CLEANUP struct buf out = {0};
    run_put_exception(STR("{\"name\": \"E\", \"value\": \"v\", \"traceback\": \"Trace\\nE: v\"}"),
                      &out);
    CU_ASSERT_STRING_EQUAL(out.data, "Trace\nE: v\n");
    buf_reset(&out);
    run_put_exception(STR("{\"name\": \"NameError\", \"value\": \"x\"}"), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "NameError: x\n");
    buf_reset(&out);
    run_put_exception(STR("{\"name\": \"KeyboardInterrupt\", \"value\": \"\"}"), &out);
    CU_ASSERT_STRING_EQUAL(out.data, "KeyboardInterrupt\n");
}

static void a_command_that_failed_shows_its_status_and_one_that_did_not_nothing(void)
{
    BUF_CLEANUP struct buf out = {0};
    CU_ASSERT_TRUE(run_put_exit(STR("{\"state\":\"exited\",\"code\":5}"), &out));
    CU_ASSERT_STRING_EQUAL(out.data, "[exit status 5]\n");
    buf_reset(&out);
    CU_ASSERT_FALSE(run_put_exit(STR("{\"state\":\"exited\",\"code\":0}"), &out));
    CU_ASSERT_FALSE(run_put_exit(STR("{\"state\":\"exited\"}"), &out));
    CU_ASSERT_FALSE(run_put_exit(STR("{\"state\":\"memory\",\"code\":5}"), &out));
    CU_ASSERT_FALSE(run_put_exit(STR("no JSON"), &out));
    CU_ASSERT_EQUAL(out.len, 0);
}

/* ---- the description ---- */

static void the_description_has_every_section_and_hides_nothing_but_secrets(void)
{
    BUF_CLEANUP struct buf out = {0};
    config_describe(&out);
    static const char *const wanted[] = {
        "server\nWhere the gateway serves",
        "\n  listen: list of texts; default 127.0.0.1:4000\n      Where to serve, ",
        "\n\nauth\n",
        "\n        use: one of requests, metrics, admin; default requests\n",
        "\n\nsessions\n",
        "\n\nloop\n",
        "\n\nupstreams\n",
        "\n  api_key: text; secret\n",
        "\n\nsandboxes\n",
        "\n\nsearches\n",
        "\n\ninterceptors\n",
        "\n  offer: requested, always, or { models: [ … ] }; default requested\n",
    };
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(out.data, wanted[i]));
    }
}

static const struct test tests[] = {
    TEST(a_key_has_256_bits_in_43_characters),
    TEST(the_last_digit_of_a_key_holds_four_bits),
    TEST(a_note_reaches_a_socket_with_a_path),
    TEST(a_note_reaches_an_abstract_socket),
    TEST(a_note_that_nobody_hears_is_logged),
    TEST(a_listening_socket_is_taken_over_once),
    TEST(several_sockets_are_taken_over_in_their_order),
    TEST(a_socket_for_another_process_is_left),
    TEST(other_kinds_of_sockets_are_refused),
    TEST(a_result_shows_its_text_or_what_it_is),
    TEST(an_exception_shows_its_traceback_or_its_name),
    TEST(a_command_that_failed_shows_its_status_and_one_that_did_not_nothing),
    TEST(the_description_has_every_section_and_hides_nothing_but_secrets),
};

int main(int argc, char **argv)
{
    return run_tests("operations", tests, COUNT_OF(tests), argc, argv);
}
