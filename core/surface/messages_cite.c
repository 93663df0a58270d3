/* Citations: where a text names pages that the searches of this answer found, the client is told so in its block. Its text
 * is never held back for that: in a stream a citation follows the words that it belongs to.
 *
 * They are the client's alone. In later turns the text goes up as the upstream said it, and what comes back in a history
 * loses them again (messages_history.c): a vendor takes none whose `encrypted_index` it did not make. */
#include "surface/messages.h"

#include "base/utf8.h"

enum {
    CITED_CHARACTERS_MAX = 150, /* of an excerpt, as hosted searches have it */
    ANSWER_CITATIONS_MAX = 1000 /* of all its blocks */
};

static struct str excerpt(struct str snippet)
{
    size_t at = 0;
    for (size_t count = 0; count < CITED_CHARACTERS_MAX && at < snippet.len; count++) {
        size_t len = utf8_length(snippet.data + at, snippet.len - at);
        at += len == 0 ? 1 : len;
    }
    return (struct str){snippet.data, at};
}

static void citation_put(const struct cited_page *page, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"web_search_result_location\",\"url\":"); /* owners ask */
    (void)buf_put_json(out, page->url);
    (void)buf_puts(out, ",\"title\":");
    (void)buf_put_json(out, page->title);
    (void)buf_puts(out, ",\"cited_text\":");
    (void)buf_put_json(out, excerpt(page->snippet));
    (void)buf_puts(out, ",\"encrypted_index\":\"\"}");
}

/* A block cites a page once, however often it names it: its places in the text are not told. */
static bool is_cited(struct messages_block *block, const struct cited_page *page)
{
    for (size_t at = 0; at < block->pages.len; at += sizeof(void *)) {
        if (memcmp(block->pages.data + at, &page, sizeof(void *)) == 0) {
            return true;
        }
    }
    return !buf_append(&block->pages, &page, sizeof(void *)); /* no memory: it is not cited */
}

static void citation_take(struct messages *m, struct messages_block *block,
                          const struct cited_page *page, struct buf *out)
{
    if (m->citations == ANSWER_CITATIONS_MAX || is_cited(block, page)) {
        return;
    }
    m->citations++;
    m->changed = true;
    BUF_CLEANUP struct buf citation = {0};
    citation_put(page, &citation); /* pages are bounded */
    (void)buf_puts(&block->cited, block->cited.len > 0 ? "," : "");
    (void)buf_append_str(&block->cited, buf_str(&citation));
    if (m->request.wants_stream) {
        messages_delta_event_put(block->client_index, MESSAGES_PIECE_CITATION, buf_str(&citation),
                                 out);
    }
}

void messages_cite(struct messages *m, struct messages_block *block, bool ended, struct buf *out)
{
    const struct buf *grown = &block->grown[MESSAGES_PIECE_TEXT];
    size_t end = m->request.wants_stream ? block->given[MESSAGES_PIECE_TEXT] : grown->len;
    if (block->kind != MESSAGES_TEXT || m->pages.count == 0 || (end == block->cited_at && !ended)) {
        return;
    }
    struct arena *scratch = arena_new(0);
    BUF_CLEANUP struct buf found = {0};
    struct str more = messages_inner_text(
        (struct str){grown->data + block->cited_at, end - block->cited_at}, scratch);
    block->cited_at = end;
    block->reader.pages = &m->pages;
    citation_reader_feed(&block->reader, more, ended, &found);
    for (size_t at = 0; at < found.len; at += sizeof(struct citation)) {
        struct citation citation;
        memcpy(&citation, found.data + at, sizeof citation);
        citation_take(m, block, citation.page, out);
    }
    arena_free(scratch);
}

void messages_citations_put(struct str block, struct str cited, struct arena *arena,
                            struct buf *out)
{
    struct json_text text;
    struct sg_error ignored = {0};
    if (json_scan(block, arena, &text, &ignored) != SG_OK || text.root.type != JSON_OBJECT) {
        (void)buf_append_str(out, block); /* the owner asks for overflow */
        return;
    }
    const struct json_member *member = json_find(text.members, text.count, "citations");
    struct splice splice = {.arena = arena};
    struct buf list = {0}, added = {0};
    bool is_list = member != NULL && member->value.type == JSON_ARRAY;
    struct str before =
        is_list ? str_trim((struct str){member->value.raw.data + 1, member->value.raw.len - 2})
                : STR("");
    (void)buf_putc(&list, '[');
    (void)buf_append_str(&list, before);
    (void)buf_puts(&list, before.len > 0 && cited.len > 0 ? "," : "");
    (void)buf_append_str(&list, cited);
    (void)buf_putc(&list, ']');
    struct str put = buf_to_arena(&list, arena);
    if (member != NULL) {
        splice_add(&splice, (size_t)(member->value.raw.data - block.data), member->value.raw.len,
                   put);
    } else {
        (void)buf_puts(&added, ",\"citations\":");
        (void)buf_append_str(&added, put);
    }
    bool *gone = arena_get(arena, text.count + 1);
    members_edit(&splice, block, text.root, text.members, text.count, gone, buf_str(&added));
    (void)splice_apply(&splice, block, out);
    buf_clear(&added);
}

/* ---- from a history ---- */

bool messages_holds_citation(struct str raw)
{
    static const char key[] = "\"encrypted_index\"";
    const char *end = raw.data + raw.len, *at = raw.data;
    while (raw.len > 0 && (at = memmem(at, (size_t)(end - at), key, sizeof key - 1)) != NULL) {
        at += sizeof key - 1;
        struct str rest = str_trim((struct str){at, (size_t)(end - at)});
        if (rest.len > 0 && rest.data[0] == ':' &&
            str_starts(str_trim((struct str){rest.data + 1, rest.len - 1}), STR("\"\""))) {
            return true;
        }
    }
    return false;
}

static bool is_ours(struct json_value citation, struct arena *arena)
{
    return citation.type == JSON_OBJECT && messages_holds_citation(citation.raw) &&
           str_is(messages_text_of(citation, "type", arena), "web_search_result_location");
}

struct str messages_citations_cut(struct json_value block, struct arena *arena)
{
    struct json_member *members = NULL;
    size_t count = 0, citations = 0, ours = 0;
    struct sg_error ignored = {0};
    if (block.type != JSON_OBJECT || !messages_holds_citation(block.raw) ||
        json_members(block, "", arena, &members, &count, &ignored) != SG_OK) {
        return block.raw;
    }
    const struct json_member *member = json_find_type(members, count, "citations", JSON_ARRAY);
    if (member == NULL || !str_is(json_find_text(members, count, "type", arena), "text")) {
        return block.raw;
    }
    struct json_value *elements = json_elements(member->value, arena, &citations);
    bool *gone = arena_get(arena, citations + 1), *members_gone = arena_get(arena, count + 1);
    for (size_t i = 0; i < citations; i++) {
        gone[i] = is_ours(elements[i], arena);
        ours += gone[i];
    }
    struct splice splice = {.arena = arena};
    members_gone[member - members] = ours == citations;
    if (ours < citations) {
        splice_cut_elements(&splice, block.raw, member->value, elements, citations, gone);
    } else {
        splice_cut_members(&splice, block.raw, members, count, members_gone);
    }
    struct buf out = {0};
    (void)splice_apply(&splice, block.raw, &out); /* it became shorter */
    return buf_to_arena(&out, arena);
}
