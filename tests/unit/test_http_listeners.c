/* A server at several addresses: IPv4, IPv6 and Unix sockets, handed over or not, each telling the handler what it is for; and
 * addresses as text. The server runs on loops of its own threads, the clients on the test's. */
#include "http_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ASK "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"

static char folder[] = "/tmp/sandgate-test-listeners-XXXXXX";

/* What somebody who may write the folder does in the moment between the binding of a socket and the setting of its mode: a link
 * to `swap_to` stands in the place of `swap_path`. NULL: nobody is there. */
static const char *swap_path, *swap_to;

int __real_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
    int result = __real_bind(fd, address, len);
    if (result == 0 && swap_path != NULL) {
        CHECK(unlink(swap_path) == 0 && symlink(swap_to, swap_path) == 0);
        swap_path = NULL;
    }
    return result;
}

static struct http_listener_options at_unix(const char *path, mode_t mode)
{
    struct http_listener_options at = {.mode = mode};
    struct sockaddr_un *address = (void *)&at.address;
    address->sun_family = AF_UNIX;
    (void)snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
    at.address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
    return at;
}

static struct http_listener_options at_four(void)
{
    return (struct http_listener_options){.address = loopback(0),
                                          .address_len = sizeof(struct sockaddr_in)};
}

static struct http_listener_options at_six(struct in6_addr host, uint16_t port)
{
    struct http_listener_options at = {.address_len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_addr = host, .sin6_port = htons(port)};
    memcpy(&at.address, &address, sizeof address);
    return at;
}

static bool has_six(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_listener_options at = at_six(in6addr_loopback, 0);
    bool is_there = fd >= 0 && bind(fd, (void *)&at.address, at.address_len) == 0;
    (void)close(fd);
    return is_there;
}

/* Answers who asked, and by which listener. */
static void tell(void *ctx, struct http_exchange *exchange)
{
    struct sg_error err = {0};
    char text[200];
    (void)ctx;
    (void)snprintf(text, sizeof text, "use=%d family=%d from=%s", http_request_listener(exchange),
                   http_client_peer(exchange)->ss_family, http_client_address(exchange));
    (void)http_answer(exchange, 200, NULL, 0, str_of(text), &err); /* the client may have left */
}

static int make(const struct http_listener_options *listeners, size_t count,
                struct http_server **ret, struct sg_error *err)
{
    struct http_server_options options = {.listeners_count = count,
                                          .loops = fixture.loops,
                                          .loops_count = fixture.count,
                                          .handle = tell};
    memcpy(options.listeners, listeners, count * sizeof *listeners);
    *err = (struct sg_error){0};
    return http_server_new(&options, ret, err);
}

static void loops_begin(size_t count)
{
    struct sg_error err = {0};
    fixture = (struct fixture){.count = count};
    CU_ASSERT_EQUAL_FATAL(sem_init(&fixture.drained, 0, 0), 0);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(loop_new((unsigned)i, NULL, &fixture.loops[i], &err), 0);
    }
}

static void loops_end(void)
{
    for (size_t i = 0; i < fixture.count; i++) {
        loop_free(fixture.loops[i]);
    }
}

static void begin(const struct http_listener_options *listeners, size_t count)
{
    struct sg_error err;
    loops_begin(LOOPS_MAX);
    int code = make(listeners, count, &fixture.server, &err);
    if (code != 0) {
        printf("\n%s\n", err.message);
    }
    CU_ASSERT_EQUAL_FATAL(code, 0);
    http_server_start(fixture.server);
    for (size_t i = 0; i < fixture.count; i++) {
        CU_ASSERT_EQUAL_FATAL(
            pthread_create(&fixture.threads[i], NULL, loop_thread, fixture.loops[i]), 0);
    }
}

