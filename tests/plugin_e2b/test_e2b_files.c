/* Files of a sandbox: what envd is asked, by version and path, what its answers become, and every way in which it refuses. */
#include "envd_fixture.h"

static int get(struct fixture *f, const char *path)
{
    return e2b_get(f->e2b, f->call, ID, path, call_error(f->call));
}

static int put(struct fixture *f, const char *path, const void *data, size_t len)
{
    return e2b_put(f->e2b, f->call, ID, path, data, len, call_error(f->call));
}

static int list(struct fixture *f, const char *path)
{
    return e2b_list(f->e2b, f->call, ID, path, call_error(f->call));
}

/* ---- content ---- */

static void a_file_is_written_as_it_is_to_an_envd_that_takes_that(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, "[{\"path\":\"/home/user/a b/\xC3\xA4.txt\",\"name\":\"x\",\"type\":\"file\"}]");
    CU_ASSERT_EQUAL(put(&f, "a b/\xC3\xA4&?.txt", "one\0two", 7), 0);
    expect_request(&f, 0, "POST", ENVD "/files?path=%2Fhome%2Fuser%2Fa%20b%2F%C3%A4%26%3F.txt");
    expect_header(&f, 0, "Content-Type", "application/octet-stream");
    expect_header(&f, 0, "X-Access-Token", ENVD_TOKEN);
    expect_header(&f, 0, "X-API-Key", NULL);
    expect_header(&f, 0, "E2B-Traffic-Access-Token", NULL);
    CU_ASSERT_EQUAL(f.call->requests[0].body_len, 7);
    CU_ASSERT_EQUAL(memcmp(f.call->requests[0].body, "one\0two", 7), 0);
    CU_ASSERT_EQUAL(f.call->outputs_count, 0);
    fixture_free(&f);
}

static void an_empty_file_is_written_with_a_body_of_no_bytes(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.6.0"));
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(put(&f, "/e", NULL, 0), 0);
    expect_request(&f, 0, "POST", ENVD "/files?path=%2Fe");
    CU_ASSERT_TRUE(f.call->requests[0].has_body);
    CU_ASSERT_EQUAL(f.call->requests[0].body_len, 0);
    fixture_free(&f);
}

/* The boundary of the request, from its header; NULL: there is none. */
static const char *boundary_of(struct fixture *f)
{
    static const char start[] = "multipart/form-data; boundary=";
    const char *type = request_header(f->call, 0, "Content-Type");
    CU_ASSERT_PTR_NOT_NULL_FATAL(type);
    CU_ASSERT_EQUAL_FATAL(strncmp(type, start, sizeof start - 1), 0);
    return type + sizeof start - 1;
}

static void expect_form(struct fixture *f, const char *boundary, const char *data, size_t len)
{
    char head[256], tail[96];
    size_t head_len = (size_t)snprintf(
        head, sizeof head,
        "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n",
        boundary);
    size_t tail_len = (size_t)snprintf(tail, sizeof tail, "\r\n--%s--\r\n", boundary);
    const struct fake_request *request = &f->call->requests[0];
    CU_ASSERT_EQUAL_FATAL(request->body_len, head_len + len + tail_len);
    CU_ASSERT_EQUAL(memcmp(request->body, head, head_len), 0);
    CU_ASSERT_EQUAL(memcmp(request->body + head_len, data, len), 0);
    CU_ASSERT_EQUAL(memcmp(request->body + head_len + len, tail, tail_len), 0);
}

static void an_older_envd_is_sent_a_form(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.6"));
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(put(&f, "a", "\0\r\n--x", 6), 0);
    expect_request(&f, 0, "POST", ENVD "/files?path=%2Fhome%2Fuser%2Fa");
    expect_form(&f, boundary_of(&f), "\0\r\n--x", 6);
    fixture_free(&f);
}

static void the_boundary_of_a_form_cannot_be_guessed(void)
{
    struct fixture f;
    char first[64] = "";
    begin(&f, OF_VERSION("0.1.0"));
    for (int i = 0; i < 2; i++) {
        reply(&f, 200, "[]");
        CU_ASSERT_EQUAL(put(&f, "/a", first, strlen(first)), 0);
        const char *boundary = boundary_of(&f);
        CU_ASSERT_EQUAL(strspn(boundary + strlen("----sandgate"), "0123456789abcdef"), 32);
        CU_ASSERT_STRING_NOT_EQUAL(boundary, first);
        expect_form(&f, boundary, first, strlen(first));
        snprintf(first, sizeof first, "%s", boundary);
        next_call(&f);
    }
    fixture_free(&f);
}

