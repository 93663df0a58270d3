/* Citations in a model's text. What may begin one is held until it is clear whether it does; the hold is bounded, and so
 * are the places that are looked at, since the text may be anything. */
#include "surface/citations.h"

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

enum {
    URL_BYTES_MAX = 2048,
    LABEL_BYTES_MAX = 512,         /* of a Markdown link */
    TITLE_BYTES_MAX = 256,         /* behind its URL */
    TRIED_MAX = 2000,              /* of a text … */
    COMPARED_BYTES_MAX = 64 << 20, /* … and of an answer */
    MORE = -1                      /* in the place of a length: it depends on what comes */
};

/* ---- pages ---- */

static void page_add(struct cited_pages *pages, struct str hit, struct arena *arena)
{
    struct json_text text;
    struct sg_error ignored = {0};
    if (json_scan(hit, arena, &text, &ignored) != SG_OK || text.root.type != JSON_OBJECT) {
        return; /* the core hands over none such */
    }
    if (pages->count == pages->cap) {
        size_t cap = pages->cap == 0 ? 16 : 2 * pages->cap;
        struct cited_page *more = arena_get(arena, cap * sizeof *more);
        if (pages->count > 0) {
            memcpy(more, pages->pages, pages->count * sizeof *more);
        }
        pages->pages = more;
        pages->cap = cap;
    }
    pages->pages[pages->count++] =
        (struct cited_page){.url = json_find_text(text.members, text.count, "url", arena),
                            .title = json_find_text(text.members, text.count, "title", arena),
                            .snippet = json_find_text(text.members, text.count, "snippet", arena),
                            .date = json_find_text(text.members, text.count, "date", arena)};
}

void cited_pages_add(struct cited_pages *pages, const struct surface_result *result,
                     struct arena *arena)
{
    size_t before = pages->count;
    for (size_t i = 0; i < result->outputs_count && pages->count < CITED_PAGES_MAX; i++) {
        const struct surface_output *output = &result->outputs[i];
        char *copy = output->kind == SG_OUT_HIT ? arena_copy(arena, output->data) : NULL;
        if (copy != NULL) { /* else the arena is full: it cannot be cited then */
            page_add(pages, (struct str){copy, output->data.len}, arena);
        }
    }
    pages->searches += pages->count > before;
}

/* ---- a URL ---- */

static bool is_one_of(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_url_byte(char c)
{
    return c > ' ' && c < 0x7F && !is_one_of("\"<>\\^`{|}", c);
}

/* Punctuation that ends a sentence or a mark, if nothing of a URL comes behind it. */
static bool may_trail(char c)
{
    return is_one_of(".,;:!?'*_~", c);
}

/* Does a URL that ends with `last` end here? */
static bool ends_url(char last, struct str rest)
{
    size_t at = 0;
    if (rest.len == 0) {
        return true;
    }
    if ((rest.data[0] & 0x80) !=
        0) { /* letters of other scripts go on with a path, and end a word */
        return (last & 0x80) == 0 && last != '/';
    }
    while (at < rest.len && may_trail(rest.data[at])) {
        at++;
    }
    return at == rest.len || !is_url_byte(rest.data[at]) || rest.data[at] == ')' ||
           rest.data[at] == ']' || (at > 0 && (rest.data[at] == '(' || rest.data[at] == '['));
}

static struct str str_from(struct str text, size_t at)
{
    return (struct str){text.data + at, text.len - at};
}

static size_t fragment_length(struct str text)
{
    size_t len = 1;
    while (len < text.len && is_url_byte(text.data[len]) && !is_one_of("()[]", text.data[len])) {
        len++;
    }
    while (len > 1 && may_trail(text.data[len - 1])) {
        len--;
    }
    return len;
}

/* Bytes of the text that name this page, which it begins with; 0: it does not. */
static size_t page_length(const struct cited_page *page, struct str text)
{
    struct str url = page->url;
    bool has_slash = url.len > 0 && url.data[url.len - 1] == '/';
    struct str bare = {url.data, url.len - has_slash};
    if (bare.len == 0 || !str_starts(text, bare)) {
        return 0;
    }
    size_t len = bare.len;
    len += len < text.len && text.data[len] == '/' &&
           (has_slash || ends_url('/', str_from(text, len + 1)));
    if (len < text.len && text.data[len] == '#') {
        return len + fragment_length(str_from(text, len));
    }
    return ends_url(text.data[len - 1], str_from(text, len)) ? len : 0;
}

/* The page that the text begins with, the longest URL first; 0: none. */
static int url_length(const struct citation_reader *reader, struct str text,
                      const struct cited_page **ret)
{
    size_t best = 0;
    text.len =
        text.len < URL_BYTES_MAX + TITLE_BYTES_MAX ? text.len : URL_BYTES_MAX + TITLE_BYTES_MAX;
    for (size_t i = 0; i < reader->pages->count; i++) {
        const struct cited_page *page = &reader->pages->pages[i];
        reader->pages->compared += 32 + (text.len < page->url.len ? text.len : page->url.len);
        size_t len = page_length(page, text);
        if (len > best) {
            best = len;
            *ret = page;
        }
    }
    return (int)best;
}

/* ---- what may be a citation: its bytes, 0 or MORE ---- */

static bool is_http(struct str text)
{
    return str_starts(text, STR("http://")) || str_starts(text, STR("https://"));
}

/* Up to white space: what comes behind decides where a URL ends. */
static bool run_ends(struct str text, size_t max)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] <= ' ' || i == max) {
            return true;
        }
    }
    return false;
}

