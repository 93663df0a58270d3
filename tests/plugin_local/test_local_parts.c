/* The parts of the provider that take bytes from a box: reading packets, decoding text, putting values together. They
 * are tested without any box, and with hostile input: what comes out must be valid whatever goes in. */
#include "frames.h"
#include "local.h"
#include "output.h"
#include "text.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cunit_main.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

const struct sg_host *sg; /* nothing here waits or fails by the host */

/* ---- packets ---- */

static bool read_packet(const char *text, size_t len, struct frame *frame)
{
    *frame = (struct frame){0};
    return frame_read(text, len, frame);
}

#define PACKET(text) "" text "", sizeof(text) - 1
#define NONCE "\1\2\3\4\5\6\7\x08"

static void a_packet_is_read_in_its_parts(void)
{
    struct frame frame;
    CU_ASSERT_TRUE(read_packet(PACKET("O\0" NONCE "hello"), &frame));
    CU_ASSERT_EQUAL(frame.kind, FRAME_STDOUT);
    CU_ASSERT_FALSE(frame.more);
    CU_ASSERT_EQUAL(frame.nonce, 0x0807060504030201u);
    CU_ASSERT_EQUAL(frame.body_len, 5);
    CU_ASSERT_TRUE(memcmp(frame.body, "hello", 5) == 0);
    CU_ASSERT_TRUE(read_packet(PACKET("M\1" NONCE "\x09image/pngDATA"), &frame));
    CU_ASSERT_TRUE(frame.more);
    CU_ASSERT_EQUAL(frame.mime_len, 9);
    CU_ASSERT_TRUE(memcmp(frame.mime, "image/png", 9) == 0);
    CU_ASSERT_EQUAL(frame.body_len, 4);
    CU_ASSERT_TRUE(read_packet(PACKET("X\0" NONCE "\2tb"), &frame));
    CU_ASSERT_EQUAL(frame.number, EXCEPTION_TRACEBACK);
    CU_ASSERT_TRUE(read_packet(PACKET("F\0" NONCE "\1"), &frame));
    CU_ASSERT_EQUAL(frame.number, 1);
    CU_ASSERT_TRUE(read_packet(PACKET("O\0" NONCE), &frame));
    CU_ASSERT_EQUAL(frame.body_len, 0);
    CU_ASSERT_TRUE(read_packet(PACKET("S\0" NONCE), &frame));
    CU_ASSERT_EQUAL(frame.kind, FRAME_SYNC);
}