static void only_an_old_envd_is_told_the_user(void)
{
    static const struct {
        const char *answer, *url, *authorization;
    } cases[] = {
        {OF_VERSION("0.3.9"), ENVD "/files?path=%2Fa&username=user", "Basic dXNlcjo="},
        {OF_VERSION("0.4.0"), ENVD "/files?path=%2Fa", NULL},
        {OF_VERSION("1.0.0"), ENVD "/files?path=%2Fa", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].answer);
        reply(&f, 200, "x");
        CU_ASSERT_EQUAL(get(&f, "/a"), 0);
        expect_request(&f, 0, "GET", cases[i].url);
        reply(&f, 200, "{}");
        CU_ASSERT_EQUAL(list(&f, "/a"), 0);
        expect_header(&f, 1, "Authorization", cases[i].authorization);
        fixture_free(&f);
    }
}

static void a_file_is_handed_on_in_the_pieces_that_come(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = "ab\0\xFF"
                                                   "e",
                                           .body_len = 5,
                                           .piece_len = 2});
    CU_ASSERT_EQUAL(get(&f, "/a"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA), 3);
    CU_ASSERT_EQUAL(memcmp(call_text(f.call, SG_OUT_DATA),
                           "ab\0\xFF"
                           "e",
                           5),
                    0);
    CU_ASSERT_TRUE(f.call->requests[0].has_sink);
    CU_ASSERT_FALSE(f.call->requests[0].has_body);
    fixture_free(&f);
}

static void an_empty_file_is_one_empty_piece(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, "");
    CU_ASSERT_EQUAL(get(&f, "/a"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA), 1);
    CU_ASSERT_EQUAL(f.call->outputs[0].len, 0);
    fixture_free(&f);
}

#define LARGEST ((size_t)10 << 20)

static void a_file_of_ten_megabytes_is_read_and_a_larger_one_refused(void)
{
    struct fixture f;
    char *data = calloc(1, LARGEST + 1);
    begin(&f, OF_VERSION("0.5.7"));
    struct fake_reply whole = {
        .status = 200, .body = data, .body_len = LARGEST, .piece_len = 1 << 20};
    call_reply(f.call, whole);
    CU_ASSERT_EQUAL(get(&f, "big"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA), 10);
    next_call(&f);
    whole.body_len++;
    call_reply(f.call, whole);
    CU_ASSERT_EQUAL(get(&f, "big"), SG_E_LIMIT);
    expect_message(&f, "'big' is larger than 10MiB");
    free(data);
    fixture_free(&f);
}

static void a_file_of_ten_megabytes_is_written_and_a_larger_one_never_sent(void)
{
    struct fixture f;
    char *data = calloc(1, LARGEST + 1);
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(put(&f, "big", data, LARGEST), 0);
    CU_ASSERT_EQUAL(f.call->requests[0].body_len, LARGEST);
    CU_ASSERT_EQUAL(put(&f, "big", data, LARGEST + 1), SG_E_LIMIT);
    expect_message(&f, "'big' is larger than 10MiB");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    free(data);
    fixture_free(&f);
}

static void a_reader_that_wants_no_more_is_obeyed(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    f.call->emits_max = 1;
    f.call->emit_code = SG_E_CANCELLED;
    call_reply(f.call, (struct fake_reply){.status = 200, .body = "abcd", .piece_len = 2});
    CU_ASSERT_EQUAL(get(&f, "/a"), SG_E_CANCELLED);
    expect_message(&f, "nobody listens any more");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_free(&f);
}

/* ---- paths ---- */

static void paths_are_made_absolute_and_plain(void)
{
    static const struct {
        const char *path, *encoded;
    } cases[] = {
        {"a", "%2Fhome%2Fuser%2Fa"},
        {"./a//b/./c", "%2Fhome%2Fuser%2Fa%2Fb%2Fc"},
        {"../x/../y", "%2Fhome%2Fy"},
        {"/../../etc/passwd", "%2Fetc%2Fpasswd"},
        {"~/a", "%2Fhome%2Fuser%2F~%2Fa"},
        {"/a%2F+b", "%2Fa%252F%2Bb"},
        {"../..", "%2F"},
        {"..a/.b.", "%2Fhome%2Fuser%2F..a%2F.b."},
    };
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char url[256];
        reply(&f, 200, "x");
        CU_ASSERT_EQUAL(get(&f, cases[i].path), 0);
        snprintf(url, sizeof url, ENVD "/files?path=%s", cases[i].encoded);
        for (char *tilde; (tilde = strchr(url, '~')) != NULL;) {
            memmove(tilde + 3, tilde + 1, strlen(tilde));
            memcpy(tilde, "%7E", 3);
        }
        expect_request(&f, i, "GET", url);
    }
    fixture_free(&f);
}