static int bare_url(const struct citation_reader *reader, struct str text, bool ended,
                    const struct cited_page **ret)
{
    static const char *const open = " \t\r\n([{<>\"'`*_~|:,;-";
    bool is_word =
        (reader->before & 0x80) == 0 && reader->before != '\0' && !is_one_of(open, reader->before);
    if (is_word) {
        return 0; /* part of a longer one, or of none */
    }
    struct str start = {"https://", text.len < 8 ? text.len : 8};
    if (!ended && text.len < 8 && (str_starts(start, text) || str_starts(STR("http://"), text))) {
        return MORE;
    }
    if (!is_http(text)) {
        return 0;
    }
    return ended || run_ends(text, URL_BYTES_MAX) ? url_length(reader, text, ret) : MORE;
}

/* Behind white space and a title in quotes, as Markdown has them behind the URL of a link. */
static int title_length(struct str text, bool ended)
{
    size_t at = 0;
    while (at < text.len && (text.data[at] == ' ' || text.data[at] == '\n')) {
        at++;
    }
    if (at == 0 || at == text.len || (text.data[at] != '"' && text.data[at] != '\'')) {
        return at > 0 && at == text.len && !ended ? MORE : (int)at;
    }
    char quote = text.data[at++];
    while (at < text.len && text.data[at] != quote && at < TITLE_BYTES_MAX) {
        at++;
    }
    return at < text.len && text.data[at] == quote ? (int)at + 1
           : at == text.len && !ended              ? MORE
                                                   : 0;
}

/* "(URL)" of a link. */
static int target_length(const struct citation_reader *reader, struct str text, bool ended,
                         const struct cited_page **ret)
{
    size_t at = 1;
    bool is_pointed = at < text.len && text.data[at] == '<';
    at += is_pointed;
    if (!ended && !run_ends(str_from(text, at), URL_BYTES_MAX) &&
        memchr(text.data + at, ')', text.len - at) == NULL) {
        return MORE;
    }
    int url = url_length(reader, str_from(text, at), ret);
    if (url == 0) {
        return 0;
    }
    at += (size_t)url;
    at += is_pointed && at < text.len && text.data[at] == '>';
    int title = title_length(str_from(text, at), ended);
    if (title == MORE) {
        return MORE;
    }
    at += (size_t)title;
    if (at == text.len) {
        return ended ? 0 : MORE;
    }
    return text.data[at] == ')' ? (int)at + 1 : 0;
}

/* "[2]": the label has `len` bytes. */
static const struct cited_page *numbered_page(const struct citation_reader *reader,
                                              struct str label)
{
    size_t number = 0;
    if (label.len == 0 || label.len > 3 || reader->pages->searches != 1) {
        return NULL;
    }
    for (size_t i = 0; i < label.len; i++) {
        if (label.data[i] < '0' || label.data[i] > '9') {
            return NULL;
        }
        number = number * 10 + (size_t)(label.data[i] - '0');
    }
    return number >= 1 && number <= reader->pages->count ? &reader->pages->pages[number - 1] : NULL;
}