static int connect_to(const struct sockaddr_storage *address, socklen_t len)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval guard = {.tv_sec = 60}; /* a test that would hang fails */
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &guard, sizeof guard), 0);
    if (connect(fd, (const void *)address, len) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* At the listener of that index, as it was bound. */
static void ask(size_t index, struct buf *got)
{
    const struct http_listener_options *at = &fixture.server->listeners[index].at;
    int fd = connect_to(&at->address, at->address_len);
    CU_ASSERT_FATAL(fd >= 0);
    client_ask(fd, ASK, NULL, got);
    (void)close(fd);
}

static const char *path_of(const char *name)
{
    static char path[100];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- serving ---- */

static void one_server_answers_at_all_of_its_addresses(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_listener_options listeners[3] = {at_four(), at_unix(path_of("a"), 0600),
                                                 at_six(in6addr_loopback, 0)};
    size_t count = has_six() ? 3 : 2;
    listeners[1].use = HTTP_USE_ADMIN;
    begin(listeners, count);
    ask(0, &got);
    CU_ASSERT_TRUE(has(&got, "use=0 family=2 from=127.0.0.1:"));
    ask(1, &got);
    CU_ASSERT_TRUE(has(&got, "use=1 family=1 from=unix"));
    if (count == 3) {
        ask(2, &got);
        CU_ASSERT_TRUE(has(&got, "use=0 family=10 from=[::1]:"));
    }
    fixture_end();
}

static void all_loops_take_connections_of_a_unix_socket(void)
{
    enum { CLIENTS = 64 };
    int clients[CLIENTS];
    struct http_listener_options at = at_unix(path_of("loops"), 0600);
    begin(&at, 1);
    size_t first = 0, second = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to(&at.address, at.address_len);
        CU_ASSERT_FATAL(clients[i] >= 0);
    }
    while (first + second < CLIENTS) {
        first = atomic_load(&fixture.server->loops[0].connections_count);
        second = atomic_load(&fixture.server->loops[1].connections_count);
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(fcntl(fixture.server->loops[1].listeners[0].fd, F_GETFD), FD_CLOEXEC);
    CU_ASSERT_EQUAL(first + second, CLIENTS);
    drain();
    for (int i = 0; i < CLIENTS; i++) {
        (void)close(clients[i]);
    }
    fixture_stop();
}

static void an_address_of_all_of_ipv6_takes_no_ipv4(void)
{
    if (!has_six()) {
        return;
    }
    BUF_CLEANUP struct buf got = {0};
    struct http_listener_options six = at_six(in6addr_any, 0);
    begin(&six, 1);
    uint16_t port = http_server_port(fixture.server);
    struct sockaddr_storage four = loopback(port);
    CU_ASSERT_EQUAL(connect_to(&four, sizeof(struct sockaddr_in)), -1);
    struct http_listener_options local = at_six(in6addr_loopback, port);
    int fd = connect_to(&local.address, local.address_len);
    CU_ASSERT_FATAL(fd >= 0);
    client_ask(fd, ASK, NULL, &got);
    CU_ASSERT_TRUE(has(&got, "from=[::1]:"));
    (void)close(fd);
    fixture_end();
}

/* Whoever hands it over may have left it open to both. */
static void a_mapped_client_is_told_as_ipv4(void)
{
    if (!has_six()) {
        return;
    }
    BUF_CLEANUP struct buf got = {0};
    int no = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_listener_options six = at_six(in6addr_any, 0);
    CU_ASSERT_EQUAL_FATAL(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no), 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (void *)&six.address, six.address_len), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 8), 0);
    six.listen_fd = fd;
    begin(&six, 1);
    struct sockaddr_storage four = loopback(http_server_port(fixture.server));
    int client = connect_to(&four, sizeof(struct sockaddr_in));
    CU_ASSERT_FATAL(client >= 0);
    client_ask(client, ASK, NULL, &got);
    CU_ASSERT_TRUE(has(&got, "family=2 from=127.0.0.1:"));
    (void)close(client);
    fixture_end();
}

/* ---- files of Unix sockets ---- */

