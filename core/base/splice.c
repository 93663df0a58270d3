/* Edits of a JSON text by splicing: what is not touched stays byte for byte. */
#include "base/json.h"

#include "base/check.h"

/* At one place insertions come before what is cut there. */
static bool edit_is_before(const struct splice_edit *a, const struct splice_edit *b)
{
    return a->at != b->at ? a->at < b->at : a->cut == 0 && b->cut > 0;
}

static void edits_grow(struct splice *splice)
{
    CHECK(splice->arena != NULL);
    size_t cap = splice->cap == 0 ? 8 : splice->cap * 2;
    struct splice_edit *edits = check_alloc(arena_alloc(splice->arena, cap * sizeof *edits));
    if (splice->count > 0) {
        memcpy(edits, splice->edits, splice->count * sizeof *edits);
    }
    splice->edits = edits;
    splice->cap = cap;
}

void splice_add(struct splice *splice, size_t at, size_t cut, struct str put)
{
    if (splice->count == splice->cap) {
        edits_grow(splice);
    }
    struct splice_edit edit = {at, cut, put};
    size_t i = splice->count++;
    for (; i > 0 && edit_is_before(&edit, &splice->edits[i - 1]); i--) {
        splice->edits[i] = splice->edits[i - 1];
    }
    splice->edits[i] = edit;
}

/* One member or element: its bytes from the key or value on to the value's end. */
struct part {
    const char *start, *end;
};

static struct part part_of_member(const void *members, size_t i)
{
    const struct json_member *member = (const struct json_member *)members + i;
    return (struct part){member->key_raw.data, member->value.raw.data + member->value.raw.len};
}

static struct part part_of_element(const void *elements, size_t i)
{
    struct str raw = ((const struct json_value *)elements + i)->raw;
    return (struct part){raw.data, raw.data + raw.len};
}

/* Cuts the parts from `first` to before `after`: with the comma behind them where a part follows, else with the comma in
 * front; none if nothing is left. */
static void run_cut(struct splice *splice, struct str text, const void *parts, size_t count,
                    struct part (*part_of)(const void *, size_t), size_t first, size_t after)
{
    const char *start = part_of(parts, first).start, *end = part_of(parts, after - 1).end;
    if (after < count) {
        end = part_of(parts, after).start;
    } else if (first > 0) {
        start = part_of(parts, first - 1).end;
    }
    CHECK(start >= text.data);
    CHECK(end <= text.data + text.len);
    splice_add(splice, (size_t)(start - text.data), (size_t)(end - start), (struct str){0});
}

static void parts_cut(struct splice *splice, struct str text, const void *parts, size_t count,
                      struct part (*part_of)(const void *, size_t), const bool *gone)
{
    for (size_t i = 0; i < count;) {
        if (!gone[i]) {
            i++;
            continue;
        }
        size_t first = i;
        while (i < count && gone[i]) {
            i++;
        }
        run_cut(splice, text, parts, count, part_of, first, i);
    }
}

void splice_cut_members(struct splice *splice, struct str text, const struct json_member *members,
                        size_t count, const bool *gone)
{
    parts_cut(splice, text, members, count, part_of_member, gone);
}

void splice_cut_elements(struct splice *splice, struct str text, struct json_value array,
                         const struct json_value *elements, size_t count, const bool *gone)
{
    CHECK(array.type == JSON_ARRAY);
    parts_cut(splice, text, elements, count, part_of_element, gone);
}

bool splice_apply(const struct splice *splice, struct str text, struct buf *out)
{
    size_t done = 0, len = text.len;
    for (size_t i = 0; i < splice->count; i++) {
        CHECK(splice->edits[i].cut <= len);
        len += splice->edits[i].put.len - splice->edits[i].cut;
    }
    if (buf_reserve(out, len) == NULL) {
        return false;
    }
    for (size_t i = 0; i < splice->count; i++) {
        const struct splice_edit *edit = &splice->edits[i];
        CHECK(edit->at >= done);
        CHECK(edit->at + edit->cut <= text.len);
        (void)buf_append(out, text.data + done, edit->at - done); /* there is room */
        (void)buf_append_str(out, edit->put);
        done = edit->at + edit->cut;
    }
    return buf_append(out, text.data + done, text.len - done);
}
