/* What is noted at a text: the annotations that the upstream gives it and, where it names pages that searches of this
 * request found, ours. Both stand in one row, in the order in which they come; what goes up again has the upstream's
 * alone. */
#include "surface/responses.h"

#include "base/check.h"

enum { CITED_BYTES_MAX = 256 * 1024 }; /* of all citations in one answer; more are left out */

static void row_add(struct responses_part *part, struct str annotation)
{
    (void)buf_puts(&part->annotations, part->annotations_count > 0 ? "," : ""); /* bounded before */
    (void)buf_append_str(&part->annotations, annotation);
    part->annotations_count++;
}

/* ---- the upstream's ---- */

int responses_annotation_keep(struct responses *r, struct responses_part *part,
                              struct str annotation, struct sg_error *err)
{
    if (part->annotations_theirs == RESPONSES_ANNOTATIONS_MAX) {
        return error_set(err, SG_E_LIMIT, "more than %d annotations in a part",
                         RESPONSES_ANNOTATIONS_MAX);
    }
    int code = responses_keep_bytes(r->turn, annotation.len + 1, err);
    if (code == SG_OK) {
        row_add(part, annotation);
        part->annotations_theirs++;
    }
    return code;
}

int responses_annotations_take(struct responses *r, struct responses_part *part,
                               struct json_value list, struct sg_error *err)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value annotation;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &annotation); i++) {
        if (i >= part->annotations_theirs) {
            code = responses_annotation_keep(r, part, annotation.raw, err);
        }
    }
    return code;
}

/* ---- ours ---- */

static void citation_add(struct responses *r, struct responses_part *part,
                         const struct citation *citation)
{
    const struct cited_page *page = citation->page;
    BUF_CLEANUP struct buf out = {0};
    (void)buf_printf(&out, "{\"type\":\"url_citation\",\"start_index\":%zu,\"end_index\":%zu,",
                     citation->start, citation->end); /* bounded by the page, likewise below */
    (void)buf_puts(&out, "\"title\":");
    (void)buf_put_json(&out, page->title.len > 0 ? page->title : page->url);
    (void)buf_puts(&out, ",\"url\":");
    (void)buf_put_json(&out, page->url);
    (void)buf_putc(&out, '}');
    if (out.overflow || out.len > CITED_BYTES_MAX - r->cited_bytes) {
        return;
    }
    r->cited_bytes += out.len;
    (void)buf_append(&part->own, &part->annotations_count, sizeof part->annotations_count);
    row_add(part, buf_str(&out));
}

void responses_citations_read(struct responses *r, struct responses_part *part, bool ended)
{
    if (r->pages.count == 0 || part->kind != RESPONSES_TEXT || part->is_read) {
        return;
    }
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf found = {0};
    struct citation citation;
    struct str more = responses_inner_next(&part->text, &part->text_read, ended, arena);
    part->is_read = ended;
    part->reader.pages = &r->pages;
    if (more.len > 0 || ended) {
        citation_reader_feed(&part->reader, more, ended, &found);
    }
    for (size_t at = 0; at < found.len; at += sizeof citation) {
        memcpy(&citation, found.data + at, sizeof citation);
        citation_add(r, part, &citation);
    }
    arena_free(arena);
}

/* ---- writing ---- */

/* Is the annotation of this place ours? `next` goes on from place to place. */
static bool is_own(const struct responses_part *part, size_t place, size_t *next)
{
    size_t own;
    if (*next == part->own.len) {
        return false;
    }
    memcpy(&own, part->own.data + *next, sizeof own);
    *next += own == place ? sizeof own : 0;
    return own == place;
}

static void theirs_put(const struct responses_part *part, const struct buf *row, struct buf *out)
{
    struct json_walk walk = json_walk_of((struct json_value){JSON_ARRAY, buf_str(row)});
    struct json_value annotation;
    bool first = true;
    size_t next = 0;
    (void)buf_putc(out, '['); /* as large as the row */
    for (size_t place = 0; json_walk_element(&walk, &annotation); place++) {
        if (!is_own(part, place, &next)) {
            (void)buf_puts(out, first ? "" : ",");
            (void)buf_append_str(out, annotation.raw);
            first = false;
        }
    }
    (void)buf_putc(out, ']');
}

void responses_annotations_put(const struct responses_part *part, bool upwards, struct buf *out)
{
    BUF_CLEANUP struct buf row = {0};
    (void)buf_putc(&row, '['); /* as large as what is kept */
    (void)buf_append_str(&row, buf_str(&part->annotations));
    (void)buf_putc(&row, ']');
    if (upwards && part->own.len > 0) {
        theirs_put(part, &row, out);
    } else {
        (void)buf_append_str(out, buf_str(&row));
    }
}