static void packets_of_commands_are_read_in_their_parts(void)
{
    struct frame frame;
    CU_ASSERT_TRUE(read_packet(PACKET("C\0" NONCE "\xFF"), &frame));
    CU_ASSERT_EQUAL(frame.number, 255);
    CU_ASSERT_TRUE(read_packet(PACKET("Q\0" NONCE "\0"), &frame));
    CU_ASSERT_EQUAL(frame.number, REFUSAL_NO_SHELL);
    CU_ASSERT_FALSE(read_packet(PACKET("C\0" NONCE), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("C\0" NONCE "\1x"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("Q\0" NONCE "\x09"), &frame)); /* no such refusal */
    CU_ASSERT_TRUE(read_packet(PACKET("L\0" NONCE), &frame));
    CU_ASSERT_EQUAL(frame.kind, FRAME_LOST);
    CU_ASSERT_FALSE(read_packet(PACKET("L\0" NONCE "\0"), &frame));
    static const char ours[] = {FRAME_RUN, FRAME_COMMAND};
    for (size_t i = 0; i < sizeof ours; i++) { /* to send, not to get */
        char packet[] = "?\0" NONCE "x";
        packet[0] = ours[i];
        CU_ASSERT_FALSE(read_packet(packet, sizeof packet - 1, &frame));
    }
}

static void packets_that_are_none_are_refused(void)
{
    struct frame frame;
    CU_ASSERT_FALSE(read_packet("", 0, &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("O\0\1\2\3\4\5\6\7"), &frame));        /* a short head */
    CU_ASSERT_FALSE(read_packet(PACKET("O\2" NONCE), &frame));                /* an unknown flag */
    CU_ASSERT_FALSE(read_packet(PACKET("Z\0" NONCE), &frame));                /* an unknown kind */
    CU_ASSERT_FALSE(read_packet(PACKET("R\0" NONCE "x"), &frame));            /* ours to send */
    CU_ASSERT_FALSE(read_packet(PACKET("S\0" NONCE "x"), &frame));            /* it has no body */
    CU_ASSERT_FALSE(read_packet(PACKET("F\0" NONCE), &frame));                /* no number */
    CU_ASSERT_FALSE(read_packet(PACKET("F\0" NONCE "\2"), &frame));           /* not one of two */
    CU_ASSERT_FALSE(read_packet(PACKET("F\0" NONCE "\1x"), &frame));          /* too long */
    CU_ASSERT_FALSE(read_packet(PACKET("X\0" NONCE "\3x"), &frame));          /* no such field */
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\x09image/pn"), &frame)); /* a short name */
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\0text"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\6a\"b/cd"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\6a\0b/cd"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\6abcdef"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\6/abcde"), &frame));
    CU_ASSERT_FALSE(read_packet(PACKET("M\0" NONCE "\6A/bcde"), &frame));
    static char large[FRAME_BYTES_MAX + 1] = "O";
    CU_ASSERT_TRUE(read_packet(large, FRAME_BYTES_MAX, &frame));
    CU_ASSERT_FALSE(read_packet(large, FRAME_BYTES_MAX + 1, &frame));
}

/* ---- text ---- */

/* Feeds the text in pieces of `step` bytes. */
static void decode_in(struct text *out, const char *data, size_t len, size_t step)
{
    struct decoder decoder = {0};
    for (size_t at = 0; at < len; at += step) {
        decoder_feed(&decoder, data + at, len - at < step ? len - at : step, out);
    }
    decoder_end(&decoder, out);
}

static void decoding_gives_the_same_in_pieces_of_any_size(void)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"plain", "plain"},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b"},
        {"\xC3", "\xEF\xBF\xBD"},
        {"\xC3\xC3\xA4", "\xEF\xBF\xBD\xC3\xA4"},
        {"\xE2\x82"
         "A",
         "\xEF\xBF\xBD\xEF\xBF\xBD"
         "A"},
        {"\xF0\x9F\x98\xC3\xA4", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xA4"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"ab\xF0\x9F\x98", "ab\xEF\xBF\xBD"}, /* unfinished at the end: one for all of it */
        {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t step = 1; step <= 5; step++) {
            struct text out = {0};
            decode_in(&out, cases[i].bytes, strlen(cases[i].bytes), step);
            CU_ASSERT_TRUE(out.len == strlen(cases[i].text) &&
                           memcmp(out.data, cases[i].text, out.len) == 0);
            text_clear(&out);
        }
    }
}

static void text_beyond_the_bound_is_dropped_whole(void)
{
    struct text text = {.max = 5};
    CU_ASSERT_TRUE(text_puts(&text, "abc"));
    CU_ASSERT_FALSE(text_puts(&text, "def"));
    CU_ASSERT_FALSE(text_puts(&text, "d"));
    CU_ASSERT_TRUE(text.cut);
    CU_ASSERT_EQUAL(text.len, 3);
    text_reset(&text);
    CU_ASSERT_TRUE(text_puts(&text, "d"));
    text_clear(&text);
}

static void cutting_leaves_no_half_character(void)
{
    CU_ASSERT_EQUAL(text_fitting("a\xE2\x82\xAC", 4, 4), 4);
    CU_ASSERT_EQUAL(text_fitting("a\xE2\x82\xAC", 4, 3), 1);
    CU_ASSERT_EQUAL(text_fitting("a\xE2\x82\xAC", 4, 2), 1);
    CU_ASSERT_EQUAL(text_fitting("a\xE2\x82\xAC", 4, 1), 1);
    CU_ASSERT_EQUAL(text_fitting("\xF0\x9F\x98\x80", 4, 3), 0);
    CU_ASSERT_EQUAL(text_fitting("abc", 3, 0), 0);
}

/* ---- putting together ---- */

static struct buf given; /* "kind:data|" one after another */