static void a_path_that_names_no_file_is_refused_before_anything_is_sent(void)
{
    struct fixture f;
    char path[4098];
    memset(path, 'p', 4097);
    path[4097] = '\0';
    begin(&f, OF_VERSION("0.5.7"));
    CU_ASSERT_EQUAL(get(&f, ""), SG_E_INVALID);
    expect_message(&f, "a path has 1 to 4096 bytes");
    CU_ASSERT_EQUAL(list(&f, path), SG_E_INVALID);
    expect_message(&f, "a path has 1 to 4096 bytes");
    CU_ASSERT_EQUAL(put(&f, "a/", "x", 1), SG_E_INVALID);
    expect_message(&f, "'a/' is a folder");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    fixture_free(&f);
}

/* ---- refusals ---- */

struct refusal {
    int status;
    const char *body;
    int code;
    const char *read, *written, *listed; /* NULL: not tried */
};

#define ERROR(code, message) "{\"code\":" code ",\"message\":\"" message "\"}"
#define WIDE "/very/private/place"

static const struct refusal refusals[] = {
    {404, ERROR("404", "path '" WIDE "' does not exist"), SG_E_NOT_FOUND, "there is no file 'x'",
     NULL, NULL},
    {404, ERROR("\"not_found\"", "path not found: lstat " WIDE), SG_E_NOT_FOUND, NULL, NULL,
     "there is no folder 'x'"},
    {400, ERROR("400", "path '" WIDE "' is a directory"), SG_E_INVALID, "'x' is a folder",
     "'x' is a folder", NULL},
    {400, ERROR("\"invalid_argument\"", "path is not a directory: " WIDE), SG_E_INVALID, NULL, NULL,
     "'x' is not a folder, or not in one"},
    {400, ERROR("400", "invalid path"), SG_E_INVALID, "'x' cannot be read", "'x' cannot be written",
     "'x' cannot be read"},
    {412, ERROR("\"failed_precondition\"", "cyclic symlink or chain >255 links"), SG_E_INVALID,
     NULL, NULL, "'x' cannot be read"},
    {500, ERROR("500", "error ensuring directories: path is a file: /x"), SG_E_INVALID, NULL,
     "'x' is not a folder, or not in one", NULL},
    {500, ERROR("500", "stat /x: not a directory"), SG_E_INVALID,
     "'x' is not a folder, or not in one", NULL, NULL},
    {500, ERROR("\"internal\"", "error resolving symlink: lstat /x: not a directory"), SG_E_INVALID,
     NULL, NULL, "'x' is not a folder, or not in one"},
    {500, ERROR("500", "open /x: Permission denied"), SG_E_INVALID, "'x' may not be read",
     "'x' may not be written", "'x' may not be read"},
    {500, ERROR("500", "open /x: operation not permitted"), SG_E_INVALID, NULL,
     "'x' may not be written", NULL},
    {500, ERROR("500", "open /x: read-only file system"), SG_E_INVALID, NULL,
     "'x' may not be written", NULL},
    {500, ERROR("500", "open /x: file name too long"), SG_E_INVALID, "'x' cannot be read",
     "'x' cannot be written", NULL},
    {500, ERROR("500", "stat /x: too many levels of symbolic links"), SG_E_INVALID,
     "'x' cannot be read", NULL, NULL},
    {500, ERROR("500", "write /x: no space left on device"), SG_E_LIMIT, NULL,
     "the disk of the container is full", NULL},
    {500, ERROR("500", "write /x: disk quota exceeded"), SG_E_LIMIT, NULL,
     "the disk of the container is full", NULL},
    {507, ERROR("507", "attempted to write 9 bytes: not enough disk space available"), SG_E_LIMIT,
     NULL, "the disk of the container is full", NULL},
    {507, "", SG_E_LIMIT, NULL, "the disk of the container is full", NULL},
    {413, "<html>", SG_E_LIMIT, NULL, "'x' is larger than 10MiB", NULL},
};

