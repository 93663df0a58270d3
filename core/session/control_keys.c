/* The control keys: the table, reading the session id, and cutting. A request that has none of the keys, which is nearly
 * every one, costs a look at each name; one that has some is rewritten in one pass. */
#include "session/control_keys.h"

#include "base/check.h"
#include "base/limits.h"

static const struct str prefixes[] = {
    STR("_code_interpreter_interception"),
    STR("_websearch_interception"),
    STR("_compression_interception"),
    STR("_headroom_interception"),
    STR("_agentic_loop"),
    STR("_sandgate"),
    STR("user_api_key"),
};

static const struct str names[] = {
    STR("max_agentic_loops"),
    STR("litellm_metadata"),
    STR("litellm_call_id"),
};

bool control_key_is(struct str key)
{
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        if (str_starts(key, prefixes[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (str_eq(key, names[i])) {
            return true;
        }
    }
    return false;
}

/* ---- the session id ---- */

static int session_id_check(const char *source, struct json_value value, struct arena *arena,
                            struct str *ret, struct sg_error *err)
{
    if (value.type == JSON_NULL) {
        return 0;
    }
    if (value.type != JSON_STRING) {
        return error_set_param(err, SG_E_INVALID, source, "%s must be a string", source);
    }
    struct str id = json_text_of(value, arena);
    if (id.len > LIMIT_SESSION_ID_BYTES) {
        return error_set_param(err, SG_E_INVALID, source,
                               "%s is %zu bytes long; it may have 1 to %d", source, id.len,
                               LIMIT_SESSION_ID_BYTES);
    }
    if (id.len > 0 && memchr(id.data, '\0', id.len) != NULL) {
        return error_set_param(err, SG_E_INVALID, source, "%s must not hold a NUL", source);
    }
    if (id.len > 0 && memmem(id.data, id.len, "\xEF\xBF\xBD", 3) != NULL) {
        /* Half surrogates are read as it too, here and before: several ids may have become this one. */
        return error_set_param(err, SG_E_INVALID, source,
                               "%s must not hold U+FFFD, which stands for what could not be read",
                               source);
    }
    *ret = id;
    return 0;
}

bool session_id_source_valid(const char *source)
{
    static const char *const valid[] = {"metadata.session_id", "litellm_metadata.session_id",
                                        "metadata.user_id", "prompt_cache_key"};
    for (size_t i = 0; i < COUNT_OF(valid); i++) {
        if (strcmp(source, valid[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* "metadata.session_id": the member `session_id` of the object `metadata`; without a dot a member of the body. */
static int source_read(const struct json_text *body, const char *source, struct arena *arena,
                       struct str *ret, struct sg_error *err)
{
    const char *dot = strchr(source, '.');
    if (dot == NULL) {
        const struct json_member *own = json_find(body->members, body->count, source);
        return own == NULL ? 0 : session_id_check(source, own->value, arena, ret, err);
    }
    char *parent = arena_copy(arena, (struct str){source, (size_t)(dot - source)});
    const struct json_member *object = json_find(body->members, body->count, check_alloc(parent));
    if (object == NULL || object->value.type == JSON_NULL) {
        return 0;
    }
    if (object->value.type != JSON_OBJECT) {
        return error_set_param(err, SG_E_INVALID, parent, "%s must be an object", parent);
    }
    struct json_member *members;
    size_t count;
    if (json_members(object->value, parent, arena, &members, &count, err) != 0) {
        return err->code;
    }
    const struct json_member *member = json_find(members, count, dot + 1);
    return member == NULL ? 0 : session_id_check(source, member->value, arena, ret, err);
}

int session_id_read(const struct json_text *body, const char *const *sources, struct arena *arena,
                    struct str *ret, struct sg_error *err)
{
    struct str found = {0};
    for (size_t i = 0; sources[i] != NULL && found.len == 0; i++) {
        int code = source_read(body, sources[i], arena, &found, err);
        if (code != 0) {
            return code;
        }
    }
    *ret = found;
    return 0;
}

/* ---- cutting ---- */

/* Which members go; how many. */
static size_t members_mark(const struct json_member *members, size_t count, bool take_session_id,
                           bool *gone)
{
    size_t marked = 0;
    for (size_t i = 0; i < count; i++) {
        gone[i] = control_key_is(members[i].key) ||
                  (take_session_id && str_is(members[i].key, "session_id"));
        marked += gone[i];
    }
    return marked;
}

struct metadata_edit {
    const struct json_member *member; /* NULL: there is none, or no object */
    bool is_edited, is_empty;         /* is_empty: nothing is left, it goes as a whole */
    struct str text;                  /* what is left of it */
};

static bool *marks_new(struct arena *arena, size_t count)
{
    return check_alloc(arena_alloc(arena, count + 1));
}

/* Its edits are applied on their own, so that they come into the whole as one: adding one edit before many costs a move
 * of them all. */
static int metadata_cut(const struct json_text *body, bool take_session_id, struct arena *arena,
                        struct metadata_edit *ret, struct sg_error *err)
{
    const struct json_member *member = json_find(body->members, body->count, "metadata");
    *ret = (struct metadata_edit){0};
    if (member == NULL || member->value.type != JSON_OBJECT) {
        return 0;
    }
    struct json_member *members;
    size_t count;
    if (json_members(member->value, "metadata", arena, &members, &count, err) != 0) {
        return err->code;
    }
    bool *gone = marks_new(arena, count);
    size_t marked = members_mark(members, count, take_session_id, gone);
    if (marked == 0) {
        return 0;
    }
    *ret = (struct metadata_edit){member, true, marked == count, {0}};
    if (ret->is_empty) {
        return 0;
    }
    struct splice splice = {.arena = arena};
    splice_cut_members(&splice, member->value.raw, members, count, gone);
    BUF_CLEANUP struct buf left = {0};
    char *copy = NULL;
    if (splice_apply(&splice, member->value.raw, &left)) {
        copy = arena_copy(arena, buf_str(&left));
    }
    if (copy == NULL) {
        return error_set(err, SG_E_LIMIT, "no memory for the request's metadata");
    }
    ret->text = (struct str){copy, left.len};
    return 0;
}

/* The way of places from the old text into the new one; asked in ascending order. */
struct relocation {
    const struct splice *splice;
    const char *from, *to;
    size_t next;     /* the first edit that has not been passed */
    size_t cut, put; /* by those passed */
};

static const char *relocate(struct relocation *way, const char *old)
{
    size_t at = (size_t)(old - way->from);
    for (; way->next < way->splice->count && way->splice->edits[way->next].at < at; way->next++) {
        way->cut += way->splice->edits[way->next].cut;
        way->put += way->splice->edits[way->next].put.len;
    }
    return way->to + at - way->cut + way->put;
}

static struct json_member member_relocate(struct relocation *way, struct json_member member,
                                          const struct metadata_edit *metadata, bool is_metadata)
{
    bool key_is_inside = member.key.data == member.key_raw.data + 1;
    member.key_raw.data = relocate(way, member.key_raw.data);
    if (key_is_inside) { /* else decoded, in the arena */
        member.key.data = member.key_raw.data + 1;
    }
    member.value.raw.data = relocate(way, member.value.raw.data);
    if (is_metadata && metadata->is_edited) {
        member.value.raw.len = metadata->text.len;
    }
    return member;
}

static void text_relocate(const struct json_text *body, const struct splice *splice,
                          const bool *gone, const struct metadata_edit *metadata, struct str text,
                          struct arena *arena, struct json_text *ret)
{
    struct relocation way = {.splice = splice, .from = body->raw.data, .to = text.data};
    struct json_text new = {.raw = text, .root = body->root};
    new.members = check_alloc(arena_alloc(arena, (body->count + 1) * sizeof *new.members));
    new.root.raw.data = relocate(&way, body->root.raw.data);
    for (size_t i = 0; i < body->count; i++) {
        if (!gone[i]) {
            bool is_metadata = &body->members[i] == metadata->member;
            new.members[new.count++] =
                member_relocate(&way, body->members[i], metadata, is_metadata);
        }
    }
    new.root.raw.len = body->root.raw.len + text.len - body->raw.len; /* all edits are inside it */
    *ret = new;
}

int control_keys_cut(const struct json_text *body, bool take_session_id, struct arena *arena,
                     struct buf *storage, struct json_text *ret, struct sg_error *err)
{
    struct metadata_edit metadata;
    if (metadata_cut(body, take_session_id, arena, &metadata, err) != 0) {
        return err->code;
    }
    bool *gone = marks_new(arena, body->count);
    size_t marked = members_mark(body->members, body->count, false, gone);
    if (marked == 0 && !metadata.is_edited) {
        *ret = *body;
        return 0;
    }
    if (metadata.is_empty) {
        gone[metadata.member - body->members] = true;
    }
    struct splice splice = {.arena = arena};
    splice_cut_members(&splice, body->raw, body->members, body->count, gone);
    if (metadata.is_edited && !metadata.is_empty) {
        struct str old = metadata.member->value.raw;
        splice_add(&splice, (size_t)(old.data - body->raw.data), old.len, metadata.text);
    }
    size_t start = storage->len;
    if (!splice_apply(&splice, body->raw, storage)) {
        return error_set(err, SG_E_LIMIT, "no memory for the request's body");
    }
    struct str text = {storage->data + start, storage->len - start};
    text_relocate(body, &splice, gone, &metadata, text, arena, ret);
    return 0;
}
