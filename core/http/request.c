/* What libcurl is told of a request: everything, so that nothing of its own habits or of the environment comes in. */
#include "http/fetch_internal.h"

#define READ_BYTES 6144L /* every transfer holds so many, also while it waits for its answer */

/* An option that libcurl knows and has memory for cannot fail to be set. */
#define SET(easy, option, value) \
    CHECK_RESULT(curl_easy_setopt(easy, option, value), CURLE_OK, CURLE_OUT_OF_MEMORY)

/* ---- the header list ---- */

static void list_append(struct curl_slist **list, const char *text)
{
    *list = check_alloc(curl_slist_append(*list, text)); /* bounded by the check of fields */
}

/* Headers that say how the message is framed or hopped are the transport's. */
static bool is_transport_header(struct str name)
{
    return str_eq_nocase(name, STR("content-length")) || str_eq_nocase(name, STR("expect")) ||
           http_is_hop_by_hop(name, (struct str){NULL, 0});
}

static int check_field(const struct fetch_field *field, struct sg_error *err)
{
    if (!http_token_valid(field->name)) {
        return error_set(err, SG_E_INVALID,
                         "a header of the request has a name with characters that may not be "
                         "there");
    }
    const char *problem = NULL;
    if (!http_value_valid(field->value)) {
        problem = "has control characters in its value";
    } else if (is_transport_header(field->name)) {
        problem = "is not the caller's to set";
    } else if (field->name.len + field->value.len > LIMIT_HEADER_BYTES) {
        problem = "is too long";
    }
    return problem == NULL ? 0
                           : error_set(err, SG_E_INVALID, "the header '%.*s' of the request %s",
                                       (int)(field->name.len < 64 ? field->name.len : 64),
                                       field->name.data, problem);
}

/* libcurl reads "Name:" as "leave it out" and "Name;" as an empty one. */
static void append_field(struct curl_slist **list, const struct fetch_field *field)
{
    BUF_CLEANUP struct buf line = {0};
    struct str value = str_trim(field->value);
    (void)buf_append_str(&line, field->name); /* bounded by check_field() */
    (void)buf_append_str(&line, value.len > 0 ? STR(": ") : STR(";"));
    (void)buf_append_str(&line, value);
    list_append(list, line.data);
}