static void expect_refusal(const struct refusal *refusal, int operation, const char *message)
{
    struct fixture f;
    if (message == NULL) {
        return;
    }
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, refusal->status, refusal->body);
    int code = operation == 0   ? get(&f, "x")
               : operation == 1 ? put(&f, "x", "1", 1)
                                : list(&f, "x");
    CU_ASSERT_EQUAL(code, refusal->code);
    expect_message(&f, message);
    CU_ASSERT_EQUAL(f.call->outputs_count, 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_free(&f);
}

static void what_envd_says_of_a_file_is_told_in_our_words(void)
{
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        expect_refusal(&refusals[i], 0, refusals[i].read);
        expect_refusal(&refusals[i], 1, refusals[i].written);
        expect_refusal(&refusals[i], 2, refusals[i].listed);
    }
}

static void a_long_path_is_cut_between_characters_in_a_message(void)
{
    struct fixture f;
    char path[300] = "aaa", expected[300];
    for (size_t at = 3; at < 290; at += 2) {
        memcpy(path + at, "\xC3\xA4", 3);
    }
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 404, ERROR("404", "gone"));
    CU_ASSERT_EQUAL(get(&f, path), SG_E_NOT_FOUND);
    snprintf(expected, sizeof expected, "there is no file '%.199s'", path);
    expect_message(&f, expected);
    fixture_free(&f);
}

/* ---- the sandbox ---- */

static void a_sandbox_that_has_ended_is_gone_before_anything_was_done(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(get(&f, "x"), SG_E_GONE_BEFORE);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.call->error.message, "cannot read a file"));
    expect_nothing_secret(&f);
    fixture_free(&f);
}

static void a_port_that_is_closed_for_a_moment_is_tried_again(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 502, CLOSED);
    reply(&f, 502, CLOSED);
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(put(&f, "x", "1", 1), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 3);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1000);
    CU_ASSERT_STRING_EQUAL(f.call->requests[2].body, "1");
    fixture_free(&f);
}

static void a_port_that_stays_closed_is_given_up(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    for (int i = 0; i < 5; i++) {
        reply(&f, 502, CLOSED);
    }
    CU_ASSERT_EQUAL(list(&f, "x"), SG_E_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.call->error.message, "cannot list a folder"));
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    fixture_free(&f);
}

static void a_connection_that_was_never_made_is_tried_again_and_one_that_broke_is_not(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .message = "refused",
                                           .failed_at = SG_HTTP_UNCONNECTED});
    reply(&f, 200, "x");
    CU_ASSERT_EQUAL(get(&f, "x"), 0);
    expect_text(&f, SG_OUT_DATA, "x");
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = "abcd",
                                           .piece_len = 2,
                                           .pieces_max = 1,
                                           .code = SG_E_UNAVAILABLE,
                                           .message = "reset",
                                           .failed_at = SG_HTTP_CUT});
    reply(&f, 204, NULL); /* of /health: the sandbox is there */
    CU_ASSERT_EQUAL(get(&f, "x"), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot read a file: the connection to the sandbox was lost");
    expect_text(&f, SG_OUT_DATA, "ab");
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    fixture_free(&f);
}

/* Unless some of it was handed on, another container may be asked. */
static void a_sandbox_that_ends_amid_a_file_is_gone(void)
{
    struct fixture f;
    struct fake_reply cut = {
        .code = SG_E_UNAVAILABLE, .message = "reset", .failed_at = SG_HTTP_UNANSWERED};
    begin(&f, OF_VERSION("0.5.7"));
    call_reply(f.call, cut);
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(put(&f, "x", "1", 1), SG_E_GONE_BEFORE);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.call->error.message, "cannot write a file"));
    fixture_free(&f);
    begin(&f, OF_VERSION("0.5.7"));
    cut.status = 200;
    cut.body = "ab";
    cut.failed_at = SG_HTTP_CUT;
    call_reply(f.call, cut);
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(get(&f, "x"), SG_E_GONE);
    expect_text(&f, SG_OUT_DATA, "ab");
    fixture_free(&f);
}

static void a_sandbox_that_is_not_known_any_more_is_gone_before_anything_was_done(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 404, MISSING);
    CU_ASSERT_EQUAL(get(&f, "x"), SG_E_GONE_BEFORE);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_nothing_secret(&f);
    fixture_free(&f);
}

