/* http() from a queue of replies: it records what was asked and plays the answer, piece by piece where a sink wants it. */
#include "fake_http.h"

#include <strings.h>

#define BODY_MAX_DEFAULT ((uint64_t)16 << 20)

static char *copy(const char *text)
{
    return text == NULL ? NULL : strdup(text);
}

/* "name: value\n" for each. */
static char *copy_headers(const struct sg_map *headers)
{
    size_t len = 1;
    for (size_t i = 0; i < headers->count; i++) {
        len += strlen(headers->keys[i]) + strlen(headers->values[i]) + 3;
    }
    char *text = calloc(1, len);
    size_t at = 0;
    for (size_t i = 0; i < headers->count; i++) {
        at +=
            (size_t)snprintf(text + at, len - at, "%s: %s\n", headers->keys[i], headers->values[i]);
    }
    return text;
}

static struct fake_request *record(struct sg_call *call, const struct sg_http_request *asked,
                                   bool has_sink)
{
    call->requests = realloc(call->requests, (call->requests_count + 1) * sizeof *call->requests);
    struct fake_request *request = &call->requests[call->requests_count++];
    const char *method = asked->method != NULL ? asked->method
                         : asked->body != NULL ? "POST"
                                               : "GET";
    *request = (struct fake_request){
        .method = copy(method),
        .url = copy(asked->url),
        .headers = copy_headers(&asked->headers),
        .body = calloc(1, asked->body_len + 1),
        .body_len = asked->body_len,
        .has_body = asked->body != NULL,
        .has_sink = has_sink,
        .ca_file = copy(asked->ca_file),
        .timeout_ms = asked->timeout_ms,
        .first_byte_ms = asked->first_byte_ms,
        .silence_ms = asked->silence_ms,
        .tick_ms = asked->tick_ms,
        .body_bytes_max = asked->body_bytes_max,
    };
    if (asked->body_len > 0) {
        memcpy(request->body, asked->body, asked->body_len);
    }
    return request;
}

