/* What there is to find on the machine while attacks run. */
#include "bait.h"

#include "base/check.h"
#include "cunit_main.h"
#include "host.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS_MAX 64
#define FILE_TEXT "CANARY of the host"
#define KEY "sk-CANARY-123"
#define PEER_TEXT "PEER_SECRET of another session"
#define PEER_MS 60000

static struct {
    int sockets[SOCKETS_MAX], segment;
    int process_pidfd, process_end; /* it ends when this end is closed */
    size_t socket_count;
    struct buf addresses; /* Python: a list of (family, address, port) */
    char port[16], abstract_name[64], named_path[64], secret[64], world[64], process[16];
    char peer[128], peer_port[16];
    bool peer_is_asked;
} bait;

/* ---- files and the process ---- */

static void put_file(const char *path, mode_t mode)
{
    FILE *file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(FILE_TEXT, file);
    fclose(file);
    CU_ASSERT_EQUAL(chmod(path, mode), 0);
}

static void lay_files(void)
{
    int id = (int)getpid();
    snprintf(bait.secret, sizeof bait.secret, "/tmp/sandgate-secret-%d", id);
    snprintf(bait.world, sizeof bait.world, "/var/tmp/sandgate-world-%d", id);
    put_file(bait.secret, 0600);
    put_file(bait.world, 0644);
    setenv("SANDBOX_CANARY_API_KEY", KEY, 1);
    bait.segment = shmget(0x5EC, 4096, IPC_CREAT | 0666);
}

static void check_file(const char *path, mode_t mode)
{
    char text[64] = "";
    struct stat facts;
    FILE *file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL(fgets(text, sizeof text, file));
    CU_ASSERT_STRING_EQUAL(text, FILE_TEXT);
    CU_ASSERT_EQUAL(fstat(fileno(file), &facts), 0);
    CU_ASSERT_EQUAL(facts.st_mode & 07777, mode);
    CU_ASSERT_EQUAL(facts.st_uid, geteuid());
    fclose(file);
    remove(path);
}

/* A grandchild, since the broker is the one child of this process. It ends with this process, or by an attack. */
static void lay_process(void)
{
    int life[2], name[2];
    pid_t pid = -1;
    CU_ASSERT_TRUE_FATAL(pipe2(life, O_CLOEXEC) == 0 && pipe2(name, O_CLOEXEC) == 0);
    pid_t child = fork();
    CU_ASSERT_TRUE_FATAL(child >= 0);
    if (child == 0) {
        pid = fork();
        if (pid == 0) {
            dup2(life[0], STDIN_FILENO);
            execlp("cat", "cat", (char *)NULL);
            _exit(127);
        }
        _exit(write(name[1], &pid, sizeof pid) == (ssize_t)sizeof pid ? 0 : 1);
    }
    CU_ASSERT_EQUAL(read(name[0], &pid, sizeof pid), (ssize_t)sizeof pid);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
    close(life[0]);
    close(name[0]);
    close(name[1]);
    bait.process_end = life[1];
    bait.process_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CU_ASSERT_TRUE_FATAL(bait.process_pidfd >= 0);
    snprintf(bait.process, sizeof bait.process, "%d", (int)pid);
}

static void check_process(void)
{
    struct pollfd end = {.fd = bait.process_pidfd, .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&end, 1, 0), 0); /* it has not ended */
    close(bait.process_end);
    close(bait.process_pidfd);
}

/* ---- sockets ---- */

static int socket_lay(int type, const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool laid = fd >= 0 && bind(fd, address, len) == 0 &&
                (type == SOCK_DGRAM || listen(fd, 50) == 0) && bait.socket_count < SOCKETS_MAX;
    if (laid) {
        bait.sockets[bait.socket_count++] = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return laid ? fd : -1;
}

static void note_address(const char *type, const struct sockaddr *address, unsigned port)
{
    char text[INET6_ADDRSTRLEN] = "";
    const void *bytes = address->sa_family == AF_INET
                            ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                            : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    CU_ASSERT_PTR_NOT_NULL(inet_ntop(address->sa_family, bytes, text, sizeof text));
    buf_printf(&bait.addresses, "('%s', '%s', %u), ", type, text, port);
}

/* One listener and one receiver of datagrams on the address, each on a port of its own. An address that cannot be used
 * (an IPv6 one that is not settled yet) is none to be found. */
static unsigned lay_address(const struct sockaddr *given, socklen_t len)
{
    static const struct {
        int type;
        const char *name;
    } kinds[] = {{SOCK_DGRAM, "udp"}, {SOCK_STREAM, "tcp"}};
    unsigned port = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct sockaddr_storage address = {0};
        memcpy(&address, given, len);
        ((struct sockaddr_in *)&address)->sin_port = 0; /* at the same place for IPv6 */
        int fd = socket_lay(kinds[i].type, (struct sockaddr *)&address, len);
        socklen_t size = sizeof address;
        if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
            port = ntohs(((struct sockaddr_in *)&address)->sin_port);
            note_address(kinds[i].name, (struct sockaddr *)&address, port);
        }
    }
    return port;
}

static void lay_addresses(void)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *all = NULL;
    buf_puts(&bait.addresses, "[");
    unsigned port = lay_address((struct sockaddr *)&loopback, sizeof loopback);
    CU_ASSERT_TRUE_FATAL(port > 0);
    snprintf(bait.port, sizeof bait.port, "%u", port);
    CU_ASSERT_EQUAL(getifaddrs(&all), 0);
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        int family = one->ifa_addr == NULL ? AF_UNSPEC : one->ifa_addr->sa_family;
        if (family == AF_INET || family == AF_INET6) {
            (void)lay_address(one->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in)
                                                               : sizeof(struct sockaddr_in6));
        }
    }
    freeifaddrs(all);
    buf_puts(&bait.addresses, "]");
}

