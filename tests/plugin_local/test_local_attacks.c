/* Attacks on the machine, on other sessions and on the gateway, from tests/data/attacks.json, each in a fresh box.
 *
 * A case gives code, how the run must end ("ok", "error", "oom", "timeout-killed", "crash:SIGSEGV" …, a regular
 * expression), what must and must not be printed, and whether the session lives on. The machine is furnished with things
 * to find first: a listener on loopback, an abstract and a named socket, a secret and a readable file, a key in the
 * environment, a shared memory segment, and a second session with files, a process and a port. After every case: the
 * second session lives and is untouched, no process and no descriptor is left; at the end nobody has connected. */
#include "fixture.h"

#include <arpa/inet.h>
#include <cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/loop.h"

static const struct host_options limits = {.memory = (uint64_t)256 << 20,
                                           .disk = (uint64_t)64 << 20,
                                           .inodes = 4000,
                                           .processes = 32,
                                           .files = 256};

/* ---- what there is to find ---- */

struct bait {
    int tcp, abstract, named, segment;
    char port[16], abstract_name[64], named_path[64], secret[64], world[64], pid[16];
    char peer[128], peer_port[16];
};
static struct bait bait;

static int listen_on(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && bind(fd, address, len) == 0 && listen(fd, 50) == 0);
    return fd;
}

static void put_file(const char *path, mode_t mode)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("CANARY", file);
    fclose(file);
    CU_ASSERT_EQUAL(chmod(path, mode), 0);
}

static void bait_files(void)
{
    int id = (int)getpid();
    snprintf(bait.pid, sizeof bait.pid, "%d", id);
    snprintf(bait.secret, sizeof bait.secret, "/tmp/sandgate-secret-%d", id);
    snprintf(bait.world, sizeof bait.world, "/var/tmp/sandgate-world-%d", id);
    put_file(bait.secret, 0600);
    put_file(bait.world, 0644);
    setenv("SANDBOX_CANARY_API_KEY", "sk-CANARY-123", 1);
    bait.segment = shmget(0x5EC, 4096, IPC_CREAT | 0666);
}

static void bait_sockets(void)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un abstract = {.sun_family = AF_UNIX}, named = {.sun_family = AF_UNIX};
    socklen_t len = sizeof tcp;
    bait.tcp = listen_on((struct sockaddr *)&tcp, sizeof tcp);
    CU_ASSERT_EQUAL(getsockname(bait.tcp, (struct sockaddr *)&tcp, &len), 0);
    snprintf(bait.port, sizeof bait.port, "%u", ntohs(tcp.sin_port));
    snprintf(bait.abstract_name, sizeof bait.abstract_name, "sandgate-bait-%s", bait.pid);
    memcpy(abstract.sun_path + 1, bait.abstract_name, strlen(bait.abstract_name));
    bait.abstract =
        listen_on((struct sockaddr *)&abstract, (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                                            1 + strlen(bait.abstract_name)));
    snprintf(bait.named_path, sizeof bait.named_path, "/tmp/sandgate-bait-%s.sock", bait.pid);
    snprintf(named.sun_path, sizeof named.sun_path, "%s", bait.named_path);
    bait.named = listen_on((struct sockaddr *)&named, sizeof named);
}