static int bracket(const struct citation_reader *reader, struct str text, bool ended,
                   const struct cited_page **ret)
{
    size_t at = 1;
    while (at < text.len && at <= LABEL_BYTES_MAX && !is_one_of("[]", text.data[at])) {
        at++;
    }
    if (at == text.len || at > LABEL_BYTES_MAX || text.data[at] == '[') {
        return at == text.len && at <= LABEL_BYTES_MAX && !ended ? MORE : 0;
    }
    if (at + 1 == text.len && !ended) {
        return MORE;
    }
    if (at + 1 < text.len && text.data[at + 1] == '(') {
        int target = target_length(reader, str_from(text, at + 1), ended, ret);
        return target > 0 ? (int)at + 1 + target : target;
    }
    *ret = numbered_page(reader, (struct str){text.data + 1, at - 1});
    return *ret != NULL ? (int)at + 1 : 0;
}

/* "([label](URL))" */
static int parenthesis(const struct citation_reader *reader, struct str text, bool ended,
                       const struct cited_page **ret)
{
    if (text.len == 1) {
        return ended ? 0 : MORE;
    }
    if (text.data[1] != '[') {
        return 0;
    }
    int link = bracket(reader, str_from(text, 1), ended, ret);
    bool is_link = link > 0 && text.data[link] == ')';
    if (link == MORE || !is_link) {
        return link == MORE ? MORE : 0;
    }
    size_t end = 1 + (size_t)link;
    if (end == text.len) {
        return ended ? 0 : MORE;
    }
    return text.data[end] == ')' ? (int)end + 1 : 0;
}

static int citation_length(struct citation_reader *reader, struct str text, bool ended,
                           const struct cited_page **ret)
{
    int len = text.data[0] == '('   ? parenthesis(reader, text, ended, ret)
              : text.data[0] == '[' ? bracket(reader, text, ended, ret)
                                    : bare_url(reader, text, ended, ret);
    reader->tried += len != MORE;
    return len;
}

/* ---- reading ---- */

static size_t characters(struct str text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; count++) {
        size_t len = utf8_length(text.data + at, text.len - at);
        at += len == 0 ? 1 : len;
    }
    return count;
}

static void pass(struct citation_reader *reader, struct str text)
{
    reader->at += characters(text);
    reader->before = text.len > 0 ? text.data[text.len - 1] : reader->before;
}

/* The bytes in front of the next place that may begin a citation, whole characters only. */
static size_t plain_length(struct str text, bool ended)
{
    size_t at = 0;
    while (at < text.len && !is_one_of("([h", text.data[at])) {
        size_t len = utf8_length(text.data + at, text.len - at);
        if (len == 0 && !ended && text.len - at < 4) {
            break; /* the rest of the character is yet to come */
        }
        at += len == 0 ? 1 : len;
    }
    return at;
}

static bool is_done(const struct citation_reader *reader)
{
    return reader->pages->count == 0 || reader->count == CITATIONS_PER_TEXT_MAX ||
           reader->tried >= TRIED_MAX || reader->pages->compared >= COMPARED_BYTES_MAX;
}

static void found(struct citation_reader *reader, struct str span, const struct cited_page *page,
                  struct buf *ret)
{
    struct citation citation = {.start = reader->at, .page = page};
    pass(reader, span);
    citation.end = reader->at;
    reader->count += buf_append(ret, &citation, sizeof citation); /* no memory: it is not cited */
}

/* Bytes that are decided, from the start of the text on. */
static size_t decide(struct citation_reader *reader, struct str text, bool ended, struct buf *ret)
{
    size_t at = 0;
    while (at < text.len) {
        size_t plain = plain_length(str_from(text, at), ended);
        pass(reader, (struct str){text.data + at, plain});
        at += plain;
        if (at == text.len || !is_one_of("([h", text.data[at])) {
            break;
        }
        const struct cited_page *page = NULL;
        int len = is_done(reader) ? 0 : citation_length(reader, str_from(text, at), ended, &page);
        if (len == MORE) {
            break;
        }
        if (len > 0) {
            found(reader, (struct str){text.data + at, (size_t)len}, page, ret);
        } else {
            pass(reader, (struct str){text.data + at, 1});
        }
        at += len > 0 ? (size_t)len : 1;
    }
    return at;
}

void citation_reader_feed(struct citation_reader *reader, struct str more, bool ended,
                          struct buf *ret)
{
    bool is_held = reader->held.len > 0;
    if (is_held && !buf_append_str(&reader->held, more)) {
        return;
    }
    struct str text = is_held ? buf_str(&reader->held) : more;
    size_t decided = decide(reader, text, ended, ret);
    if (is_held) {
        buf_consume(&reader->held, decided);
    } else {
        (void)buf_append_str(&reader->held, str_from(text, decided)); /* bounded by decide() */
    }
}

void citation_reader_clear(struct citation_reader *reader)
{
    buf_clear(&reader->held);
}