static void a_unix_socket_has_its_mode_and_goes_at_the_end(void)
{
    struct http_listener_options at = at_unix(path_of("mode"), 0620);
    struct stat is;
    mode_t before = umask(0077);
    begin(&at, 1);
    (void)umask(before);
    CU_ASSERT_EQUAL(stat(path_of("mode"), &is), 0);
    CU_ASSERT_EQUAL(is.st_mode & 07777, 0620);
    fixture_end();
    CU_ASSERT_EQUAL(stat(path_of("mode"), &is), -1);
    CU_ASSERT_EQUAL(errno, ENOENT);
}

static void left_over_socket(const struct http_listener_options *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (const void *)&at->address, at->address_len), 0);
    (void)close(fd); /* its file stays, as after a process that was killed */
}

static void a_socket_that_is_left_over_is_replaced(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_listener_options at = at_unix(path_of("stale"), 0600);
    left_over_socket(&at);
    begin(&at, 1);
    ask(0, &got);
    CU_ASSERT_TRUE(has(&got, "from=unix"));
    fixture_end();
}

static void a_socket_at_which_somebody_listens_stays(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_server *second = NULL;
    struct sg_error err;
    char wanted[200];
    struct http_listener_options at = at_unix(path_of("busy"), 0600);
    begin(&at, 1);
    CU_ASSERT_EQUAL(make(&at, 1, &second, &err), SG_E_CONFIG);
    (void)snprintf(wanted, sizeof wanted,
                   "cannot listen on unix:%s: Address already in use (is another server running "
                   "there?)",
                   path_of("busy"));
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    ask(0, &got);
    CU_ASSERT_TRUE(has(&got, "from=unix"));
    fixture_end();
}

