/* Tool calls of a turn: their pieces put together whatever an upstream does with ids, indexes and names; whose they are;
 * their arguments made fit for history. */
#include "surface/arguments.h"
#include "surface/chat.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdlib.h>

struct piece { /* what one element of `tool_calls` says */
    struct str id, name;
    bool has_index;
    int64_t index;
    bool custom;
    struct json_value text; /* arguments, or a custom tool's input; raw is empty if absent */
    struct json_member *members, *inside;
    size_t count, inside_count;
};

void chat_call_free(struct chat_call *call)
{
    if (call == NULL) {
        return;
    }
    buf_clear(&call->id);
    buf_clear(&call->shown_id);
    buf_clear(&call->name);
    buf_clear(&call->arguments);
    buf_clear(&call->extras);
    buf_clear(&call->function_extras);
    buf_clear(&call->result);
    buf_clear(&call->run);
    free(call);
}

/* ---- reading a piece ---- */

static int piece_read(struct json_value entry, struct arena *arena, struct piece *ret,
                      struct sg_error *err)
{
    struct piece piece = {0};
    int code = json_members(entry, "a tool call", arena, &piece.members, &piece.count, err);
    if (code != SG_OK) {
        return code;
    }
    piece.id = json_find_text(piece.members, piece.count, "id", arena);
    const struct json_member *index = json_find(piece.members, piece.count, "index");
    piece.has_index = index != NULL && json_int_of(index->value, &piece.index);
    const struct json_member *inside =
        json_find_type(piece.members, piece.count, "function", JSON_OBJECT);
    if (inside == NULL) {
        inside = json_find_type(piece.members, piece.count, "custom", JSON_OBJECT);
        piece.custom = inside != NULL;
    }
    if (inside != NULL) {
        code = json_members(inside->value, "a tool call", arena, &piece.inside, &piece.inside_count,
                            err);
        if (code != SG_OK) {
            return code;
        }
        piece.name = json_find_text(piece.inside, piece.inside_count, "name", arena);
        const struct json_member *text =
            json_find(piece.inside, piece.inside_count, piece.custom ? "input" : "arguments");
        if (text != NULL && text->value.type != JSON_NULL) {
            piece.text = text->value;
        }
    }
    *ret = piece;
    return SG_OK;
}

/* ---- which call is it of? ---- */

static struct chat_call *call_last(const struct chat_turn *turn)
{
    return turn->calls_count == 0 ? NULL : turn->calls[turn->calls_count - 1];
}

/* Does this function's name go on with `more` behind `start`? An empty `more`: is it `start`? */
static bool name_fits(struct str name, struct str start, struct str more)
{
    if (more.len == 0) {
        return str_eq(name, start);
    }
    return str_starts(name, start) &&
           str_starts((struct str){name.data + start.len, name.len - start.len}, more);
}

static bool name_is_known(const struct chat_request *request, struct str start, struct str more)
{
    for (size_t i = 0; i < request->set.offers_count; i++) {
        if (request->set.shown[i].shown && name_fits(request->set.shown[i].name, start, more)) {
            return true;
        }
    }
    for (size_t i = 0; i < request->set.entries_count; i++) {
        struct str name = request->set.entries[i].function;
        if (name.len > 0 && name_fits(name, start, more)) {
            return true;
        }
    }
    return false;
}

/* The rest of a name, late: behind arguments even, as nothing forbids it. */
static bool name_goes_on(const struct chat_turn *turn, const struct chat_call *call,
                         const struct piece *piece)
{
    struct str start = buf_str(&call->name);
    return !call->released && start.len > 0 && piece->name.len > 0 &&
           !name_is_known(turn->request, start, (struct str){0}) &&
           name_is_known(turn->request, start, piece->name);
}

/* A name in a piece for a call that has arguments already: another call begins if they are whole, else the upstream only
 * says the name again. */
static bool begins_another(const struct chat_turn *turn, const struct chat_call *call,
                           const struct piece *piece)
{
    return piece->name.len > 0 && call->name.len > 0 && call->arguments.len > 0 && call->complete &&
           !name_goes_on(turn, call, piece);
}

/* Some upstreams end with the whole call once more. */
static bool says_again(const struct chat_call *call, const struct piece *piece)
{
    struct str raw = piece->text.raw;
    return raw.len <= 2 ||
           (piece->text.type == JSON_STRING &&
            str_eq((struct str){raw.data + 1, raw.len - 2}, buf_str(&call->arguments)));
}

