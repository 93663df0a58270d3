/* The state of kept.h as text, one JSON object:
 *
 *   {"sandgate_state": 1, "sha256": "…", "state": {"secret": "…", "containers": [{…}, …], "notices": [{…}, …]}}
 *
 * The digest is of the bytes of "state": it tells a file that was cut or changed from one that was written. Texts from
 * outside (identities, session ids, handles) are in hexadecimal, since they need not be UTF-8. */
#include "session/internal.h"

#include "base/check.h"
#include "base/json.h"
#include "session/kept.h"

#include <inttypes.h>

enum {
    STATE_VERSION = 1,
    IDENTITY_BYTES_MAX = 1024,
    SANDBOX_NAME_BYTES_MAX = 64,
    MEMBERS_MAX = 64 /* of one object: far more than are written */
};

#define TIME_MAX ((int64_t)1 << 53)

/* ---- writing ---- */

static void put_hex(struct buf *out, const char *name, const void *data, size_t len)
{
    char *room;
    (void)buf_printf(out, "\"%s\":\"", name); /* overflow shows in the buffer */
    room = buf_reserve(out, 2 * len + 1);
    if (room != NULL) {
        hex_encode(data, len, room);
        buf_commit(out, 2 * len);
    }
    (void)buf_puts(out, "\",");
}

static void put_text(struct buf *out, const char *name, struct str text)
{
    (void)buf_printf(out, "\"%s\":", name);
    (void)buf_put_json(out, text);
    (void)buf_putc(out, ',');
}

static void put_int(struct buf *out, const char *name, int64_t value)
{
    (void)buf_printf(out, "\"%s\":%" PRId64 ",", name, value < 0 ? 0 : value);
}

static void put_bool(struct buf *out, const char *name, bool value, const char *behind)
{
    (void)buf_printf(out, "\"%s\":%s%s", name, value ? "true" : "false", behind);
}

static void put_container(struct buf *out, const struct kept_container *kept)
{
    (void)buf_putc(out, '{');
    put_hex(out, "identity", kept->identity.data, kept->identity.len);
    put_hex(out, "session", kept->session_id.data, kept->session_id.len);
    put_text(out, "sandbox", kept->sandbox);
    put_hex(out, "handle", kept->handle.data, kept->handle.len);
    put_text(out, "id", kept->id);
    put_text(out, "label", kept->label);
    put_hex(out, "account", kept->account, sizeof kept->account);
    put_int(out, "created", kept->created_unix_ms);
    put_int(out, "used", kept->used_unix_ms);
    put_int(out, "expires", kept->expires_unix_ms);
    put_int(out, "life", kept->life_unix_ms);
    put_int(out, "life_latest", kept->life_latest_unix_ms);
    put_int(out, "park_ms", kept->park_ms);
    put_bool(out, "is_used", kept->is_used, ",");
    put_bool(out, "loss", kept->loss, "}");
}

static void put_notice(struct buf *out, const struct kept_notice *notice)
{
    (void)buf_putc(out, '{');
    put_hex(out, "identity", notice->identity.data, notice->identity.len);
    put_hex(out, "key", notice->key, sizeof notice->key);
    (void)buf_printf(out, "\"since\":%" PRId64 "}", notice->since_unix_ms);
}

static void put_state(const struct kept *kept, const uint8_t *secret, struct buf *out)
{
    (void)buf_putc(out, '{');
    if (secret != NULL) {
        put_hex(out, "secret", secret, KEPT_SECRET_BYTES);
    }
    (void)buf_puts(out, "\"containers\":[");
    for (size_t i = 0; i < kept->containers_count; i++) {
        (void)buf_puts(out, i == 0 ? "\n" : ",\n");
        put_container(out, &kept->containers[i]);
    }
    (void)buf_puts(out, "],\"notices\":[");
    for (size_t i = 0; i < kept->notices_count; i++) {
        (void)buf_puts(out, i == 0 ? "\n" : ",\n");
        put_notice(out, &kept->notices[i]);
    }
    (void)buf_puts(out, "]}");
}

bool kept_write(const struct kept *kept, const uint8_t *secret, struct buf *out)
{
    BUF_CLEANUP struct buf state = {.max = KEPT_BYTES_MAX};
    uint8_t digest[SHA256_BYTES];
    put_state(kept, secret, &state);
    if (!state.overflow) {
        sha256(buf_str(&state), digest);
        (void)buf_printf(out, "{\"sandgate_state\":%d,", STATE_VERSION);
        put_hex(out, "sha256", digest, sizeof digest);
        (void)buf_puts(out, "\"state\":");
        (void)buf_append_str(out, buf_str(&state));
        (void)buf_puts(out, "}\n");
        explicit_bzero(state.data, state.len);
    }
    return !state.overflow && !out->overflow && out->len <= KEPT_BYTES_MAX;
}