static void lay_unix_sockets(void)
{
    struct sockaddr_un abstract = {.sun_family = AF_UNIX}, named = {.sun_family = AF_UNIX};
    snprintf(bait.abstract_name, sizeof bait.abstract_name, "sandgate-bait-%d", (int)getpid());
    size_t len = strlen(bait.abstract_name);
    memcpy(abstract.sun_path + 1, bait.abstract_name, len);
    len += offsetof(struct sockaddr_un, sun_path) + 1;
    CU_ASSERT_TRUE(socket_lay(SOCK_STREAM, (struct sockaddr *)&abstract, (socklen_t)len) >= 0);
    snprintf(bait.named_path, sizeof bait.named_path, "/tmp/sandgate-bait-%d.sock", (int)getpid());
    snprintf(named.sun_path, sizeof named.sun_path, "%s", bait.named_path);
    CU_ASSERT_TRUE(socket_lay(SOCK_STREAM, (struct sockaddr *)&named, sizeof named) >= 0);
}

/* Neither a connection nor a datagram has come. */
static void check_sockets(void)
{
    for (size_t i = 0; i < bait.socket_count; i++) {
        struct pollfd arrival = {.fd = bait.sockets[i], .events = POLLIN};
        CU_ASSERT_EQUAL(poll(&arrival, 1, 0), 0);
        close(bait.sockets[i]);
    }
    bait.socket_count = 0;
}

void bait_lay(void)
{
    buf_clear(&bait.addresses);
    lay_files();
    lay_process();
    lay_addresses();
    lay_unix_sockets();
}

void bait_take_up(void)
{
    check_sockets();
    check_process();
    check_file(bait.secret, 0600);
    check_file(bait.world, 0644);
    remove(bait.named_path);
    shmctl(bait.segment, IPC_RMID, NULL);
    buf_clear(&bait.addresses);
}

/* ---- the second session ---- */

/* A shared memory segment of its own, which it would have too, boxes do not get. */
void bait_peer_begin(void)
{
    static const char code[] =
        "import os, socket, subprocess\n"
        "paths = '/home/user/PEER_SECRET.txt', '/tmp/PEER_SECRET', '/dev/shm/PEER_SECRET'\n"
        "for p in paths: open(p, 'w').write('" PEER_TEXT "')\n"
        "q = subprocess.Popen(['sh', '-c', 'sleep 10000; : PEER_SECRET'])\n"
        "s = socket.create_server(('127.0.0.1', 0)); s.setblocking(False)\n"
        "def visited():\n"
        "    try: return bool(s.accept())\n"
        "    except BlockingIOError: return False\n"
        "print(s.getsockname()[1], end='')";
    struct outcome outcome = {0};
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(host_create(600000, bait.peer, &err), 0);
    host_exec(bait.peer, NULL, code, sizeof code - 1, PEER_MS, &outcome);
    CU_ASSERT_EQUAL(outcome.code, 0);
    snprintf(bait.peer_port, sizeof bait.peer_port, "%s", outcome.out.data);
    outcome_clear(&outcome);
}

void bait_peer_end(void)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(host_destroy(bait.peer, &err), 0);
}

bool bait_peer_is_well(void)
{
    static const char code[] =
        "print([open(p).read() == '" PEER_TEXT "' for p in paths], q.poll(), visited())";
    static struct outcome outcome;
    while (bait.peer_is_asked) {
        CHECK(fiber_sleep(1) == 0);
    }
    bait.peer_is_asked = true;
    host_exec(bait.peer, NULL, code, sizeof code - 1, PEER_MS, &outcome);
    bool well =
        outcome.code == 0 && strcmp(outcome.out.data, "[True, True, True] None False\n") == 0;
    outcome_clear(&outcome);
    bait.peer_is_asked = false;
    return well;
}

/* ---- texts ---- */

static void fill_one(const char *value, bool is_pattern, struct buf *out)
{
    for (const char *c = value; *c != '\0'; c++) {
        if (is_pattern && strchr(".+*?()[]{}|^$\\", *c) != NULL) {
            buf_putc(out, '\\');
        }
        buf_putc(out, *c);
    }
}

void bait_fill_in(const char *text, bool is_pattern, struct buf *out)
{
    const struct {
        const char *name, *value;
    } names[] = {
        {"@HOST_PORT@", bait.port},
        {"@HOST_ADDRESSES@", bait.addresses.data},
        {"@HOST_ABSTRACT@", bait.abstract_name},
        {"@HOST_SOCK@", bait.named_path},
        {"@HOST_SECRET@", bait.secret},
        {"@HOST_WORLD@", bait.world},
        {"@HOST_PID@", bait.process},
        {"@PEER_PORT@", bait.peer_port},
    };
    while (*text != '\0') {
        size_t i = 0;
        while (i < COUNT_OF(names) && strncmp(text, names[i].name, strlen(names[i].name)) != 0) {
            i++;
        }
        if (i < COUNT_OF(names)) {
            fill_one(names[i].value, is_pattern, out);
            text += strlen(names[i].name);
        } else {
            buf_putc(out, *text++);
        }
    }
}

bool bait_is_in(const struct buf *text)
{
    static const char *const secrets[] = {FILE_TEXT, KEY, PEER_TEXT};
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        if (text->len > 0 &&
            memmem(text->data, text->len, secrets[i], strlen(secrets[i])) != NULL) {
            return true;
        }
    }
    return false;
}
