/* A host for plugins under test: it records what they emit, log and wait for, and plays the sandbox to interceptors.
 *
 *   struct plugin_set set = host_load("mock");            loads PLUGIN_DIR/mock.so and hands it the host
 *   struct sg_call *call = call_new();
 *   int code = set.sandbox->create(self, call, &spec, call_error(call));
 *   … call_text(call, SG_OUT_HANDLE), call_message(call) …
 *   call_free(call);
 */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

#include <sandgate/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct output {
    enum sg_out kind;
    char *data; /* ended by a NUL that len does not count */
    size_t len;
};

struct event { /* what the played sandbox sends */
    enum sg_out kind;
    const char *data;
    size_t len; /* 0: strlen(data) */
};

struct fake_file { /* of the played sandbox */
    const char *path;
    const char *data;
    size_t len; /* 0: strlen(data) */
};

struct
    fake_folder { /* likewise: what listing it gives, each the JSON of SG_OUT_FILE, ended by NULL */
    const char *path;
    const char *const *entries;
};

/* http(): what is answered to one request. Pointers are borrowed. */
struct fake_reply {
    int status;
    const char *const
        *headers;     /* names in lower case and values in turn, ended by NULL; NULL: none */
    const char *body; /* NULL: none */
    size_t body_len;  /* 0: strlen(body) */
    size_t piece_len; /* a sink gets pieces of so many bytes; 0: all in one */
    const char *const *pieces; /* instead of body: as they are, ended by NULL; "" is a tick */
    size_t ticks; /* so often the sink is called with no bytes before the first piece */
    /* Fails with code and message once `pieces_max` pieces (0: all of them) were given. With a
     * sink the status and headers are told then, unless failed_at says that they had not come. */
    int code;
    const char *message;
    uint32_t failed_at;
    size_t pieces_max;
    void (*before)(struct sg_call *, void *context); /* called first; NULL: nothing is */
    void *context;
};

struct fake_request { /* what http() was asked */
    char *method;     /* as it would be sent */
    char *url;
    char *headers; /* "name: value\n", as written */
    char *body;    /* ended by a NUL that body_len does not count */
    size_t body_len;
    bool has_body, has_sink;
    char *ca_file; /* NULL: none */
    int64_t timeout_ms, first_byte_ms, silence_ms, tick_ms;
    uint64_t body_bytes_max;
    size_t sunk; /* bytes that the sink took */
};

struct sg_error {
    int code;
    char message[1024];
};

struct sg_call {
    struct output *outputs;
    size_t outputs_count;
    size_t emits_max; /* after so many emit() fails with emit_code; 0: never */
    int emit_code;
    void **blocks; /* given out by alloc() */
    size_t blocks_count, bytes;
    struct sg_error error;
    char logged[4096];
    /* sleep(): returns at once, calls the hook first, and fails with sleep_code after `sleeps_max` of them (0: after
     * 100000, so that nothing hangs). */
    int64_t slept_ms;
    size_t sleeps, sleeps_max;
    int sleep_code;
    void (*on_sleep)(struct sg_call *, void *);
    void *on_sleep_context;
    /* run_code(): sends `events` to the sink, then returns run_result with run_message. */
    const struct event *events;
    size_t events_count, events_repeat; /* the whole list so many times; 0: once */
    size_t events_sent;
    int run_result;
    const char *run_message;
    size_t runs;
    char *run_code; /* what was run last */
    size_t run_code_len;
    char run_language[16];
    int64_t run_timeout_ms;
    /* file_get(), file_list(): of these, each after `file_note` as a status; NOT_FOUND for others. file_put(): notes. */
    const struct fake_file *files;
    size_t files_count;
    const struct fake_folder *folders;
    size_t folders_count;
    const char *file_note;
    int get_result, put_result; /* fail with file_message instead */
    int list_result;            /* likewise, behind the entries of a folder that is there */
    const char *file_message;
    size_t gets, puts, lists;
    char put_path[256];
    char *put_data;
    size_t put_len;
    /* search(): sends `events` to the sink, then returns run_result with run_message. What was asked, as text. */
    size_t searches;
    char searched[2048];
    const char *tool_options; /* tool_options() */
    /* time_left_ms(): 60 s, or this; negative: over. */
    int64_t time_left_ms;
    /* http(): the queue of call_reply(), and what was asked. Without a reply a request fails as one that was refused. */
    struct fake_reply *replies;
    size_t replies_count;
    struct fake_request *requests;
    size_t requests_count;
};

/* The set of PLUGIN_DIR/NAME.so with the host in place; ends the program where that cannot be. */
const struct sg_plugin_set *host_load(const char *name);

/* The host itself, for tests that link the sources of a plugin: `const struct sg_host *sg;` is theirs to set. */
const struct sg_host *host_table(void);

struct sg_call *call_new(void);
void call_free(struct sg_call *);

static inline struct sg_error *call_error(struct sg_call *call)
{
    return &call->error;
}

/* All output of a kind, one after the other; until the next call. */
const char *call_text(struct sg_call *, enum sg_out kind);
size_t call_count(const struct sg_call *, enum sg_out kind);

/* The next request that has none yet is answered so. */
void call_reply(struct sg_call *, struct fake_reply);
/* A header's value as it was sent, whatever the case of its name; NULL: it was not. Until the call ends. */
const char *request_header(struct sg_call *, size_t request, const char *name);

/* ---- configuration (fake_config.c) ---- */

/* Filled with the table's defaults. */
void *config_new(const struct sg_plugin *);
void config_free(const struct sg_plugin *, void *config);
/* A value as in YAML; for STRINGS the values separated by line breaks. Ends the program at a name that is unknown. */
void config_set(const struct sg_plugin *, void *config, const char *name, const char *value);
/* Appends an item to a LIST: names and values in turn, ended by NULL. */
void config_add(const struct sg_plugin *, void *config, const char *list, ...);

#endif