/* ---- reading ---- */

struct object { /* one that is being read */
    struct arena *arena;
    struct json_member *members;
    size_t count;
    const char *problem; /* the first member that is not as it was written; NULL: none */
};

static void object_fail(struct object *object, const char *name)
{
    object->problem = object->problem != NULL ? object->problem : name;
}

static struct json_value member_of(struct object *object, const char *name, enum json_type type)
{
    const struct json_member *member = json_find_type(object->members, object->count, name, type);
    if (member == NULL) {
        object_fail(object, name);
    }
    return member == NULL ? (struct json_value){0} : member->value;
}

static struct str take_text(struct object *object, const char *name, size_t least, size_t most)
{
    struct json_value value = member_of(object, name, JSON_STRING);
    struct str text = object->problem == NULL ? json_text_of(value, object->arena) : STR("");
    if (text.len < least || text.len > most || memchr(text.data, '\0', text.len) != NULL) {
        object_fail(object, name);
        return STR("");
    }
    return text;
}

/* The bytes that were written in hexadecimal, without NUL. */
static struct str take_hex_text(struct object *object, const char *name, size_t least, size_t most)
{
    struct str text = take_text(object, name, 2 * least, 2 * most);
    char *bytes = arena_get(object->arena, text.len / 2 + 1);
    if (!hex_decode(text, (uint8_t *)bytes, text.len / 2) ||
        memchr(bytes, '\0', text.len / 2) != NULL) {
        object_fail(object, name);
    }
    return (struct str){bytes, text.len / 2};
}

static void take_hex(struct object *object, const char *name, uint8_t *ret, size_t len)
{
    if (!hex_decode(take_text(object, name, 2 * len, 2 * len), ret, len)) {
        object_fail(object, name);
    }
}

static int64_t take_int(struct object *object, const char *name)
{
    struct json_value value = member_of(object, name, JSON_NUMBER);
    int64_t number = 0;
    if (value.raw.len == 0 || !json_int_of(value, &number) || number < 0 || number > TIME_MAX) {
        object_fail(object, name);
        return 0;
    }
    return number;
}

static bool take_bool(struct object *object, const char *name)
{
    const struct json_member *member = json_find(object->members, object->count, name);
    bool is_true = member != NULL && member->value.type == JSON_TRUE;
    if (!is_true && (member == NULL || member->value.type != JSON_FALSE)) {
        object_fail(object, name);
    }
    return is_true;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 0x7F) {
            return false;
        }
    }
    return true;
}

static void take_container(struct object *object, struct kept_container *ret)
{
    *ret = (struct kept_container){
        .identity = take_hex_text(object, "identity", 1, IDENTITY_BYTES_MAX),
        .session_id = take_hex_text(object, "session", 0, LIMIT_SESSION_ID_BYTES),
        .sandbox = take_text(object, "sandbox", 1, SANDBOX_NAME_BYTES_MAX),
        .handle = take_hex_text(object, "handle", 1, LIMIT_HANDLE_BYTES),
        .id = take_text(object, "id", sizeof CONTAINER_ID_PREFIX, CONTAINER_ID_BYTES - 1),
        .label = take_text(object, "label", 1, LABEL_BYTES - 1),
        .created_unix_ms = take_int(object, "created"),
        .used_unix_ms = take_int(object, "used"),
        .expires_unix_ms = take_int(object, "expires"),
        .life_unix_ms = take_int(object, "life"),
        .life_latest_unix_ms = take_int(object, "life_latest"),
        .park_ms = take_int(object, "park_ms"),
        .is_used = take_bool(object, "is_used"),
        .loss = take_bool(object, "loss"),
    };
    take_hex(object, "account", ret->account, sizeof ret->account);
    if (!str_starts(ret->id, STR(CONTAINER_ID_PREFIX)) || !is_plain(ret->id)) {
        object_fail(object, "id");
    }
    if (!is_plain(ret->label)) {
        object_fail(object, "label");
    }
    if (ret->park_ms > LIMIT_KEEP_MS) {
        object_fail(object, "park_ms");
    }
}

static void take_notice(struct object *object, struct kept_notice *ret)
{
    ret->identity = take_hex_text(object, "identity", 1, IDENTITY_BYTES_MAX);
    take_hex(object, "key", ret->key, sizeof ret->key);
    ret->since_unix_ms = take_int(object, "since");
}