/* By its id. The same id under another index and with a name of its own is another call. */
static struct chat_call *find_by_id(const struct chat_turn *turn, const struct piece *piece)
{
    for (size_t i = turn->calls_count; i-- > 0;) {
        struct chat_call *call = turn->calls[i];
        if (!str_eq(buf_str(&call->id), piece->id)) {
            continue;
        }
        bool indexed = piece->has_index && call->has_index;
        bool elsewhere = indexed && piece->index != call->index;
        bool twice = !piece->has_index && call->touched;
        bool another = begins_another(turn, call, piece) && !indexed && !says_again(call, piece);
        if (!another && !((elsewhere || twice) && piece->name.len > 0)) {
            return call;
        }
    }
    return NULL;
}

static struct chat_call *find_by_index(const struct chat_turn *turn, int64_t index)
{
    for (size_t i = turn->calls_count; i-- > 0;) {
        if (turn->calls[i]->has_index && turn->calls[i]->index == index) {
            return turn->calls[i];
        }
    }
    return NULL;
}

/* The calls that were opened last stand in the order of their pieces. */
static struct chat_call *find_by_position(const struct chat_turn *turn, size_t position)
{
    size_t at = turn->group_first + position;
    return at < turn->calls_count ? turn->calls[at] : NULL;
}

/* The call that a piece belongs to; NULL: a new one. A new id never joins a call that has another. */
static struct chat_call *call_find(const struct chat_turn *turn, const struct piece *piece,
                                   size_t position)
{
    if (piece->id.len > 0) {
        struct chat_call *call = find_by_id(turn, piece);
        if (call != NULL) {
            return call;
        }
        call =
            piece->has_index ? find_by_index(turn, piece->index) : find_by_position(turn, position);
        bool late = call != NULL && call->id.len == 0 && !begins_another(turn, call, piece);
        return late && (piece->has_index || !call->touched) ? call : NULL;
    }
    struct chat_call *call =
        piece->has_index ? find_by_index(turn, piece->index) : find_by_position(turn, position);
    if (call != NULL) {
        bool another = begins_another(turn, call, piece) || (!piece->has_index && call->touched);
        return another && piece->name.len > 0 ? NULL : call;
    }
    return piece->name.len > 0 ? NULL : call_last(turn); /* the tail of one under a new index */
}

static struct chat_call *call_add(struct chat_turn *turn, bool first_of_chunk)
{
    if (turn->calls_count == CHAT_CALLS_MAX) {
        return NULL;
    }
    if (first_of_chunk) {
        turn->group_first = turn->calls_count;
    }
    struct chat_call *call = check_alloc(calloc(1, sizeof *call));
    call->offer = -1;
    turn->calls[turn->calls_count++] = call;
    return call;
}

/* ---- adding to it ---- */

/* Follows the arguments to see where their object ends. */
static void shape_follow(struct chat_call *call, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (call->escaped) {
            call->escaped = false;
        } else if (call->in_string) {
            call->escaped = c == '\\';
            call->in_string = c != '"';
        } else if (c == '"') {
            call->in_string = true;
        } else if (c == '{' || c == '[') {
            call->depth++;
            call->complete = false;
        } else if ((c == '}' || c == ']') && call->depth > 0) {
            call->complete = --call->depth == 0;
        }
    }
}

static void arguments_add(struct chat_call *call, struct json_value text, struct arena *arena)
{
    if (text.raw.len == 0) {
        return;
    }
    if (text.type == JSON_STRING) {
        (void)buf_append(&call->arguments, text.raw.data + 1, text.raw.len - 2); /* asked later */
        shape_follow(call, json_text_of(text, arena));
        return;
    }
    call->not_text = true;
    (void)buf_put_json_inner(&call->arguments, text.raw); /* an object instead of text */
    shape_follow(call, text.raw);
}

static void name_add(const struct chat_turn *turn, struct chat_call *call,
                     const struct piece *piece)
{
    struct str name = piece->name;
    bool goes_on = call->arguments.len == 0 || name_goes_on(turn, call, piece);
    if (goes_on && !str_eq(buf_str(&call->name), name)) {
        (void)buf_append_str(&call->name, name); /* bounded by the turn's bytes */
    } else if (call->name.len == 0) {
        (void)buf_append_str(&call->name, name); /* a late one */
    }
}

