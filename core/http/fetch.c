/* Fetching as a fiber sees it: start, head, body piece by piece, end. libcurl's call-backs only fill buffers and wake
 * the fiber; they never run it.
 *
 * At most LIMIT_STREAM_BYTES of a body are held: half of it may fill while the reader has the other half. */
#include "http/fetch_internal.h"

#include "base/trace.h"
#include "http/admission.h"

#include <stdlib.h>

#define IN_BYTES_MAX (LIMIT_STREAM_BYTES / 2)

/* ---- what libcurl hands over ---- */

void fetch_wake(struct fetch *fetch)
{
    if (fetch->waiter != NULL) {
        fiber_wake(fetch->waiter);
    }
}

/* Makes libcurl stop, since the answer is none that can be used. */
static size_t give_up(struct fetch *fetch, int code, const char *problem)
{
    fetch->problem_code = code;
    fetch->problem = problem;
    return 0;
}

static bool fields_grow(struct fetch *fetch)
{
    if (fetch->fields_count < fetch->fields_size) {
        return true;
    }
    size_t size = fetch->fields_size == 0 ? 32 : fetch->fields_size * 2;
    struct fetch_field *fields = arena_alloc(fetch->arena, size * sizeof *fields);
    if (fields == NULL) {
        return false;
    }
    if (fetch->fields_count > 0) {
        memcpy(fields, fetch->fields, fetch->fields_count * sizeof *fields);
    }
    fetch->fields = fields;
    fetch->fields_size = size;
    return true;
}

static bool copy_str(struct fetch *fetch, struct str text, struct str *ret)
{
    char *copy = arena_copy(fetch->arena, text);
    *ret = (struct str){copy, text.len};
    return copy != NULL;
}

/* 0 where libcurl shall stop. */
static size_t take_field(struct fetch *fetch, struct str line)
{
    const char *colon = memchr(line.data, ':', line.len);
    if (line.data[0] == ' ' || line.data[0] == '\t' || colon == NULL) {
        return give_up(fetch, SG_E_UNAVAILABLE, "sent a header that is folded or has no colon");
    }
    if (fetch->fields_count == LIMIT_HEADER_COUNT) {
        return give_up(fetch, SG_E_UNAVAILABLE, "sent more than 128 headers");
    }
    struct str name = {line.data, (size_t)(colon - line.data)};
    struct str value = str_trim((struct str){colon + 1, line.len - name.len - 1});
    if (!http_token_valid(name) || !http_value_valid(value)) {
        return give_up(fetch, SG_E_UNAVAILABLE, "sent a header with forbidden characters");
    }
    /* libcurl would undo other codings unasked: a small answer becomes one without bounds. */
    if (str_eq_nocase(name, STR("Transfer-Encoding")) && !str_eq_nocase(value, STR("chunked"))) {
        return give_up(fetch, SG_E_UNAVAILABLE, "sent a Transfer-Encoding other than chunked");
    }
    struct fetch_field field;
    if (!fields_grow(fetch) || !copy_str(fetch, name, &field.name) ||
        !copy_str(fetch, value, &field.value)) {
        return give_up(fetch, SG_E_LIMIT, "sent a head for which there is no memory");
    }
    fetch->fields[fetch->fields_count++] = field;
    return 1;
}

/* Near the limit of descriptors an idle connection takes somebody's place: a multi keeps at most one then, which its next
 * transfer takes, and close to the limit none. */
static bool is_kept(const struct fetch *fetch)
{
    size_t most = admission_limit();
    return !admission_is_near() ||
           (fetch->multi->sockets <= fetch->multi->running && admission_used() < most - most / 64);
}