/* The headers live as long as the call, as they do with the real host. */
static struct sg_map headers_of(struct sg_call *call, const char *const *headers)
{
    size_t count = 0;
    for (; headers != NULL && headers[2 * count] != NULL; count++) {
    }
    const char **keys = host_table()->alloc(call, (count + 1) * sizeof *keys);
    const char **values = host_table()->alloc(call, (count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        keys[i] = headers[2 * i];
        values[i] = headers[2 * i + 1];
    }
    return (struct sg_map){keys, values, count};
}

struct play { /* one answer that is being given */
    struct sg_call *call;
    const struct sg_sink *sink; /* NULL: kept */
    struct sg_error *err;
    size_t request; /* its index: a sink may make more of them */
    uint64_t max;
    char *kept;
    size_t total, pieces, pieces_max;
    bool ticks;
};

static int give(struct play *play, const char *data, size_t len)
{
    if (play->pieces == play->pieces_max) {
        return 0; /* the failure comes before it */
    }
    play->pieces++;
    play->total += len;
    if (play->total > play->max) {
        return host_table()->fail(play->err, SG_E_LIMIT, "the answer is larger than %llu bytes",
                                  (unsigned long long)play->max);
    }
    if (play->sink == NULL) {
        play->kept = realloc(play->kept, play->total + 1);
        memcpy(play->kept + play->total - len, data, len);
        play->kept[play->total] = '\0';
        return 0;
    }
    if (len == 0 && !play->ticks) {
        return 0; /* nobody asked for ticks */
    }
    int code = play->sink->event(play->sink->ctx, SG_OUT_DATA, data, len, play->err);
    play->call->requests[play->request].sunk += code == 0 ? len : 0;
    return code;
}

static int give_body(struct play *play, const struct fake_reply *reply)
{
    int code = 0;
    for (size_t i = 0; code == 0 && reply->pieces != NULL && reply->pieces[i] != NULL; i++) {
        code = give(play, reply->pieces[i], strlen(reply->pieces[i]));
    }
    if (reply->pieces != NULL || reply->body == NULL) {
        return code;
    }
    size_t len = reply->body_len == 0 ? strlen(reply->body) : reply->body_len;
    size_t part = reply->piece_len == 0 ? len : reply->piece_len;
    for (size_t at = 0; code == 0 && at < len; at += part) {
        code = give(play, reply->body + at, len - at < part ? len - at : part);
    }
    return code;
}

static int give_ticks(struct play *play, size_t ticks)
{
    int code = 0;
    for (size_t i = 0; code == 0 && play->sink != NULL && play->ticks && i < ticks; i++) {
        code = play->sink->event(play->sink->ctx, SG_OUT_DATA, "", 0, play->err);
    }
    return code;
}

/* With a sink status and headers are there before the first piece. */
static int play_reply(struct play *play, const struct fake_reply *script, struct sg_http_reply *ret)
{
    bool has_head =
        script->status != 0 &&
        (script->code == 0 || script->failed_at > SG_HTTP_UNANSWERED || script->failed_at == 0);
    int code = give_ticks(play, script->ticks);
    if (code != 0) {
        ret->failed_at = SG_HTTP_UNANSWERED;
        return code;
    }
    if (has_head) {
        ret->status = script->status;
        ret->headers = headers_of(play->call, script->headers);
        code = give_body(play, script);
    }
    if (code == 0 && script->code != 0) {
        code = host_table()->fail(play->err, (enum sg_code)script->code, "%s",
                                  script->message == NULL ? "scripted" : script->message);
    }
    if (code != 0) {
        uint32_t stage = script->code != 0 && script->failed_at != 0 ? script->failed_at
                         : has_head                                  ? SG_HTTP_CUT
                                                                     : SG_HTTP_UNANSWERED;
        bool keeps = has_head && play->sink != NULL;
        *ret = (struct sg_http_reply){.status = keeps ? ret->status : 0, .failed_at = stage};
        ret->headers = keeps ? headers_of(play->call, script->headers) : (struct sg_map){0};
    }
    return code;
}

static void keep_body(struct play *play, struct sg_http_reply *ret)
{
    char *body = host_table()->alloc(play->call, play->total + 1);
    if (play->total > 0) {
        memcpy(body, play->kept, play->total);
    }
    ret->body = body;
    ret->body_len = play->total;
}

int fake_http(struct sg_call *call, const struct sg_http_request *asked, struct sg_http_reply *ret,
              const struct sg_sink *sink, struct sg_error *err)
{
    memset(ret, 0, sizeof *ret);
    size_t index = call->requests_count;
    struct fake_request *request = record(call, asked, sink != NULL);
    if (index >= call->replies_count) {
        fprintf(stderr, "http(): no reply for %s %s\n", request->method, request->url);
        ret->failed_at = SG_HTTP_UNCONNECTED;
        return host_table()->fail(err, SG_E_UNAVAILABLE, "no reply is left for a request");
    }
    struct fake_reply script = call->replies[index];
    if (script.before != NULL) {
        script.before(call, script.context);
    }
    struct play play = {.call = call,
                        .sink = sink,
                        .err = err,
                        .request = index,
                        .max = asked->body_bytes_max > 0 ? asked->body_bytes_max : BODY_MAX_DEFAULT,
                        .pieces_max = script.pieces_max > 0 ? script.pieces_max : SIZE_MAX,
                        .ticks = asked->tick_ms > 0};
    int code = play_reply(&play, &script, ret);
    if (code == 0 && sink == NULL) {
        keep_body(&play, ret);
    }
    free(play.kept);
    return code;
}

void call_reply(struct sg_call *call, struct fake_reply reply)
{
    call->replies = realloc(call->replies, (call->replies_count + 1) * sizeof reply);
    call->replies[call->replies_count++] = reply;
}

const char *request_header(struct sg_call *call, size_t request, const char *name)
{
    if (request >= call->requests_count) {
        return NULL;
    }
    size_t len = strlen(name);
    for (const char *line = call->requests[request].headers; *line != '\0';) {
        size_t line_len = strcspn(line, "\n");
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            char *value = host_table()->alloc(call, line_len - len - 1);
            memcpy(value, line + len + 2, line_len - len - 2);
            return value;
        }
        line += line_len + 1;
    }
    return NULL;
}

void fake_http_clear(struct sg_call *call)
{
    for (size_t i = 0; i < call->requests_count; i++) {
        struct fake_request *request = &call->requests[i];
        free(request->method);
        free(request->url);
        free(request->headers);
        free(request->body);
        free(request->ca_file);
    }
    free(call->requests);
    free(call->replies);
}