/* Members that we do not know are kept, each once, as they came first. */
static void extras_add(struct buf *extras, const struct json_member *members, size_t count,
                       const char *const *known)
{
    for (size_t i = 0; i < count; i++) {
        bool skip = members[i].value.type == JSON_NULL;
        for (size_t k = 0; known[k] != NULL; k++) {
            skip = skip || str_is(members[i].key, known[k]);
        }
        struct str key = members[i].key_raw;
        if (skip || (extras->len > 0 && memmem(extras->data, extras->len, key.data, key.len))) {
            continue;
        }
        (void)buf_putc(extras, ','); /* overflow: bounded by the turn's bytes */
        (void)buf_append_str(extras, key);
        (void)buf_putc(extras, ':');
        (void)buf_append_str(extras, members[i].value.raw);
    }
}

static void piece_add(const struct chat_turn *turn, struct chat_call *call,
                      const struct piece *piece, struct arena *arena)
{
    static const char *const known[] = {"id", "index", "type", "function", "custom", NULL};
    static const char *const known_inside[] = {"name", "arguments", NULL};
    static const char *const known_custom[] = {"name", "input", NULL};
    if (call->id.len == 0) {
        (void)buf_append_str(&call->id, piece->id); /* overflow: bounded by the turn's bytes */
    }
    if (piece->has_index && !call->has_index) {
        call->has_index = true;
        call->index = piece->index;
    } else if (piece->has_index && piece->id.len == 0) {
        call->index = piece->index; /* its tail goes on under another index */
    }
    call->custom = call->custom || piece->custom;
    call->touched = true;
    if (begins_another(turn, call, piece)) {
        return; /* and yet it is the same call: the upstream says it again */
    }
    name_add(turn, call, piece);
    arguments_add(call, piece->text, arena);
    extras_add(&call->extras, piece->members, piece->count, known);
    extras_add(&call->function_extras, piece->inside, piece->inside_count,
               piece->custom ? known_custom : known_inside);
}

int chat_call_take(struct chat_turn *turn, struct json_value entry, size_t position, bool streamed,
                   struct sg_error *err)
{
    if (entry.type != JSON_OBJECT) {
        return error_set(err, SG_E_INVALID, "a tool call that is no object");
    }
    struct arena *scratch = arena_new(0);
    struct piece piece = {0};
    int code = piece_read(entry, scratch, &piece, err);
    if (code == SG_OK) {
        struct chat_call *call = streamed ? call_find(turn, &piece, position) : NULL;
        if (call == NULL) {
            call = call_add(turn, position == 0);
        }
        if (call == NULL) {
            code =
                error_set(err, SG_E_LIMIT, "more than %d tool calls in one turn", CHAT_CALLS_MAX);
        } else {
            piece_add(turn, call, &piece, scratch);
        }
    }
    arena_free(scratch);
    return code;
}

/* ---- when the turn has ended ---- */

struct str chat_call_up_id(const struct chat_call *call)
{
    return buf_str(call->replaced ? &call->id : &call->shown_id);
}

/* Is something of this answer to be found again when the client brings its results? In a stream the first call may have
 * to be shown before it is known what else the turn calls. */
static bool is_to_be_found(const struct chat *chat, const struct chat_turn *turn)
{
    const struct chat_request *request = &chat->request;
    if (request->memory == NULL || !request->set.names_hosted ||
        request->choice.kind == TOOL_CHOICE_NONE) {
        return false;
    }
    bool shown_early =
        turn->is_stream && request->wants_stream && !request->holds_text && !request->parallel_off;
    return shown_early || request->resumes || chat->turns > 0 || turn->ours_count > 0;
}

void chat_call_identify(const struct chat *chat, const struct chat_turn *turn,
                        struct chat_call *call, bool is_clients)
{
    if (call->shown_id.len > 0) {
        return;
    }
    bool good = call->id.len > 0;
    for (size_t i = 0; i < turn->calls_count && good; i++) {
        const struct chat_call *other = turn->calls[i];
        good = other->shown_id.len == 0 || !str_eq(chat_call_up_id(other), buf_str(&call->id));
    }
    call->replaced = good && is_clients && is_to_be_found(chat, turn);
    if (good && !call->replaced) {
        (void)buf_append_str(&call->shown_id, buf_str(&call->id)); /* bounded by the turn's bytes */
        return;
    }
    char random[RANDOM_ID_BYTES];
    random_id(random);
    (void)buf_printf(&call->shown_id, SHOWN_CALL_MARK "%s", random); /* small: fits */
}