static bool has_field(const struct fetch_request *request, struct str name)
{
    for (size_t i = 0; i < request->fields_count; i++) {
        if (str_eq_nocase(request->fields[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* What libcurl would add by itself is left out unless it was asked for. */
static int build_headers(const struct fetch_request *request, struct curl_slist **ret,
                         struct sg_error *err)
{
    static const char *const own[] = {"Accept:", "Content-Type:", "Expect:"};
    if (request->fields_count > LIMIT_HEADER_COUNT) {
        return error_set(err, SG_E_INVALID, "the request has more than %d headers",
                         LIMIT_HEADER_COUNT);
    }
    for (size_t i = 0; i < request->fields_count; i++) {
        int code = check_field(&request->fields[i], err);
        if (code != 0) {
            return code;
        }
        append_field(ret, &request->fields[i]);
    }
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (!has_field(request, (struct str){own[i], strlen(own[i]) - 1})) {
            list_append(ret, own[i]);
        }
    }
    if (!has_field(request, STR("User-Agent"))) {
        list_append(ret, "User-Agent: sandgate");
    }
    if (request->is_streamed && request->body_bytes < 0) {
        list_append(ret, "Transfer-Encoding: chunked");
    }
    return 0;
}

/* ---- method and body ---- */

static int check_method(const char *method, struct sg_error *err)
{
    struct str text = str_of(method);
    if (!http_token_valid(text) || text.len > 32) {
        return error_set(err, SG_E_INVALID, "the request's method is not one");
    }
    if (str_is(text, "CONNECT")) {
        return error_set(err, SG_E_INVALID, "the method CONNECT cannot be fetched");
    }
    return 0;
}

/* These have a body, be it an empty one. */
static bool sends_body(const char *method, const struct fetch_request *request)
{
    return request->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

static size_t read_body(char *out, size_t size, size_t count, void *context)
{
    struct fetch *fetch = context;
    size_t room = size * count;
    size_t len = fetch->unsent.len < room ? fetch->unsent.len : room;
    if (len > 0) {
        memcpy(out, fetch->unsent.data, len);
        fetch->unsent = (struct str){fetch->unsent.data + len, fetch->unsent.len - len};
    }
    return len;
}

/* libcurl asks for it in order to send the body again, and gives up where it cannot. */
static int refuse_rewind(void *context, curl_off_t offset, int origin)
{
    (void)context, (void)offset, (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

/* What was written; where there is nothing libcurl pauses until there is. */
static size_t read_written(char *out, size_t size, size_t count, void *context)
{
    struct fetch *fetch = context;
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    size_t room = size * count, left = fetch->up.len - fetch->up_taken;
    if (left == 0 && !fetch->up_ended) {
        fetch->up_paused = true;
        fetch_wake(fetch);
        return CURL_READFUNC_PAUSE;
    }
    size_t len = left < room ? left : room;
    if (len > 0) {
        memcpy(out, fetch->up.data + fetch->up_taken, len);
        fetch->up_taken += len;
    }
    return len;
}

static void set_streamed(struct fetch *fetch, const struct fetch_request *request)
{
    CURL *easy = fetch->easy;
    CHECK(!request->has_body && request->body_bytes >= -1);
    fetch->is_streamed = true;
    fetch->up_left = request->body_bytes;
    fetch->up_ended = request->body_bytes == 0;
    SET(easy, CURLOPT_POST, 1L);
    SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    SET(easy, CURLOPT_READFUNCTION, read_written);
    SET(easy, CURLOPT_READDATA, fetch);
    SET(easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
    SET(easy, CURLOPT_FRESH_CONNECT, 1L);
    SET(easy, CURLOPT_FORBID_REUSE, 1L);
}

static void set_body(struct fetch *fetch, const struct fetch_request *request)
{
    CURL *easy = fetch->easy;
    SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    if (!request->is_once || request->body.len == 0) {
        SET(easy, CURLOPT_POSTFIELDS, request->body.len > 0 ? request->body.data : "");
        return;
    }
    fetch->unsent = request->body;
    SET(easy, CURLOPT_POST, 1L);
    SET(easy, CURLOPT_READFUNCTION, read_body);
    SET(easy, CURLOPT_READDATA, fetch);
    SET(easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
}

static int set_method(struct fetch *fetch, const struct fetch_request *request,
                      struct sg_error *err)
{
    CURL *easy = fetch->easy;
    const char *method = request->method;
    if (method == NULL) {
        method = request->has_body ? "POST" : "GET";
    }
    int code = check_method(method, err);
    if (code != 0) {
        return code;
    }
    if (request->is_fresh) {
        SET(easy, CURLOPT_FRESH_CONNECT, 1L);
    }
    if (request->is_streamed) {
        set_streamed(fetch, request);
    } else if (sends_body(method, request)) {
        set_body(fetch, request);
    } else if (strcmp(method, "HEAD") == 0) {
        SET(easy, CURLOPT_NOBODY, 1L);
    }
    if (strcmp(method, "GET") != 0 || request->has_body || request->is_streamed) {
        SET(easy, CURLOPT_CUSTOMREQUEST, method);
    }
    return 0;
}

/* ---- the way ---- */

/* Not copied: the transfer borrows it. */
static void set_blob(CURL *easy, CURLoption option, struct str text)
{
    struct curl_blob blob = {(void *)(uintptr_t)text.data, text.len, CURL_BLOB_NOCOPY};
    if (text.len > 0) {
        SET(easy, option, &blob);
    }
}

/* Everything goes through a tunnel: a proxy that read plain requests would answer some of them itself, and its words and
 * statuses would be taken for the server's. The names of its certificate are checked as the server's are. */
static void set_proxy(CURL *easy, const struct fetch_way *way)
{
    SET(easy, CURLOPT_PROXY, way->proxy);
    SET(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(easy, CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC);
    SET(easy, CURLOPT_PROXYUSERNAME, way->proxy_user);
    SET(easy, CURLOPT_PROXYPASSWORD, way->proxy_password);
    set_blob(easy, CURLOPT_PROXY_CAINFO_BLOB, way->ca);
}

static void set_way(CURL *easy, const struct fetch_way *way)
{
    SET(easy, CURLOPT_NOPROXY, ""); /* whatever the environment says */
    if (way == NULL || way->proxy == NULL) {
        SET(easy, CURLOPT_PROXY, "");
    } else {
        set_proxy(easy, way);
    }
    if (way != NULL) {
        set_blob(easy, CURLOPT_CAINFO_BLOB, way->ca);
        set_blob(easy, CURLOPT_SSLCERT_BLOB, way->certificate);
        set_blob(easy, CURLOPT_SSLKEY_BLOB, way->key);
    }
}

/* ---- all of it ---- */

static void set_rules(struct fetch *fetch)
{
    CURL *easy = fetch->easy;
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, CURLOPT_BUFFERSIZE, READ_BYTES);
    SET(easy, CURLOPT_SHARE, fetch->home->share);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)fetch->connect_ms);
    SET(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    SET(easy, CURLOPT_OPENSOCKETDATA, fetch);
    SET(easy, CURLOPT_PREREQFUNCTION, socket_before_request);
    SET(easy, CURLOPT_PREREQDATA, fetch);
    SET(easy, CURLOPT_CLOSESOCKETFUNCTION, socket_close);
    SET(easy, CURLOPT_CLOSESOCKETDATA, fetch->home);
    SET(easy, CURLOPT_ERRORBUFFER, fetch->detail);
    SET(easy, CURLOPT_PRIVATE, fetch);
}

int request_prepare(struct fetch *fetch, const struct fetch_request *request, struct sg_error *err)
{
    CURL *easy = fetch->easy;
    int code = build_headers(request, &fetch->headers, err);
    if (code == 0) {
        code = set_method(fetch, request, err);
    }
    if (code != 0) {
        return code;
    }
    set_rules(fetch);
    set_way(easy, fetch->way);
    SET(easy, CURLOPT_URL, request->url);
    SET(easy, CURLOPT_HTTPHEADER, fetch->headers);
    if (request->ca_file != NULL) {
        SET(easy, CURLOPT_CAINFO, request->ca_file);
    }
    if (fetch->resolve != NULL) {
        SET(easy, CURLOPT_RESOLVE, fetch->resolve);
    }
    return 0;
}
