/* One content block: what grows in it is kept apart, so that it can be shown piece by piece and put together again. */
#include "surface/arguments.h"
#include "surface/messages.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdlib.h>

#define KIND(kind) (1u << (kind))

static const struct {
    const char *delta;   /* its type */
    const char *member;  /* of the delta */
    const char *grows;   /* the member of the block */
    enum json_type type; /* of what the delta brings */
    unsigned kinds;      /* of block that it fits, besides those that we do not know */
} pieces[MESSAGES_PIECES] = {
    [MESSAGES_PIECE_CITATION] = {"citations_delta", "citation", "citations", JSON_OBJECT,
                                 KIND(MESSAGES_TEXT)},
    [MESSAGES_PIECE_TEXT] = {"text_delta", "text", "text", JSON_STRING, KIND(MESSAGES_TEXT)},
    [MESSAGES_PIECE_THINKING] = {"thinking_delta", "thinking", "thinking", JSON_STRING,
                                 KIND(MESSAGES_THINKING)},
    [MESSAGES_PIECE_SIGNATURE] = {"signature_delta", "signature", "signature", JSON_STRING,
                                  KIND(MESSAGES_THINKING)},
    [MESSAGES_PIECE_INPUT] = {"input_json_delta", "partial_json", "input", JSON_STRING,
                              KIND(MESSAGES_TOOL_USE) | KIND(MESSAGES_INPUT)},
};

static bool piece_fits(const struct messages_block *block, size_t piece)
{
    return block->kind == MESSAGES_OTHER || (pieces[piece].kinds & KIND(block->kind)) != 0;
}

static bool has_elements(struct json_value array)
{
    if (array.type != JSON_ARRAY) {
        return false;
    }
    struct json_walk walk = json_walk_of(array);
    struct json_value element;
    return json_walk_element(&walk, &element);
}

static struct str inside_of(struct json_value value) /* of a string or an array */
{
    return (struct str){value.raw.data + 1, value.raw.len - 2};
}

void messages_block_free(struct messages_block *block)
{
    if (block == NULL) {
        return;
    }
    buf_clear(&block->raw);
    for (size_t i = 0; i < MESSAGES_PIECES; i++) {
        buf_clear(&block->grown[i]);
    }
    buf_clear(&block->id);
    buf_clear(&block->name);
    buf_clear(&block->result);
    citation_reader_clear(&block->reader);
    buf_clear(&block->cited);
    buf_clear(&block->pages);
    free(block);
}

/* ---- reading ---- */

static enum messages_block_kind kind_of(struct str type)
{
    static const struct {
        const char *type;
        enum messages_block_kind kind;
    } kinds[] = {{"text", MESSAGES_TEXT},
                 {"thinking", MESSAGES_THINKING},
                 {"tool_use", MESSAGES_TOOL_USE},
                 {"server_tool_use", MESSAGES_INPUT},
                 {"mcp_tool_use", MESSAGES_INPUT}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (str_is(type, kinds[i].type)) {
            return kinds[i].kind;
        }
    }
    return MESSAGES_OTHER;
}

struct taking { /* what grows is taken out of a block */
    struct messages_block *block;
    struct json_value value;
    struct splice splice;
    struct buf added;
};

static void member_empty(struct taking *taking, const struct json_member *member, const char *name,
                         const char *empty)
{
    if (member == NULL) {
        (void)buf_printf(&taking->added, ",\"%s\":%s", name, empty); /* small: fits */
    } else if (!str_is(member->value.raw, empty)) {
        splice_add(&taking->splice, (size_t)(member->value.raw.data - taking->value.raw.data),
                   member->value.raw.len, str_of(empty));
    }
}

static void input_take(struct taking *taking, const struct json_member *member)
{
    struct messages_block *block = taking->block;
    struct buf *grown = &block->grown[MESSAGES_PIECE_INPUT];
    enum json_type type = member == NULL ? JSON_NULL : member->value.type;
    if (type == JSON_STRING) {
        (void)buf_append_str(grown, inside_of(member->value)); /* bounded by its event */
        block->original = (struct str){0};
    } else if (type == JSON_OBJECT) {
        struct json_walk walk = json_walk_of(member->value);
        struct str key;
        struct json_value value;
        if (json_walk_member(&walk, &key, &value)) {
            (void)buf_put_json_inner(grown, member->value.raw);
        }
    } else {
        block->original = (struct str){0};
    }
    block->input_came_whole = grown->len > 0;
    member_empty(taking, member, "input", "{}");
}