static size_t elements_count(struct json_value array)
{
    struct json_walk walk = json_walk_of(array);
    struct json_value value;
    size_t count = 0;
    while (json_walk_element(&walk, &value)) {
        count++;
    }
    return count;
}

static int object_open(struct json_value value, const char *where, struct arena *arena,
                       struct object *ret, struct sg_error *err)
{
    *ret = (struct object){.arena = arena};
    if (value.type != JSON_OBJECT) {
        return error_set(err, SG_E_INVALID, "%s is no object", where);
    }
    int code = json_members(value, where, arena, &ret->members, &ret->count, err);
    if (code == 0 && ret->count > MEMBERS_MAX) {
        code = error_set(err, SG_E_INVALID, "%s has too many members", where);
    }
    return code;
}

static int object_close(const struct object *object, const char *where, struct sg_error *err)
{
    return object->problem == NULL
               ? 0
               : error_set(err, SG_E_INVALID, "'%s' of %s is not as it was written",
                           object->problem, where);
}

/* Reads an array: `take` fills one place of `size` bytes from the object that stands there. */
static int array_read(struct object *state, const char *name, size_t size,
                      void (*take)(struct object *, void *), void **ret, size_t *ret_count,
                      struct sg_error *err)
{
    struct json_value array = member_of(state, name, JSON_ARRAY), value;
    int code = object_close(state, "state", err);
    if (code != 0) {
        return code;
    }
    char *places = arena_get(state->arena, elements_count(array) * size + 1);
    struct json_walk walk = json_walk_of(array);
    size_t count = 0;
    while (code == 0 && json_walk_element(&walk, &value)) {
        struct object object;
        code = object_open(value, name, state->arena, &object, err);
        if (code == 0) {
            take(&object, places + count++ * size);
            code = object_close(&object, name, err);
        }
    }
    *ret = places;
    *ret_count = count;
    return code;
}

static void container_place(struct object *object, void *place)
{
    take_container(object, place);
}

static void notice_place(struct object *object, void *place)
{
    take_notice(object, place);
}

static int state_read(struct json_value value, struct kept *ret, uint8_t *ret_secret,
                      bool *ret_has_secret, struct sg_error *err)
{
    struct object state;
    void *places = NULL;
    int code = object_open(value, "state", ret->arena, &state, err);
    if (code == 0) {
        code = array_read(&state, "containers", sizeof *ret->containers, container_place, &places,
                          &ret->containers_count, err);
        ret->containers = places;
    }
    if (code == 0) {
        code = array_read(&state, "notices", sizeof *ret->notices, notice_place, &places,
                          &ret->notices_count, err);
        ret->notices = places;
    }
    if (code == 0 && json_find(state.members, state.count, "secret") != NULL) {
        take_hex(&state, "secret", ret_secret, KEPT_SECRET_BYTES);
        *ret_has_secret = true;
        code = object_close(&state, "state", err);
    }
    return code;
}

/* The version first: another one may have another form altogether. */
static int envelope_read(struct object *root, struct json_value *ret_state, struct sg_error *err)
{
    uint8_t written[SHA256_BYTES], found[SHA256_BYTES];
    int64_t version = take_int(root, "sandgate_state");
    if (root->problem == NULL && version != STATE_VERSION) {
        return error_set(err, SG_E_INVALID,
                         "it is of version %" PRId64 ", and this gateway reads %d", version,
                         STATE_VERSION);
    }
    take_hex(root, "sha256", written, sizeof written);
    *ret_state = member_of(root, "state", JSON_OBJECT);
    if (root->problem != NULL) {
        return error_set(err, SG_E_INVALID, "it is no state of a gateway: '%s' is missing or wrong",
                         root->problem);
    }
    sha256(ret_state->raw, found);
    return memcmp(written, found, sizeof found) == 0
               ? 0
               : error_set(err, SG_E_INVALID, "its digest does not fit: it was cut or changed");
}

int kept_read(struct str text, struct kept *ret, uint8_t ret_secret[KEPT_SECRET_BYTES],
              bool *ret_has_secret, struct sg_error *err)
{
    struct json_text json;
    struct json_value state;
    *ret_has_secret = false;
    int code = json_scan(text, ret->arena, &json, err);
    if (code != 0) {
        return code;
    }
    struct object root = {.arena = ret->arena, .members = json.members, .count = json.count};
    code = envelope_read(&root, &state, err);
    return code == 0 ? state_read(state, ret, ret_secret, ret_has_secret, err) : code;
}