/* The empty line: of a head that counts, or of one that says "wait". */
static size_t end_head(struct fetch *fetch)
{
    long status = 0;
    CHECK(curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK);
    fetch->is_in_head = false;
    if (status == 101) {
        return give_up(fetch, SG_E_UNAVAILABLE, "changed the protocol unasked");
    }
    if (status >= 200) {
        fetch->status = (int)status;
        fetch->has_head = true;
        if (!is_kept(fetch)) {
            CHECK(curl_easy_setopt(fetch->easy, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK);
        }
        trace_say(TRACE_HTTP, "fetch_head", fetch, (struct str){0}, status);
        fetch_wake(fetch);
    }
    return 1;
}

static size_t take_header_line(char *data, size_t size, size_t count, void *arg)
{
    struct fetch *fetch = arg;
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    size_t len = size * count, go_on = 1;
    fetch->header_bytes += len;
    if (fetch->header_bytes > LIMIT_HEADER_BYTES) {
        return give_up(fetch, SG_E_UNAVAILABLE, "sent headers of more than 32768 bytes");
    }
    struct str line = {data, len};
    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r')) {
        line.len--;
    }
    if (fetch->has_head) {
        return len; /* a trailer */
    }
    if (!fetch->is_in_head) { /* the status line, which libcurl has read */
        fetch->is_in_head = true;
        fetch->fields_count = 0;
    } else {
        go_on = line.len == 0 ? end_head(fetch) : take_field(fetch, line);
    }
    return go_on == 0 ? 0 : len;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
    struct fetch *fetch = arg;
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    size_t len = size * count;
    if (fetch->in.len > 0 && fetch->in.len + len > IN_BYTES_MAX) {
        fetch->is_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (!buf_append(&fetch->in, data, len)) {
        return give_up(fetch, SG_E_LIMIT, "sent a body for which there is no memory");
    }
    fetch_wake(fetch);
    return len;
}

void fetch_finished(struct fetch *fetch, CURLcode result)
{
    long sent = 0;
    CHECK(curl_easy_getinfo(fetch->easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK);
    fetch->was_sent = sent > 0 && fetch->is_connected;
    fetch->result = result;
    fetch->is_done = true;
    trace_say(TRACE_HTTP, "fetch_end", fetch, str_of(curl_easy_strerror(result)), sent);
    fetch_wake(fetch);
}

/* ---- what went wrong ---- */

static bool is_tls_failure(CURLcode result)
{
    return result == CURLE_SSL_CONNECT_ERROR || result == CURLE_PEER_FAILED_VERIFICATION ||
           result == CURLE_SSL_CACERT_BADFILE || result == CURLE_SSL_CIPHER ||
           result == CURLE_SSL_ISSUER_ERROR || result == CURLE_SSL_CERTPROBLEM;
}

static const struct fetch_address *proxy_of(const struct fetch *fetch)
{
    return fetch->way != NULL && fetch->way->proxy != NULL ? &fetch->way->proxy_address : NULL;
}

/* "host:port", and the proxy's where there is one: for messages, which go to the log. */
static void put_server(const struct fetch *fetch, struct buf *out)
{
    address_write(&fetch->address, out);
    if (proxy_of(fetch) != NULL) {
        (void)buf_puts(out, " (through the proxy "); /* short: cannot overflow */
        address_write(proxy_of(fetch), out);
        (void)buf_putc(out, ')');
    }
}

static int describe_result(const struct fetch *fetch, const char *address, struct sg_error *err)
{
    const char *detail =
        fetch->detail[0] != '\0' ? fetch->detail : curl_easy_strerror(fetch->result);
    const char *what;
    switch (fetch->result) {
    case CURLE_OPERATION_TIMEDOUT: /* no other limit is left to libcurl */
        return error_set(err, SG_E_TIMEOUT, "no connection to %s within %lld ms (connect limit)",
                         address, (long long)fetch->connect_ms);
    case CURLE_COULDNT_CONNECT:
        if (fetch->no_descriptor) {
            (void)error_set(err, SG_E_LIMIT, "cannot connect to %s: no descriptor is left",
                            address);
            err->status = 503;
            return SG_E_LIMIT;
        }
        what = "cannot connect to";
        break;
    case CURLE_GOT_NOTHING:
        return error_set(err, SG_E_UNAVAILABLE, "%s closed the connection without an answer",
                         address);
    default:
        what = is_tls_failure(fetch->result)                     ? "cannot set up TLS with"
               : fetch->has_head                                 ? "cut answer of"
               : proxy_of(fetch) != NULL && !fetch->is_connected ? "no tunnel to"
                                                                 : "broken exchange with";
        break;
    }
    return error_set(err, SG_E_UNAVAILABLE, "%s %s: %s", what, address, detail);
}

static int describe_end(const struct fetch *fetch, struct sg_error *err)
{
    BUF_CLEANUP struct buf address = {0};
    put_server(fetch, &address);
    if (fetch->problem != NULL) {
        return error_set(err, fetch->problem_code, "%s %s", address.data, fetch->problem);
    }
    return describe_result(fetch, address.data, err);
}

struct limit { /* of a wait, besides the whole's deadline */
    int64_t at, ms;
    const char *name; /* "first byte" */
    const char *what; /* "no answer from": what it came to */
};

/* What a wait that did not bring what it was for came to. */
static int describe_wait(const struct fetch *fetch, int code, const struct limit *limit,
                         struct sg_error *err)
{
    BUF_CLEANUP struct buf address = {0};
    put_server(fetch, &address);
    if (code == SG_E_CANCELLED) {
        return error_set(err, code, "nobody waits for %s any more", address.data);
    }
    if (clock_ms() < limit->at || fetch->deadline <= limit->at) {
        return error_set(err, code, "the exchange with %s was not over by its deadline",
                         address.data);
    }
    return error_set(err, code, "%s %s within %lld ms (%s limit)", limit->what, address.data,
                     (long long)limit->ms, limit->name);
}

/* Until something happens; at most until `limit` or the whole's deadline. */
static int wait(struct fetch *fetch, int64_t limit)
{
    fetch->waiter = fiber_self();
    CHECK(fetch->waiter != NULL);
    int code = fiber_park(deadline_min(limit, fetch->deadline));
    fetch->waiter = NULL;
    return code;
}

/* ---- starting ---- */

static int64_t or_default(int64_t ms, int64_t otherwise)
{
    return ms > 0 ? ms : otherwise;
}

static struct fetch *fetch_new(struct fetch_loop *home, const struct fetch_request *request,
                               struct arena *arena)
{
    struct fetch *fetch = check_alloc(calloc(1, sizeof *fetch));
    fetch->magic = FETCH_MAGIC;
    fetch->home = home;
    fetch->arena = arena;
    fetch->connect_ms = or_default(request->connect_ms, LIMIT_CONNECT_MS);
    fetch->first_byte_ms = or_default(request->first_byte_ms, LIMIT_FIRST_BYTE_MS);
    fetch->silence_ms = or_default(request->silence_ms, LIMIT_SILENCE_MS);
    fetch->deadline = request->deadline;
    fetch->way = request->way;
    fetch->way_id = request->way == NULL && request->ca_file != NULL
                        ? str_hash(str_of(request->ca_file))
                        : fetch_way_id(request->way);
    fetch->first_byte_deadline = deadline_in(fetch->first_byte_ms);
    /* A new one each time: curl_easy_reset() leaves one behind that cannot send where memory fails it, and says nothing. */
    fetch->easy = check_alloc(curl_easy_init());
    home->fetches++;
    return fetch;
}

/* The name's addresses, for libcurl's cache; "+" lets them grow old there. */
static int resolve(struct fetch *fetch, const struct fetch_address *address, struct sg_error *err)
{
    BUF_CLEANUP struct buf entry = {0};
    size_t len = strlen(address->host);
    len -= len > 1 && address->host[len - 1] == '.'; /* libcurl looks it up without */
    (void)buf_printf(&entry, "+%.*s:%u:", (int)len, address->host, address->port); /* short */
    struct limit limit = {deadline_in(fetch->connect_ms), fetch->connect_ms, "connect",
                          "no address for"};
    int code = resolver_find(&fetch->home->resolver, address->host,
                             deadline_min(limit.at, fetch->deadline), &entry, err);
    if (code != 0 && err->code == 0) {
        return describe_wait(fetch, code, &limit, err);
    }
    if (code == 0) {
        fetch->resolve = check_alloc(curl_slist_append(NULL, entry.data));
    }
    return code;
}

static void take_answer(struct fetch *fetch)
{
    CHECK(curl_easy_setopt(fetch->easy, CURLOPT_HEADERFUNCTION, take_header_line) == CURLE_OK);
    CHECK(curl_easy_setopt(fetch->easy, CURLOPT_HEADERDATA, fetch) == CURLE_OK);
    CHECK(curl_easy_setopt(fetch->easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK);
    CHECK(curl_easy_setopt(fetch->easy, CURLOPT_WRITEDATA, fetch) == CURLE_OK);
}

static int start(struct fetch *fetch, const struct fetch_request *request, struct sg_error *err)
{
    *err = (struct sg_error){0}; /* resolve() asks whether it says something */
    int code = url_parse(request->url, &fetch->address, err);
    /* A proxy looks the server's name up itself. */
    const struct fetch_address *next = proxy_of(fetch) != NULL ? proxy_of(fetch) : &fetch->address;
    if (code == 0 && !next->is_literal) {
        code = resolve(fetch, next, err);
    }
    if (code == 0 && admission_is_near()) {
        multis_close_idle(fetch->home);
    }
    if (code == 0 && !admission_await(1)) {
        fetch->no_descriptor = true;
        fetch->result = CURLE_COULDNT_CONNECT;
        code = describe_end(fetch, err);
    }
    if (code == 0) {
        fetch->multi = multi_choose(fetch->home, &fetch->address, fetch->way_id);
        code = request_prepare(fetch, request, err);
    }
    if (code != 0) {
        fetch->multi = NULL; /* it is not in it yet */
        return code;
    }
    take_answer(fetch);
    trace_say(TRACE_HTTP, "fetch_begin", fetch, str_of(request->url), (int64_t)request->body.len);
    return multi_add(fetch->multi, fetch, err);
}

int fetch_start(const struct fetch_request *request, struct arena *arena, struct fetch **ret,
                struct sg_error *err)
{
    struct loop *loop = loop_self();
    CHECK(loop != NULL);
    struct fetch_loop *home = loop_slot(loop, LOOP_SLOT_FETCH);
    CHECK_MAGIC(home, FETCH_LOOP_MAGIC);
    struct fetch *fetch = fetch_new(home, request, arena);
    int code = start(fetch, request, err);
    if (code != 0) {
        fetch_end(fetch);
        return code;
    }
    *ret = fetch;
    return 0;
}

/* ---- reading ---- */

int fetch_head(struct fetch *fetch, struct fetch_reply *ret, struct sg_error *err)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    struct limit limit = {fetch->first_byte_deadline, fetch->first_byte_ms, "first byte",
                          "no answer from"};
    while (!fetch->has_head && !fetch->is_done) {
        int code = wait(fetch, limit.at);
        if (code != 0) {
            return describe_wait(fetch, code, &limit, err);
        }
    }
    if (!fetch->has_head) {
        return describe_end(fetch, err);
    }
    *ret = (struct fetch_reply){fetch->status, fetch->fields, fetch->fields_count};
    return 0;
}

/* libcurl may hand over more at once, from within: `in` has to have room. */
static void go_on(struct fetch *fetch)
{
    int pauses = (fetch->is_paused ? CURLPAUSE_RECV : 0) | (fetch->up_paused ? CURLPAUSE_SEND : 0);
    CURLcode result = curl_easy_pause(fetch->easy, pauses);
    if (result != CURLE_OK) {
        multi_remove(fetch);
        fetch_finished(fetch, result);
    }
}

static void resume(struct fetch *fetch)
{
    if (fetch->is_paused && !fetch->is_done) {
        fetch->is_paused = false;
        go_on(fetch);
    }
}

static void hand_out(struct fetch *fetch)
{
    struct buf empty = fetch->out;
    fetch->out = fetch->in;
    fetch->in = empty;
    resume(fetch);
}

int fetch_read(struct fetch *fetch, struct str *ret_data, struct sg_error *err)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    CHECK(fetch->has_head);
    buf_reset(&fetch->out);
    if (fetch->silence_deadline == 0) { /* else the reader's own time was over, and it goes on */
        fetch->silence_deadline = deadline_in(fetch->silence_ms);
    }
    struct limit limit = {fetch->silence_deadline, fetch->silence_ms, "silence",
                          "nothing more from"};
    while (fetch->in.len == 0 && !fetch->is_done) {
        int code = wait(fetch, limit.at);
        if (code != 0) {
            return describe_wait(fetch, code, &limit, err);
        }
    }
    fetch->silence_deadline = 0;
    if (fetch->in.len > 0) {
        hand_out(fetch);
        *ret_data = buf_str(&fetch->out);
        return 0;
    }
    if (fetch->problem != NULL || fetch->result != CURLE_OK) {
        return describe_end(fetch, err);
    }
    *ret_data = (struct str){NULL, 0};
    return 0;
}

/* ---- writing ---- */

/* A server that has refused the request needs no more of it; libcurl sends no more then either. */
static bool takes_more(const struct fetch *fetch)
{
    return !fetch->up_ended && !fetch->is_done && !(fetch->has_head && fetch->status >= 400);
}

static void end_writing(struct fetch *fetch)
{
    fetch->up_ended = true;
    fetch->first_byte_deadline = deadline_in(fetch->first_byte_ms);
}

static void resume_sending(struct fetch *fetch)
{
    fetch->up_paused = false;
    go_on(fetch);
}

bool fetch_is_streamed(const struct fetch *fetch)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    return fetch->is_streamed;
}