static void bait_peer(void)
{
    static const char code[] =
        "import os, socket, subprocess\n"
        "for p in '/home/user/PEER_SECRET.txt', '/tmp/PEER_SECRET', '/dev/shm/PEER_SECRET':\n"
        "    open(p, 'w').write('PEER_SECRET')\n"
        "q = subprocess.Popen(['sh', '-c', 'sleep 10000; : PEER_SECRET'])\n"
        "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], end='')";
    CU_ASSERT_EQUAL_FATAL(host_create(600000, bait.peer, &e), 0);
    host_exec(bait.peer, NULL, code, sizeof code - 1, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_EQUAL(o.code, 0);
    snprintf(bait.peer_port, sizeof bait.peer_port, "%s", o.out.data);
}

static void expect_untouched(int listener)
{
    CU_ASSERT_EQUAL(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
    CU_ASSERT_EQUAL(errno, EAGAIN);
    close(listener);
}

static void bait_check_and_clear(void)
{
    expect_untouched(bait.tcp);
    expect_untouched(bait.abstract);
    expect_untouched(bait.named);
    const char *files[] = {bait.secret, bait.world};
    for (int i = 0; i < 2; i++) {
        char text[16] = "";
        FILE *file = fopen(files[i], "r");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        CU_ASSERT_PTR_NOT_NULL(fgets(text, sizeof text, file));
        CU_ASSERT_STRING_EQUAL(text, "CANARY");
        fclose(file);
        remove(files[i]);
    }
    remove(bait.named_path);
    shmctl(bait.segment, IPC_RMID, NULL);
}

/* ---- texts and patterns of a case ---- */

/* Fills the names of the bait in. In a pattern, special characters in them are escaped. */
static void fill_in(const char *text, bool is_pattern, struct buf *out)
{
    const struct {
        const char *name, *value;
    } names[] = {
        {"@HOST_PORT@", bait.port},       {"@HOST_ABSTRACT@", bait.abstract_name},
        {"@HOST_SOCK@", bait.named_path}, {"@HOST_SECRET@", bait.secret},
        {"@HOST_WORLD@", bait.world},     {"@HOST_PID@", bait.pid},
        {"@PEER_PORT@", bait.peer_port},
    };
    while (*text != '\0') {
        bool found = false;
        for (size_t i = 0; i < COUNT_OF(names) && !found; i++) {
            found = strncmp(text, names[i].name, strlen(names[i].name)) == 0;
            if (found) {
                for (const char *c = names[i].value; *c != '\0'; c++) {
                    if (is_pattern && strchr(".+*?()[]{}|^$\\", *c) != NULL) {
                        buf_putc(out, '\\');
                    }
                    buf_putc(out, *c);
                }
                text += strlen(names[i].name);
            }
        }
        if (!found) {
            buf_putc(out, *text++);
        }
    }
}

/* Whether the pattern occurs in the text, or is all of it. The two ways in which Python's patterns here differ from
 * POSIX ones are translated. */
static bool matches(const char *pattern, bool whole, const struct buf *text)
{
    BUF_CLEANUP struct buf filled = {0}, posix = {0};
    fill_in(strncmp(pattern, "(?s)", 4) == 0 ? pattern + 4 : pattern, true, &filled);
    buf_puts(&posix, whole ? "^(" : "(");
    for (const char *c = filled.data; *c != '\0'; c++) {
        bool digit = c[0] == '\\' && c[1] == 'd';
        buf_append(&posix, digit ? "[0-9]" : c, digit ? 5 : 1);
        c += digit;
    }
    buf_puts(&posix, whole ? ")$" : ")");
    regex_t compiled;
    CU_ASSERT_EQUAL_FATAL(regcomp(&compiled, posix.data, REG_EXTENDED | REG_NOSUB), 0);
    /* Output may hold NUL, which ends a text for regexec(). */
    BUF_CLEANUP struct buf visible = {0};
    buf_append(&visible, text->data, text->len);
    for (size_t i = 0; i < visible.len; i++) {
        visible.data[i] = visible.data[i] == '\0' ? ' ' : visible.data[i];
    }
    bool found = regexec(&compiled, visible.data == NULL ? "" : visible.data, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

/* The words of the cases for how a run ended. */
static void name_end(struct buf *ret)
{
    const char *message = o.error.message, *at;
    bool killed = o.code == SG_E_GONE;
    if (o.code == 0) {
        buf_puts(ret, o.exception.len > 0 ? "error" : "ok");
    } else if (strstr(message, "ran longer than") != NULL) {
        buf_puts(ret, killed ? "timeout-killed" : "timeout-interrupted");
    } else if (strstr(message, "printed more than") != NULL) {
        buf_puts(ret, killed ? "flood-killed" : "flood-interrupted");
    } else if (strstr(message, "ran out of memory") != NULL) {
        buf_puts(ret, "oom");
    } else if ((at = strstr(message, "crashed with ")) != NULL) {
        buf_printf(ret, "crash:%.*s", (int)strcspn(at + 13, ";"), at + 13);
    } else if ((at = strstr(message, "exited with status ")) != NULL) {
        buf_printf(ret, "exit:%.*s", (int)strcspn(at + 19, ";"), at + 19);
    } else {
        buf_printf(ret, "sandbox-gone");
    }
}

/* ---- one case ---- */

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Shell and JavaScript run as children of the interpreter. */
static void make_code(const cJSON *attack, struct buf *ret)
{
    const char *language = text_of(attack, "language");
    BUF_CLEANUP struct buf code = {0};
    fill_in(text_of(attack, "code"), false, &code);
    if (strcmp(language, "python") == 0) {
        buf_append(ret, code.data, code.len);
        return;
    }
    buf_puts(ret, "import subprocess\nr = subprocess.run([");
    buf_puts(ret,
             strcmp(language, "bash") == 0 ? "'/bin/bash', '-c', " : "'/usr/bin/node', '-e', ");
    buf_put_json(ret, buf_str(&code));
    buf_puts(ret, "])");
}

#define EXPECT_CASE(condition, what)                                                     \
    do {                                                                                 \
        bool holds_ = (condition);                                                       \
        CU_ASSERT_TRUE(holds_);                                                          \
        if (!holds_) {                                                                   \
            fprintf(stderr, "\n%s: %s (%s): %.2000s\n", id, what, end.data, o.out.data); \
        }                                                                                \
    } while (0)

static void check_outcome(const char *id, const cJSON *expect)
{
    BUF_CLEANUP struct buf end = {0}, printed = {0};
    const char *pattern = text_of(expect, "outcome"), *other = text_of(expect, "outcome_alt");
    name_end(&end);
    EXPECT_CASE(matches(pattern, true, &end) || (other != NULL && matches(other, true, &end)),
                pattern);
    buf_append(&printed, o.out.data, o.out.len);
    buf_append(&printed, o.err.data, o.err.len);
    if ((pattern = text_of(expect, "stdout")) != NULL) {
        EXPECT_CASE(matches(pattern, false, &printed), pattern);
    }
    if ((pattern = text_of(expect, "not_stdout")) != NULL) {
        EXPECT_CASE(!matches(pattern, false, &printed), pattern);
    }
    if ((pattern = text_of(expect, "stderr_has")) != NULL) {
        EXPECT_CASE(strstr(o.exception.data, pattern) != NULL, pattern);
    }
    if ((pattern = text_of(expect, "error")) != NULL) {
        char name[80];
        snprintf(name, sizeof name, "{\"name\":\"%s\"", pattern);
        EXPECT_CASE(strncmp(o.exception.data, name, strlen(name)) == 0, name);
    }
}

static void check_session(const char *id, const char *wanted)
{
    BUF_CLEANUP struct buf end = {0};
    host_exec(box, NULL, "print(6*7)", 10, 3000, &o);
    name_end(&end);
    bool alive = o.code == 0 && strstr(o.out.data, "42") != NULL;
    EXPECT_CASE(strcmp(wanted, "any") == 0 || alive == (strcmp(wanted, "alive") == 0), wanted);
}

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static void check_peer(const char *id)
{
    static const char code[] = "print(open('/home/user/PEER_SECRET.txt').read(), q.poll())";
    BUF_CLEANUP struct buf end = {0};
    host_exec(bait.peer, NULL, code, sizeof code - 1, DEFAULT_TIMEOUT_MS, &o);
    name_end(&end);
    EXPECT_CASE(strcmp(o.out.data, "PEER_SECRET None\n") == 0, "the other session");
}

static void run_case(const cJSON *attack)
{
    const char *id = text_of(attack, "id");
    const cJSON *expect = cJSON_GetObjectItemCaseSensitive(attack, "expect");
    const cJSON *timeout = cJSON_GetObjectItemCaseSensitive(expect, "timeout_s");
    BUF_CLEANUP struct buf code = {0};
    size_t fds = entries("/proc/self/fd");
    make_code(attack, &code);
    CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
    host_exec(box, "python", code.data, code.len,
              cJSON_IsNumber(timeout) ? (int64_t)(timeout->valuedouble * 1000) : 5000, &o);
    check_outcome(id, expect);
    check_session(id, text_of(expect, "session"));
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    CU_ASSERT_EQUAL(entries("/proc/self/fd"), fds);
    check_peer(id);
}

/* ---- groups ---- */

static const char *group;

static bool is_wanted(const cJSON *attack)
{
    const char *id = text_of(attack, "id");
    bool is_javascript = strcmp(text_of(attack, "language"), "javascript") == 0;
    return strncmp(id, group, strlen(group)) == 0 &&
           !(is_javascript && access("/usr/bin/node", X_OK) != 0);
}

static cJSON *attacks_read(void)
{
    FILE *file = fopen(TEST_DATA "/attacks.json", "r");
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

static void group_body(void)
{
    cJSON *attacks = attacks_read();
    const cJSON *attack;
    int count = 0;
    bait_peer();
    cJSON_ArrayForEach(attack, attacks)
    {
        if (is_wanted(attack)) {
            run_case(attack);
            count++;
        }
    }
    CU_ASSERT_TRUE(count > 0 || strcmp(group, "js-") == 0);
    CU_ASSERT_EQUAL(host_destroy(bait.peer, &e), 0);
    cJSON_Delete(attacks);
}

static void run_group(const char *prefix)
{
    group = prefix;
    bait_files();
    bait_sockets();
    without_box(&limits, group_body);
    bait_check_and_clear();
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
    if (geteuid() != 0) {
        fprintf(stderr, "left out: Node needs epoll, which boxes have under root only\n");
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