/* What the tool gets, and as inner text what goes up. */
static struct str call_settle(struct chat_turn *turn, struct chat_call *call)
{
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_putc(&quoted, '"'); /* as large as the arguments, which are bounded */
    (void)buf_append_str(&quoted, buf_str(&call->arguments));
    (void)buf_putc(&quoted, '"');
    CHECK(!quoted.overflow);
    struct str text = json_text_of((struct json_value){JSON_STRING, buf_str(&quoted)}, turn->arena);
    text = (struct str){check_alloc(arena_copy(turn->arena, text)), text.len};
    struct str object, settled = arguments_settle(text, &object);
    if (str_eq(object, text)) {
        call->history = buf_str(&call->arguments);
        return settled;
    }
    struct buf inner = {0};
    (void)buf_put_json_inner(&inner, object); /* bounded likewise */
    call->history = buf_to_arena(&inner, turn->arena);
    return settled;
}

/* A name that never came, or broke off where it could have become one of ours: nobody can do anything with such a call,
 * and the client must not see what may be ours. */
static bool name_is_cut(const struct chat *chat, const struct chat_call *call)
{
    struct str name = buf_str(&call->name);
    bool is_known = name.len > 0 && name_is_known(&chat->request, name, (struct str){0});
    return call->offer < 0 && !is_known && tools_begins_ours(&chat->request.set, name);
}

/* Whose is each, and does it stand? Names of ours are none of the client's, whatever kind of call it is. */
static void calls_judge(struct chat *chat, struct chat_turn *turn)
{
    bool runs_nothing = chat->request.choice.kind == TOOL_CHOICE_NONE;
    for (size_t i = 0; i < turn->calls_count; i++) {
        struct chat_call *call = turn->calls[i];
        call->offer = tools_offer_of(&chat->request.set, buf_str(&call->name));
        call->custom = call->custom && call->offer < 0;
        call->dropped = (i > 0 && chat->request.parallel_off) ||
                        (call->offer >= 0 && runs_nothing) || name_is_cut(chat, call);
        if (call->offer >= 0 && !call->dropped) {
            chat->request.set.shown[call->offer].called = true;
            turn->ours_calls[turn->ours_count++] = call;
        }
    }
}

/* Says of each call whose it is and whether it stands; lists ours. */
void chat_calls_settle(struct chat *chat, struct chat_turn *turn)
{
    turn->ours = arena_get(turn->arena, (turn->calls_count + 1) * sizeof *turn->ours);
    turn->ours_calls = arena_get(turn->arena, (turn->calls_count + 1) * sizeof(void *));
    calls_judge(chat, turn);
    for (size_t i = 0; i < turn->calls_count; i++) {
        chat_call_identify(chat, turn, turn->calls[i], turn->calls[i]->offer < 0);
    }
    for (size_t i = 0; i < turn->ours_count; i++) {
        struct chat_call *call = turn->ours_calls[i];
        struct str arguments = call_settle(turn, call);
        turn->ours[i] =
            (struct surface_call){.offer = (size_t)call->offer,
                                  .id = buf_str(&call->shown_id),
                                  .name = buf_str(&call->name),
                                  .arguments = arguments,
                                  .options = chat->request.set.shown[call->offer].options};
    }
}

void chat_call_put(const struct chat_call *call, bool upwards, struct buf *out)
{
    (void)buf_puts(out, "{\"id\":"); /* overflow is asked for by the owner */
    (void)buf_put_json(out, upwards ? chat_call_up_id(call) : buf_str(&call->shown_id));
    (void)buf_puts(out, call->custom ? ",\"type\":\"custom\",\"custom\":{\"name\":"
                                     : ",\"type\":\"function\",\"function\":{\"name\":");
    (void)buf_put_json(out, buf_str(&call->name));
    (void)buf_puts(out, call->custom ? ",\"input\":\"" : ",\"arguments\":\"");
    bool settled = upwards && call->offer >= 0 && !call->dropped;
    (void)buf_append_str(out, settled ? call->history : buf_str(&call->arguments));
    (void)buf_putc(out, '"');
    (void)buf_append_str(out, buf_str(&call->function_extras));
    (void)buf_putc(out, '}');
    (void)buf_append_str(out, buf_str(&call->extras));
    (void)buf_putc(out, '}');
}