static void what_is_no_socket_is_never_removed(void)
{
    struct http_server *server = NULL;
    struct sg_error err;
    struct stat is;
    char wanted[250];
    struct http_listener_options at = at_unix(path_of("file"), 0600);
    (void)close(open(path_of("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    loops_begin(1);
    CU_ASSERT_EQUAL(make(&at, 1, &server, &err), SG_E_CONFIG);
    (void)snprintf(wanted, sizeof wanted,
                   "cannot listen on unix:%s: something that is no socket has this name: move it "
                   "away, or choose another path",
                   path_of("file"));
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    CU_ASSERT_EQUAL(stat(path_of("file"), &is), 0);
    CU_ASSERT_TRUE(S_ISREG(is.st_mode));
    CU_ASSERT_EQUAL(unlink(path_of("file")), 0);
    at = at_unix(path_of("no/such/folder"), 0600);
    CU_ASSERT_EQUAL(make(&at, 1, &server, &err), SG_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "/no/such' is not there: make it"));
    loops_end();
}

static void a_link_in_the_place_of_a_socket_is_not_followed(void)
{
    struct http_server *server = NULL;
    struct sg_error err;
    struct stat is;
    char file[120], link[120], wanted[250];
    (void)snprintf(file, sizeof file, "%s", path_of("secret"));
    (void)snprintf(link, sizeof link, "%s", path_of("swapped"));
    (void)close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct http_listener_options at = at_unix(link, 0666);
    loops_begin(1);
    swap_to = file;
    swap_path = link;
    CU_ASSERT_EQUAL(make(&at, 1, &server, &err), SG_E_CONFIG);
    CU_ASSERT_PTR_NULL(swap_path);
    (void)snprintf(wanted, sizeof wanted, "cannot listen on unix:%s: Operation not supported",
                   link);
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    CU_ASSERT_EQUAL(stat(file, &is), 0);
    CU_ASSERT_EQUAL(is.st_mode & 07777, 0600);
    CU_ASSERT_EQUAL(lstat(link, &is), 0); /* it is none of ours to remove */
    CU_ASSERT_EQUAL(unlink(link), 0);
    CU_ASSERT_EQUAL(unlink(file), 0);
    loops_end();
}

/* Another server has taken the name over: its file is not ours to remove. */
static void a_file_that_was_replaced_stays_at_the_end(void)
{
    struct stat is;
    struct http_listener_options at = at_unix(path_of("taken"), 0600);
    begin(&at, 1);
    CU_ASSERT_EQUAL(unlink(path_of("taken")), 0);
    left_over_socket(&at);
    fixture_end();
    CU_ASSERT_EQUAL(stat(path_of("taken"), &is), 0);
    CU_ASSERT_EQUAL(unlink(path_of("taken")), 0);
}

static void an_abstract_socket_has_no_file(void)
{
    BUF_CLEANUP struct buf got = {0};
    char name[64], text[HTTP_ADDRESS_BYTES], wanted[80];
    int len = snprintf(name, sizeof name, "sandgate-test-%d", (int)getpid());
    struct http_listener_options at = at_unix(name, 0600);
    struct sockaddr_un *address = (void *)&at.address;
    memmove(address->sun_path + 1, address->sun_path, (size_t)len);
    address->sun_path[0] = '\0';
    begin(&at, 1);
    ask(0, &got);
    CU_ASSERT_TRUE(has(&got, "from=unix"));
    http_server_address(fixture.server, 0, text);
    (void)snprintf(wanted, sizeof wanted, "unix:@%s", name);
    CU_ASSERT_STRING_EQUAL(text, wanted);
    fixture_end();
}

/* ---- failing ---- */

static size_t open_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 1000; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* The last of three cannot be bound: the others go again, the one that was handed over as well. */
static void a_start_that_fails_leaves_nothing_behind(void)
{
    struct http_server *server = NULL;
    struct sg_error err;
    struct stat is;
    loops_begin(2);
    int busy = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage taken = loopback(0);
    socklen_t len = sizeof(struct sockaddr_in);
    CU_ASSERT_EQUAL_FATAL(bind(busy, (void *)&taken, len), 0);
    CU_ASSERT_EQUAL_FATAL(listen(busy, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(busy, (void *)&taken, &len), 0);
    size_t before = open_descriptors();
    int given = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_listener_options listeners[4] = {
        at_unix(path_of("half"), 0600),
        at_four(),
        {.address = taken, .address_len = len},
        {.listen_fd = given},
    };
    CU_ASSERT_EQUAL(make(listeners, 4, &server, &err), SG_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "cannot listen on 127.0.0.1:"));
    CU_ASSERT_PTR_NULL(server);
    CU_ASSERT_EQUAL(open_descriptors(), before);
    CU_ASSERT_EQUAL(stat(path_of("half"), &is), -1);
    (void)close(busy);
    loops_end();
}

/* ---- addresses ---- */

static struct sockaddr_storage six_of(const char *text, uint16_t port)
{
    struct in6_addr host;
    CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, &host), 1);
    return at_six(host, port).address;
}

static struct sockaddr_storage four_of(const char *text, uint16_t port)
{
    struct sockaddr_storage address = loopback(port);
    CU_ASSERT_EQUAL_FATAL(
        inet_pton(AF_INET, text, &((struct sockaddr_in *)(void *)&address)->sin_addr), 1);
    return address;
}

static void an_address_is_written_as_it_is_configured(void)
{
    char text[HTTP_ADDRESS_BYTES];
    struct sockaddr_storage address = four_of("192.0.2.7", 80);
    http_address_write(&address, sizeof(struct sockaddr_in), text);
    CU_ASSERT_STRING_EQUAL(text, "192.0.2.7:80");
    address = six_of("2001:db8::7", 65535);
    http_address_write(&address, sizeof(struct sockaddr_in6), text);
    CU_ASSERT_STRING_EQUAL(text, "[2001:db8::7]:65535");
    http_address_write_host(&address, sizeof(struct sockaddr_in6), text);
    CU_ASSERT_STRING_EQUAL(text, "[2001:db8::7]");
    address = six_of("::ffff:192.0.2.7", 80);
    http_address_write(&address, sizeof(struct sockaddr_in6), text);
    CU_ASSERT_STRING_EQUAL(text, "192.0.2.7:80");
    struct http_listener_options at = at_unix("/run/x.sock", 0);
    http_address_write(&at.address, at.address_len, text);
    CU_ASSERT_STRING_EQUAL(text, "unix:/run/x.sock");
    http_address_write_host(&at.address, at.address_len, text);
    CU_ASSERT_STRING_EQUAL(text, "");
    http_address_write(&at.address, sizeof(sa_family_t), text);
    CU_ASSERT_STRING_EQUAL(text, "unix");
}