int fetch_await_write(struct fetch *fetch, bool *ret_wants, struct sg_error *err)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    CHECK(fetch->is_streamed);
    bool is_first = fetch->up.len == 0; /* connecting has a limit of its own, in libcurl */
    struct limit limit = {is_first ? DEADLINE_NONE : deadline_in(fetch->silence_ms),
                          fetch->silence_ms, "silence", "nothing taken by"};
    while (!fetch->up_paused && takes_more(fetch)) {
        int code = wait(fetch, limit.at);
        if (code != 0) {
            return describe_wait(fetch, code, &limit, err);
        }
    }
    *ret_wants = takes_more(fetch);
    if (!*ret_wants && fetch->up_paused && !fetch->is_done) {
        end_writing(fetch); /* else libcurl would keep the answer's end waiting for more */
        resume_sending(fetch);
    }
    return 0;
}

void fetch_write(struct fetch *fetch, struct str data)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    CHECK(fetch->up_paused);
    CHECK(data.len > 0 && (fetch->up_left < 0 || data.len <= (uint64_t)fetch->up_left));
    if (fetch->is_done) {
        return; /* it ended while the caller looked for more */
    }
    buf_reset(&fetch->up);
    fetch->up_taken = 0;
    CHECK(buf_append_str(&fetch->up, data));
    if (fetch->up_left > 0) {
        fetch->up_left -= (int64_t)data.len;
    }
    if (fetch->up_left == 0) {
        end_writing(fetch);
    }
    resume_sending(fetch);
}

void fetch_write_end(struct fetch *fetch)
{
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    CHECK(fetch->up_paused && fetch->up_left < 0);
    end_writing(fetch);
    if (!fetch->is_done) {
        resume_sending(fetch);
    }
}

void fetch_end(struct fetch *fetch)
{
    if (fetch == NULL) {
        return;
    }
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    multi_remove(fetch);
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->headers);
    curl_slist_free_all(fetch->resolve);
    buf_clear(&fetch->in);
    buf_clear(&fetch->out);
    buf_clear(&fetch->up);
    fetch->home->fetches--;
    fetch->magic = 0;
    free(fetch);
}

enum fetch_stage fetch_stage(const struct fetch *fetch)
{
    if (fetch == NULL) {
        return FETCH_RESOLVING;
    }
    if (fetch->has_head) {
        return FETCH_ANSWERED;
    }
    if (!fetch->is_done || fetch->was_sent) {
        return FETCH_SENT; /* perhaps: nobody knows while it goes on */
    }
    return is_tls_failure(fetch->result) ? FETCH_SECURING : FETCH_CONNECTING;
}

bool fetch_failed_before_sending(const struct fetch *fetch)
{
    return fetch == NULL || (fetch->is_done && !fetch->was_sent);
}