static void the_end_of_the_call_is_handed_back_as_it_is(void)
{
    static const int codes[] = {SG_E_TIMEOUT, SG_E_CANCELLED};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        call_reply(f.call, (struct fake_reply){.code = codes[i],
                                               .message = "over",
                                               .failed_at = SG_HTTP_UNANSWERED});
        CU_ASSERT_EQUAL(get(&f, "x"), codes[i]);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        fixture_free(&f);
    }
}

static void errors_of_the_proxy_are_not_taken_for_errors_of_a_file(void)
{
    static const struct {
        int status;
        const char *body;
        int code;
    } cases[] = {
        {401, ERROR("401", "unauthorized access"), SG_E_DENIED},
        {403, "{\"sandboxId\":\"" ID "\",\"message\":\"Token header is missing\",\"code\":403}",
         SG_E_DENIED},
        {429, "{\"sandboxId\":\"" ID "\",\"message\":\"too many\",\"code\":429}", SG_E_LIMIT},
        {400, "Invalid host\n", SG_E_UNAVAILABLE},
        {404, "<html>no such page</html>", SG_E_UNAVAILABLE},
        {404, ERROR("\"unimplemented\"", "404"), SG_E_UNAVAILABLE},
        {500, ERROR("500", "panic"), SG_E_UNAVAILABLE},
        {503, "", SG_E_UNAVAILABLE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        reply(&f, cases[i].status, cases[i].body);
        CU_ASSERT_EQUAL(get(&f, "x"), cases[i].code);
        CU_ASSERT_EQUAL(strncmp(f.call->error.message, "cannot read a file: ", 20), 0);
        expect_nothing_secret(&f);
        fixture_free(&f);
    }
}

/* The model is told of these: nothing of where the operator has E2B. */
static void a_time_limit_tells_no_address(void)
{
    static const int codes[] = {SG_E_TIMEOUT, SG_E_LIMIT};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        for (int operation = 0; operation < 3; operation++) {
            struct fixture f;
            begin(&f, OF_VERSION("0.5.7"));
            call_reply(f.call, (struct fake_reply){
                                   .code = codes[i],
                                   .failed_at = SG_HTTP_UNANSWERED,
                                   .message = "the exchange with 127.0.0.1:43299 was not over by "
                                              "its deadline"});
            int code = operation == 0   ? get(&f, "/a")
                       : operation == 1 ? put(&f, "/a", "x", 1)
                                        : list(&f, "/a");
            CU_ASSERT_EQUAL(code, codes[i]);
            CU_ASSERT_PTR_NULL(strstr(f.call->error.message, "127.0.0.1"));
            if (code == SG_E_TIMEOUT) {
                expect_message(&f, "the sandbox did not answer in time");
            }
            fixture_free(&f);
        }
    }
}

static const struct test tests[] = {
    TEST(a_time_limit_tells_no_address),
    TEST(a_file_is_written_as_it_is_to_an_envd_that_takes_that),
    TEST(an_empty_file_is_written_with_a_body_of_no_bytes),
    TEST(an_older_envd_is_sent_a_form),
    TEST(the_boundary_of_a_form_cannot_be_guessed),
    TEST(only_an_old_envd_is_told_the_user),
    TEST(a_file_is_handed_on_in_the_pieces_that_come),
    TEST(an_empty_file_is_one_empty_piece),
    TEST(a_file_of_ten_megabytes_is_read_and_a_larger_one_refused),
    TEST(a_file_of_ten_megabytes_is_written_and_a_larger_one_never_sent),
    TEST(a_reader_that_wants_no_more_is_obeyed),
    TEST(paths_are_made_absolute_and_plain),
    TEST(a_path_that_names_no_file_is_refused_before_anything_is_sent),
    TEST(what_envd_says_of_a_file_is_told_in_our_words),
    TEST(a_long_path_is_cut_between_characters_in_a_message),
    TEST(a_sandbox_that_has_ended_is_gone_before_anything_was_done),
    TEST(a_port_that_is_closed_for_a_moment_is_tried_again),
    TEST(a_port_that_stays_closed_is_given_up),
    TEST(a_connection_that_was_never_made_is_tried_again_and_one_that_broke_is_not),
    TEST(a_sandbox_that_ends_amid_a_file_is_gone),
    TEST(a_sandbox_that_is_not_known_any_more_is_gone_before_anything_was_done),
    TEST(the_end_of_the_call_is_handed_back_as_it_is),
    TEST(errors_of_the_proxy_are_not_taken_for_errors_of_a_file),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_files", tests, COUNT_OF(tests), argc, argv);
}