static bool is_local(struct sockaddr_storage address)
{
    return http_address_is_local(&address);
}

static void only_loopback_and_unix_sockets_are_local(void)
{
    CU_ASSERT_TRUE(is_local(four_of("127.0.0.1", 1)));
    CU_ASSERT_TRUE(is_local(four_of("127.255.3.4", 1)));
    CU_ASSERT_FALSE(is_local(four_of("128.0.0.1", 1)));
    CU_ASSERT_FALSE(is_local(four_of("0.0.0.0", 1)));
    CU_ASSERT_TRUE(is_local(six_of("::1", 1)));
    CU_ASSERT_FALSE(is_local(six_of("::", 1)));
    CU_ASSERT_TRUE(is_local(six_of("::ffff:127.0.0.1", 1)));
    CU_ASSERT_FALSE(is_local(six_of("::ffff:10.0.0.1", 1)));
    CU_ASSERT_TRUE(is_local(at_unix("/x", 0).address));
}

static bool overlap(struct sockaddr_storage one, struct sockaddr_storage other)
{
    socklen_t len = sizeof(struct sockaddr_in6);
    return http_address_overlaps(&one, len, &other, len);
}

static void addresses_meet_at_one_port_of_one_family(void)
{
    CU_ASSERT_TRUE(overlap(four_of("10.0.0.1", 80), four_of("10.0.0.1", 80)));
    CU_ASSERT_FALSE(overlap(four_of("10.0.0.1", 80), four_of("10.0.0.1", 81)));
    CU_ASSERT_FALSE(overlap(four_of("10.0.0.1", 80), four_of("10.0.0.2", 80)));
    CU_ASSERT_TRUE(overlap(four_of("10.0.0.1", 80), four_of("0.0.0.0", 80)));
    CU_ASSERT_TRUE(overlap(six_of("::", 80), six_of("::1", 80)));
    CU_ASSERT_TRUE(overlap(six_of("fe80::1", 80), six_of("fe80::1", 80)));
    CU_ASSERT_FALSE(overlap(six_of("::", 80), four_of("0.0.0.0", 80)));
    CU_ASSERT_FALSE(overlap(at_unix("/a", 0).address, at_unix("/b", 0).address));
    CU_ASSERT_TRUE(overlap(at_unix("/a", 0).address, at_unix("/a", 0).address));
}

static const struct test tests[] = {
    TEST(one_server_answers_at_all_of_its_addresses),
    TEST(all_loops_take_connections_of_a_unix_socket),
    TEST(an_address_of_all_of_ipv6_takes_no_ipv4),
    TEST(a_mapped_client_is_told_as_ipv4),
    TEST(a_unix_socket_has_its_mode_and_goes_at_the_end),
    TEST(a_socket_that_is_left_over_is_replaced),
    TEST(a_socket_at_which_somebody_listens_stays),
    TEST(what_is_no_socket_is_never_removed),
    TEST(a_link_in_the_place_of_a_socket_is_not_followed),
    TEST(a_file_that_was_replaced_stays_at_the_end),
    TEST(an_abstract_socket_has_no_file),
    TEST(a_start_that_fails_leaves_nothing_behind),
    TEST(an_address_is_written_as_it_is_configured),
    TEST(only_loopback_and_unix_sockets_are_local),
    TEST(addresses_meet_at_one_port_of_one_family),
};

int main(int argc, char **argv)
{
    log_catch();
    (void)admission_init(64);
    CHECK(mkdtemp(folder) != NULL);
    int code = run_tests("http_listeners", tests, COUNT_OF(tests), argc, argv);
    CHECK(rmdir(folder) == 0); /* nothing was left in it */
    return code;
}