static void piece_take(struct taking *taking, size_t piece, const struct json_member *member)
{
    bool is_there = member != NULL && member->value.raw.len > 2;
    if (piece == MESSAGES_PIECE_INPUT) {
        input_take(taking, member);
    } else if (piece == MESSAGES_PIECE_CITATION) {
        if (is_there && has_elements(member->value)) {
            (void)buf_append_str(&taking->block->grown[piece], inside_of(member->value));
            member_empty(taking, member, pieces[piece].grows, "[]");
        }
    } else {
        bool is_text = member != NULL && member->value.type == JSON_STRING;
        bool may_miss = member == NULL && piece == MESSAGES_PIECE_SIGNATURE;
        if (is_text) {
            (void)buf_append_str(&taking->block->grown[piece], inside_of(member->value));
        } else if (!may_miss) {
            taking->block->original = (struct str){0};
        }
        if (!may_miss) {
            member_empty(taking, member, pieces[piece].grows, "\"\"");
        }
    }
}

static void block_read(struct messages_block *block, struct json_value value,
                       const struct json_member *members, size_t count, struct arena *arena)
{
    struct taking taking = {.block = block, .value = value, .splice = {.arena = arena}};
    bool *gone = arena_get(arena, count + 1);
    for (size_t i = 0; i < MESSAGES_PIECES && block->kind != MESSAGES_OTHER; i++) {
        if (piece_fits(block, i)) {
            piece_take(&taking, i, json_find(members, count, pieces[i].grows));
        }
    }
    members_edit(&taking.splice, value.raw, value, members, count, gone, buf_str(&taking.added));
    (void)splice_apply(&taking.splice, value.raw, &block->raw); /* bounded by its event */
    buf_clear(&taking.added);
    (void)buf_append_str(&block->id, json_find_text(members, count, "id", arena));
    (void)buf_append_str(&block->name, json_find_text(members, count, "name", arena));
}

struct messages_block *messages_block_new(struct json_value value, bool is_whole,
                                          struct arena *arena, struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    if (value.type != JSON_OBJECT) {
        error_set(err, SG_E_INVALID, "a content block that is no object");
        return NULL;
    }
    if (json_members(value, "a content block", arena, &members, &count, err) != SG_OK) {
        return NULL;
    }
    struct messages_block *block = check_alloc(calloc(1, sizeof *block));
    struct str type = json_find_text(members, count, "type", arena);
    block->kind = kind_of(type);
    block->dropped = type.len == 0; /* by which clients tell blocks apart */
    block->offer = -1;
    block->complete = is_whole;
    block->original = is_whole ? value.raw : (struct str){0};
    block_read(block, value, members, count, arena);
    return block;
}

/* ---- growing ---- */

static void piece_add(struct messages_block *block, size_t piece, struct json_value value)
{
    struct buf *grown = &block->grown[piece];
    struct str more = value.type == JSON_STRING ? inside_of(value) : value.raw;
    if (piece == MESSAGES_PIECE_INPUT && block->input_came_whole && more.len > 0) {
        buf_reset(grown);
        block->input_came_whole = false;
    }
    if (piece == MESSAGES_PIECE_CITATION && grown->len > 0) {
        (void)buf_putc(grown, ','); /* bounded by the turn's bytes, here and below */
    }
    (void)buf_append_str(grown, more);
}

bool messages_block_grow(struct messages_block *block, const struct json_member *delta,
                         size_t count, struct arena *arena, bool *ret_known)
{
    struct str type = json_find_text(delta, count, "type", arena);
    *ret_known = false;
    for (size_t i = 0; i < MESSAGES_PIECES; i++) {
        if (!str_is(type, pieces[i].delta)) {
            continue;
        }
        const struct json_member *member =
            json_find_type(delta, count, pieces[i].member, pieces[i].type);
        *ret_known = true;
        if (member == NULL || !piece_fits(block, i)) {
            return false;
        }
        piece_add(block, i, member->value);
        return true;
    }
    return block->kind == MESSAGES_OTHER && type.len > 0;
}

void messages_delta_put(enum messages_piece piece, struct str more, struct buf *out)
{
    bool is_text = pieces[piece].type == JSON_STRING;
    (void)buf_printf(out, "{\"type\":\"%s\",\"%s\":%s", pieces[piece].delta, pieces[piece].member,
                     is_text ? "\"" : ""); /* the owner asks for overflow */
    (void)buf_append_str(out, more);
    (void)buf_puts(out, is_text ? "\"}" : "}");
}

/* ---- arguments ---- */

struct str messages_inner_text(struct str inner, struct arena *arena)
{
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_putc(&quoted, '"'); /* as large as what is kept, which is bounded */
    (void)buf_append_str(&quoted, inner);
    (void)buf_putc(&quoted, '"');
    CHECK(!quoted.overflow);
    struct str text = json_text_of((struct json_value){JSON_STRING, buf_str(&quoted)}, arena);
    return (struct str){check_alloc(arena_copy(arena, text)), text.len};
}

struct str messages_block_input(const struct messages_block *block, struct arena *arena)
{
    return messages_inner_text(buf_str(&block->grown[MESSAGES_PIECE_INPUT]), arena);
}

