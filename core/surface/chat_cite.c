/* Where the answer names pages that its searches found. Each turn's text is read when the turn has ended, with what was
 * found until then; places are counted in the content of the whole answer, as the client has it. */
#include "surface/chat.h"

#include "base/check.h"

void chat_pages_note(struct chat *chat, const struct surface_result *result)
{
    cited_pages_add(&chat->pages, result, chat->arena);
}

/* Reads more of the content; nothing of it goes on in what is read next. */
static void inner_read(struct chat *chat, struct str inner)
{
    struct arena *scratch = arena_new(0);
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_putc(&quoted, '"'); /* as large as the text, which is bounded */
    (void)buf_append_str(&quoted, inner);
    (void)buf_putc(&quoted, '"');
    CHECK(!quoted.overflow);
    struct str text = json_text_of((struct json_value){JSON_STRING, buf_str(&quoted)}, scratch);
    citation_reader_feed(&chat->reader, text, true, &chat->citations);
    arena_free(scratch);
}

/* What was said before anything was found counts, but cites nothing. */
static void reader_begin(struct chat *chat)
{
    struct cited_pages none = {0};
    chat->reader.pages = &none;
    inner_read(chat, buf_str(&chat->before));
    chat->reader.pages = &chat->pages;
}

void chat_text_cite(struct chat *chat)
{
    const struct chat_turn *turn = chat->last;
    CHECK(turn != NULL);
    if (chat->pages.count == 0 || !turn->text_given) {
        return;
    }
    if (chat->reader.pages == NULL) {
        reader_begin(chat);
    }
    citation_reader_feed(&chat->reader, chat->before.len > 0 ? STR("\n\n") : STR(""), true,
                         &chat->citations);
    inner_read(chat, buf_str(&turn->text));
}

static void citation_put(const struct citation *citation, struct buf *out)
{
    const struct cited_page *page = citation->page;
    (void)buf_printf(out,
                     "{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":%zu,"
                     "\"end_index\":%zu,\"title\":",
                     citation->start, citation->end); /* the owner asks for overflow */
    (void)buf_put_json(out, page->title.len > 0 ? page->title : page->url);
    (void)buf_puts(out, ",\"url\":");
    (void)buf_put_json(out, page->url);
    (void)buf_puts(out, "}}");
}

bool chat_annotations_put(const struct chat *chat, struct buf *out)
{
    struct citation citation;
    size_t count = chat->citations.len / sizeof citation;
    for (size_t i = 0; i < count; i++) {
        memcpy(&citation, chat->citations.data + i * sizeof citation, sizeof citation);
        (void)buf_puts(out, i > 0 ? "," : ""); /* the owner asks for overflow */
        citation_put(&citation, out);
    }
    return count > 0;
}