static int take(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)err;
    buf_printf(&given, "%d:", kind);
    buf_append(&given, data, len);
    buf_putc(&given, '|');
    return *(int *)ctx;
}

static int sink_result;
static const struct sg_sink sink = {take, &sink_result};

static void feed(struct output *output, const char *packet, size_t len)
{
    struct frame frame;
    if (frame_read(packet, len, &frame)) {
        CU_ASSERT_EQUAL(output_frame(output, &frame, 0, NULL), sink_result);
    }
}

#define FEED(text) feed(&output, text, sizeof(text) - 1)

static void begin(struct output *output, uint64_t shown_max, uint64_t results_max)
{
    buf_reset(&given);
    buf_puts(&given, "");
    sink_result = 0;
    output_init(output, &sink, shown_max, results_max);
}

static void text_of_one_stream_is_handed_on_together(void)
{
    struct output output;
    begin(&output, 1000, 1000);
    FEED("O\0" NONCE "a");
    FEED("O\0" NONCE "b\n");
    output_bytes(&output, SOURCE_PIPE_OUT, "c", 1, 0, NULL);
    CU_ASSERT_STRING_EQUAL(given.data, "");
    FEED("E\0" NONCE "d");
    CU_ASSERT_STRING_EQUAL(given.data, "4:ab\nc|");
    CU_ASSERT_EQUAL(output_end(&output, NULL), 0);
    CU_ASSERT_STRING_EQUAL(given.data, "4:ab\nc|5:d|");
    output_clear(&output);
}

static void a_value_is_put_together_from_its_parts(void)
{
    struct output output;
    begin(&output, 1000, 1000);
    FEED("O\0" NONCE "before");
    FEED("M\1" NONCE "\x0atext/plaina\xC3");
    FEED("M\0" NONCE "\x0atext/plain\xA4\"\n");
    FEED("M\0" NONCE "\x09image/pngQUJD");
    FEED("V\0" NONCE "\0");
    CU_ASSERT_STRING_EQUAL(given.data, "4:before|6:{\"text/plain\":\"a\xC3\xA4\\\"\\n\",\"image/"
                                       "png\":\"QUJD\"}|");
    buf_reset(&given);
    FEED("V\0" NONCE "\0"); /* of nothing */
    CU_ASSERT_EQUAL(given.len, 0);
    output_clear(&output);
}

static void forms_that_are_wrong_are_left_out(void)
{
    struct output output;
    begin(&output, 1000, 200);
    FEED("M\0" NONCE "\x09image/png<svg onload=x>");
    FEED("M\0" NONCE "\x0atext/plainfirst");
    FEED("M\0" NONCE "\x0atext/plainsecond");
    FEED("M\1" NONCE "\x09text/htmlunfinished");
    FEED("V\0" NONCE "\0");
    CU_ASSERT_STRING_EQUAL(given.data, "6:{\"text/plain\":\"first\"}|");
    buf_reset(&given);
    char large[300] = "M\0" NONCE "\x09text/html";
    size_t head = 10 + 10;
    memcpy(large, "M\0" NONCE "\x09text/html", head);
    memset(large + head, 'x', sizeof large - head);
    FEED("M\0" NONCE "\x0atext/plainok");
    feed(&output, large, sizeof large);
    FEED("V\0" NONCE "\1");
    CU_ASSERT_STRING_EQUAL(given.data, "6:{\"text/plain\":\"ok\"}|");
    buf_reset(&given);
    CU_ASSERT_EQUAL(output_end(&output, NULL), 0);
    CU_ASSERT_STRING_EQUAL(given.data,
                           "5:\n[3 shown values left out: more than 200 bytes in all, or "
                           "not what their type says]\n|");
    output_clear(&output);
}

static void an_exception_is_given_once_and_whole(void)
{
    struct output output;
    begin(&output, 1000, 1000);
    FEED("X\0" NONCE "\0KeyError");
    FEED("X\0" NONCE "\1'k'");
    FEED("X\1" NONCE "\2Trace");
    FEED("X\0" NONCE "\2back\n");
    FEED("F\0" NONCE "\1");
    FEED("X\0" NONCE "\0Again");
    FEED("F\0" NONCE "\1");
    CU_ASSERT_STRING_EQUAL(
        given.data, "11:{\"name\":\"KeyError\",\"value\":\"'k'\",\"traceback\":\"Traceback\\n\"}|");
    output_clear(&output);
}