/* The next character of inner text; 'x' for one that means nothing here. */
static char inner_next(const char **at, const char *end)
{
    char c = *(*at)++;
    if (c != '\\' || *at == end) {
        return c;
    }
    c = *(*at)++;
    if (c == 'u') {
        const char *digits = *at;
        uint8_t code[2];
        *at = end - digits < 4 ? end : digits + 4;
        bool is_ascii = *at == digits + 4 && hex_decode((struct str){digits, 4}, code, 2) &&
                        code[0] == 0 && code[1] < 0x80;
        return is_ascii ? (char)code[1] : 'x';
    }
    return json_escaped(c);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool messages_block_says(const struct messages_block *block)
{
    struct str text = buf_str(&block->grown[MESSAGES_PIECE_TEXT]);
    if (text.len == 0) {
        return false;
    }
    const char *at = text.data, *end = text.data + text.len;
    while (at != end) {
        if (!is_space(inner_next(&at, end))) {
            return true;
        }
    }
    return false;
}

struct str messages_input_next(struct messages_input *input, bool is_ours, struct str piece)
{
    const char *at = piece.data, *end = piece.data + piece.len, *start = at;
    while (at != end && !json_prefix_has_ended(&input->prefix) && !(is_ours && input->is_broken)) {
        const char *before = at;
        char c = inner_next(&at, end);
        if (!input->begun && c == '{' && *before == '{') { /* clients look for the very byte */
            input->begun = true;
            start = before;
        }
        if (input->begun && !input->is_broken && !json_prefix_take(&input->prefix, c)) {
            input->is_broken = true;
            at = is_ours ? before : at;
        }
    }
    return input->begun ? (struct str){start, (size_t)(at - start)} : (struct str){0};
}

/* ---- the whole ---- */

struct joining {
    const struct messages_block *block;
    struct json_text text;
    struct splice splice;
    struct buf added;
    struct arena *arena;
};

static void member_put(struct joining *joining, const char *name, struct buf *value)
{
    const struct json_member *member = json_find(joining->text.members, joining->text.count, name);
    struct str put = buf_to_arena(value, joining->arena);
    if (member != NULL) {
        splice_add(&joining->splice, (size_t)(member->value.raw.data - joining->text.raw.data),
                   member->value.raw.len, put);
    } else {
        (void)buf_printf(&joining->added, ",\"%s\":", name); /* bounded by the turn's bytes */
        (void)buf_append_str(&joining->added, put);
    }
}

static void piece_join(struct joining *joining, size_t piece)
{
    const struct json_member *member =
        json_find(joining->text.members, joining->text.count, pieces[piece].grows);
    struct str grown = buf_str(&joining->block->grown[piece]);
    struct buf value = {0};
    if (piece == MESSAGES_PIECE_INPUT) {
        struct str object;
        (void)arguments_settle(messages_block_input(joining->block, joining->arena), &object);
        (void)buf_append_str(&value, object); /* bounded by the turn's bytes, here and below */
    } else {
        bool is_text = pieces[piece].type == JSON_STRING;
        bool joins = member != NULL &&
                     (is_text ? member->value.type == JSON_STRING : has_elements(member->value));
        (void)buf_putc(&value, is_text ? '"' : '[');
        (void)buf_append_str(&value, joins ? inside_of(member->value) : STR(""));
        (void)buf_puts(&value, joins && !is_text ? "," : "");
        (void)buf_append_str(&value, grown);
        (void)buf_putc(&value, is_text ? '"' : ']');
    }
    member_put(joining, pieces[piece].grows, &value);
}

void messages_block_put(const struct messages_block *block, struct str id, struct arena *arena,
                        struct buf *out)
{
    struct joining joining = {.block = block, .splice = {.arena = arena}, .arena = arena};
    struct sg_error ignored = {0};
    bool keeps = block->original.len > 0;
    if (keeps && id.len == 0) {
        (void)buf_append_str(out, block->original); /* the owner asks for overflow */
        return;
    }
    struct str base = keeps ? block->original : buf_str(&block->raw);
    int code = json_scan(base, arena, &joining.text, &ignored);
    CHECK(code == SG_OK); /* it was read before */
    for (size_t i = 0; i < MESSAGES_PIECES && !keeps; i++) {
        if (block->grown[i].len > 0) {
            piece_join(&joining, i);
        }
    }
    if (id.len > 0) {
        struct buf value = {0};
        (void)buf_put_json(&value, id); /* small: fits */
        member_put(&joining, "id", &value);
    }
    bool *gone = arena_get(arena, joining.text.count + 1);
    members_edit(&joining.splice, base, joining.text.root, joining.text.members, joining.text.count,
                 gone, buf_str(&joining.added));
    (void)splice_apply(&joining.splice, base, out);
    buf_clear(&joining.added);
}