static void output_is_cut_at_a_character_and_told(void)
{
    struct output output;
    begin(&output, 4, 1000);
    FEED("O\0" NONCE "ab\xE2\x82\xAC");
    FEED("O\0" NONCE "x");
    CU_ASSERT_EQUAL(output_end(&output, NULL), 0);
    CU_ASSERT_STRING_EQUAL(given.data,
                           "4:ab|5:\n[output cut: the first 4 of 6 bytes are shown]\n|");
    output_clear(&output);
}

static void what_the_sink_returns_ends_the_work(void)
{
    struct output output;
    begin(&output, 1000, 1000);
    FEED("O\0" NONCE "a");
    sink_result = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(output_flush(&output, NULL), SG_E_CANCELLED);
    output_bytes(&output, SOURCE_PIPE_ERR, "b", 1, 0, NULL);
    CU_ASSERT_EQUAL(output_end(&output, NULL), SG_E_CANCELLED);
    output_clear(&output);
}

/* ---- hostile input ---- */

static uint32_t random_state = 1;
static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

/* Packets that are mostly well-formed at the start, so that the reader gets far. */
static size_t random_packet(char *packet, size_t size)
{
    static const char kinds[] = "OEMVXFHR?";
    static const char *const names[] = {"\x0atext/plain", "\x09image/png", "\3a/b", "\2zz"};
    size_t len = 10 + random_below((uint32_t)size - 10);
    for (size_t i = 0; i < len; i++) {
        packet[i] =
            (char)(random_below(4) == 0 ? (int)random_below(256) : 'a' + (int)random_below(26));
    }
    packet[0] = kinds[random_below(sizeof kinds - 1)];
    packet[1] = (char)random_below(random_below(8) == 0 ? 256u : 2u);
    if (packet[0] == 'M' && len > 30) {
        const char *name = names[random_below(COUNT_OF(names))];
        memcpy(packet + 10, name, (size_t)name[0] + 1);
    } else if (len > 10) {
        packet[10] = (char)random_below(4);
        len = (packet[0] == 'V' || packet[0] == 'F') && random_below(4) != 0 ? 11 : len;
    }
    return random_below(20) == 0 ? random_below(12) : len;
}

/* Whatever is handed on: text is UTF-8, the rest is JSON. */
static int check_valid(void *ctx, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)err;
    struct str text = {data, len};
    bool is_text = kind == SG_OUT_LOG_OUT || kind == SG_OUT_LOG_ERR;
    (*(unsigned *)ctx)++;
    if (is_text) {
        CU_ASSERT_TRUE(utf8_valid(text));
        return 0;
    }
    struct arena *arena = arena_new(0);
    struct json_text json;
    struct sg_error wrong = {0};
    CU_ASSERT_TRUE(kind == SG_OUT_RESULT || kind == SG_OUT_EXCEPTION);
    CU_ASSERT_EQUAL(json_scan(text, arena, &json, &wrong), 0);
    CU_ASSERT_STRING_EQUAL(wrong.message, "");
    CU_ASSERT_EQUAL(json.root.type, JSON_OBJECT);
    arena_free(arena);
    return 0;
}

static void whatever_a_box_sends_only_valid_text_and_json_come_out(void)
{
    unsigned events = 0;
    const struct sg_sink checking = {check_valid, &events};
    char packet[600];
    for (int round = 0; round < 3000; round++) {
        struct output output;
        output_init(&output, &checking, 1 + random_below(4000), 1 + random_below(4000));
        for (int i = 0; i < 30; i++) {
            size_t len = random_packet(packet, sizeof packet);
            char *exact = check_alloc(malloc(len + 1)); /* so that one byte too far is seen */
            memcpy(exact, packet, len);
            struct frame frame;
            if (frame_read(exact, len, &frame)) {
                CU_ASSERT_EQUAL(output_frame(&output, &frame, 0, NULL), 0);
            } else if (len > 0) {
                enum output_source source = (enum output_source)random_below(SOURCE_COUNT);
                CU_ASSERT_EQUAL(output_bytes(&output, source, exact, len, 0, NULL), 0);
            }
            free(exact);
        }
        CU_ASSERT_EQUAL(output_end(&output, NULL), 0);
        CU_ASSERT_TRUE(output.results_bytes <= output.results_max + 30 * 80);
        output_clear(&output);
    }
    CU_ASSERT_TRUE(events > 10000);
}

/* ---- remedies ---- */

static void a_remedy_names_the_setting_that_is_in_the_way(void)
{
    const struct remedy_facts debian = {
        .userns_clone = 0, .userns_max = 1000, .apparmor_restricts = -1};
    const struct remedy_facts ubuntu = {
        .userns_clone = 1, .userns_max = 1000, .apparmor_restricts = 1};
    const struct remedy_facts none = {
        .userns_clone = -1, .userns_max = 0, .apparmor_restricts = -1};
    const struct remedy_facts open = {
        .userns_clone = 1, .userns_max = 1000, .apparmor_restricts = 0};
    struct remedy_facts root = open;
    root.is_root = true;
    const struct {
        const char *step;
        int error;
        const struct remedy_facts *facts;
        const char *part;
    } cases[] = {
        {"create namespaces (clone3)", EPERM, &debian, "kernel.unprivileged_userns_clone is 0"},
        {"write uid_map of the user namespace", EPERM, &ubuntu,
         "kernel.apparmor_restrict_unprivileged_userns is 1"},
        {"mount devpts", EACCES, &ubuntu, "AppArmor profile with 'userns,'"},
        {"create namespaces (clone3)", ENOSPC, &none, "user.max_user_namespaces is 0"},
        {"create namespaces (clone3)", EPERM, &open, "seccomp=unconfined"},
        {"create namespaces (clone3)", EPERM, &open, "chroot"},
        {"create namespaces (clone3)", ENOSYS, &open, "Linux 5.14"},
        {"create namespaces (clone3)", ENOSYS, &open, "seccomp=unconfined"},
        {"set the host name", EPERM, &open, "ProtectHostname="},
        {"create namespaces (clone3)", EUSERS, &open, "Raise user.max_user_namespaces"},
        {"mount /proc", EPERM, &open, "unmask=ALL"},
        {"run '/usr/bin/python3' in the box", ENOENT, &open, "apt-get install python3"},
        {"run '/usr/bin/python3' in the box", EACCES, &open, "must name a Python 3 interpreter"},
        {"write uid_map of the user namespace", EPERM, &root, "CAP_SETUID"},
        {"raise the loopback interface", EIO, &open, "README.md"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *remedy = remedy_pick(cases[i].step, cases[i].error, cases[i].facts);
        if (strstr(remedy, cases[i].part) == NULL) {
            fprintf(stderr, "%s: %s\n", cases[i].step, remedy);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(remedy, cases[i].part));
    }
}

/* ---- tiers ---- */

static void a_tier_is_told_with_what_it_rests_on(void)
{
    static const struct local_config config = {.cpu = "1.5"}, no_limit = {.cpu = "0"};
    const struct {
        struct wire_hello hello;
        const struct local_config *config;
        int tier;
        const char *json;
    } cases[] = {
        {{.is_root = 1, .controls = 15, .groups_version = 1},
         &config,
         0,
         "{\"state\":\"open\",\"tier\":0,\"control_groups\":1,\"memory\":\"group\","
         "\"processes\":\"group\",\"cpu\":\"group\",\"idle\":\"frozen\","
         "\"note\":\"isolation tier 0: root with control groups\"}"},
        {{.controls = 7, .groups_version = 2},
         &no_limit,
         1,
         "{\"state\":\"open\",\"tier\":1,\"control_groups\":2,\"memory\":\"group\","
         "\"processes\":\"group\",\"cpu\":\"none\",\"idle\":\"running\",\"note\":\"isolation "
         "tier 1: an ordinary user with control groups of its own\"}"},
        {{.is_root = 1, .controls = 3, .groups_version = 2, .missing = "no \"cpu\" in '/a\\b\n'"},
         &config,
         2,
         "{\"state\":\"open\",\"tier\":2,\"control_groups\":2,\"memory\":\"group\","
         "\"processes\":\"group\",\"cpu\":\"affinity\",\"idle\":\"running\",\"note\":\"isolation "
         "tier 2: not all limits are by control groups: no \\\"cpu\\\" in '/a\\\\b?' (see "
         "README.md "
         "of local)\"}"},
        {{.missing = "m"},
         &config,
         2,
         "{\"state\":\"open\",\"tier\":2,\"control_groups\":0,\"memory\":\"polled\","
         "\"processes\":\"rlimit\",\"cpu\":\"affinity\",\"idle\":\"running\",\"note\":\"isolation "
         "tier 2: not all limits are by control groups: m (see README.md of local)\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[1024];
        struct isolation isolation = isolation_of(&cases[i].hello);
        CU_ASSERT_EQUAL(isolation.tier, cases[i].tier);
        isolation_write(cases[i].config, &isolation, json, sizeof json);
        CU_ASSERT_STRING_EQUAL(json, cases[i].json);
    }
    /* A word that is not ended, and room for little: still JSON. */
    struct wire_hello long_word = {.controls = 1};
    memset(long_word.missing, '"', sizeof long_word.missing);
    struct isolation isolation = isolation_of(&long_word);
    for (size_t size = 300; size < 700; size++) {
        char json[700];
        struct json_text text;
        struct sg_error err = {0};
        struct arena *arena = arena_new(0);
        isolation_write(&config, &isolation, json, size);
        CU_ASSERT_EQUAL(json_scan(str_of(json), arena, &text, &err), 0);
        arena_free(arena);
    }
}

/* ---- the end of a box ---- */

/* What is known of a box whose pid 1 sent `last`, if anything, and left with one of our orders still unread: the kernel
 * then reports a reset before it hands over what was sent. */
static enum box_end end_after(const struct wire_status *last, struct box *box)
{
    int pair[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    *box = (struct box){.status = pair[0], .driver = -1, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct wire_order order = {.magic = WIRE_MAGIC, .kind = WIRE_BUSY};
    CU_ASSERT_EQUAL(send(pair[0], &order, sizeof order, 0), (ssize_t)sizeof order);
    if (last != NULL) {
        CU_ASSERT_EQUAL(send(pair[1], last, sizeof *last, 0), (ssize_t)sizeof *last);
    }
    close(pair[1]);
    box_read_status(box);
    close(pair[0]);
    close(box->epoll);
    return box->end;
}

static void the_last_word_of_a_box_is_heard_though_it_left_in_haste(void)
{
    struct box box;
    const struct wire_status ended = {.magic = WIRE_MAGIC, .kind = WIRE_ENDED, .value = SIGABRT};
    CU_ASSERT_EQUAL(end_after(&ended, &box), END_DRIVER);
    CU_ASSERT_EQUAL(box.wait_status, SIGABRT);
    CU_ASSERT_EQUAL(end_after(NULL, &box), END_UNKNOWN);
}

static const struct test tests[] = {
    TEST(a_packet_is_read_in_its_parts),
    TEST(packets_of_commands_are_read_in_their_parts),
    TEST(packets_that_are_none_are_refused),
    TEST(decoding_gives_the_same_in_pieces_of_any_size),
    TEST(text_beyond_the_bound_is_dropped_whole),
    TEST(cutting_leaves_no_half_character),
    TEST(text_of_one_stream_is_handed_on_together),
    TEST(a_value_is_put_together_from_its_parts),
    TEST(forms_that_are_wrong_are_left_out),
    TEST(an_exception_is_given_once_and_whole),
    TEST(output_is_cut_at_a_character_and_told),
    TEST(what_the_sink_returns_ends_the_work),
    TEST(whatever_a_box_sends_only_valid_text_and_json_come_out),
    TEST(a_remedy_names_the_setting_that_is_in_the_way),
    TEST(a_tier_is_told_with_what_it_rests_on),
    TEST(the_last_word_of_a_box_is_heard_though_it_left_in_haste),
};

int main(int argc, char **argv)
{
    int result = run_tests("local_parts", tests, COUNT_OF(tests), argc, argv);
    buf_clear(&given);
    return result;
}
