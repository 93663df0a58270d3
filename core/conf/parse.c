/* YAML text → tree with positions, from libyaml's events. What YAML has and configuration needs not (aliases, tags, merge
 * keys, several documents) is refused by name; one mistake does not hide the next, unless the text cannot be read on. */
#include "conf/internal.h"

#include "base/check.h"
#include "base/owner.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    struct str text;
    struct arena *arena;
    struct conf_problems *problems;
};

/* Line and column of a byte, from 1; columns count characters, as libyaml does. */
static struct conf_node position_of(struct str text, size_t at)
{
    struct conf_node node = {.line = 1, .column = 1};
    for (size_t i = 0; i < at && i < text.len; i++) {
        if (text.data[i] == '\n') {
            node.line++;
            node.column = 1;
        } else if (((unsigned char)text.data[i] & 0xC0) != 0x80) {
            node.column++;
        }
    }
    return node;
}

static struct conf_node mark_node(yaml_mark_t mark)
{
    return (struct conf_node){.line = (int)mark.line + 1, .column = (int)mark.column + 1};
}

/* The text of a line, from 1. */
static struct str line_text(struct str text, size_t line)
{
    size_t start = 0;
    for (size_t i = 0; line > 1 && i < text.len; i++) {
        if (text.data[i] == '\n') {
            line--;
            start = i + 1;
        }
    }
    const char *data = text.data + start;
    const char *end = memchr(data, '\n', text.len - start);
    return (struct str){data, end == NULL ? text.len - start : (size_t)(end - data)};
}

/* The two slips that libyaml's own words do not lead to. */
static const char *hint(const struct reader *reader, size_t line)
{
    if (line > (size_t)CONF_BYTES_MAX || reader->text.len == 0) {
        return "";
    }
    struct str text = line_text(reader->text, line);
    size_t i = 0;
    while (i < text.len && text.data[i] == ' ') {
        i++;
    }
    if (i < text.len && text.data[i] == '\t') {
        return "; indentation must be spaces, not tabs";
    }
    if (memmem(text.data, text.len, "${", 2) != NULL) {
        return "; within { } and [ ] a ${NAME} must stand in quotes";
    }
    return "";
}

static void report_unreadable(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *what = parser->problem != NULL ? parser->problem : "unreadable";
    CHECK(parser->error != YAML_MEMORY_ERROR);
    if (parser->error == YAML_READER_ERROR) { /* has no mark */
        struct conf_node at = position_of(reader->text, parser->problem_offset);
        conf_problem(reader->problems, &at, "not valid YAML: %s", what);
        return;
    }
    struct conf_node at = mark_node(parser->problem_mark);
    const char *advice = hint(reader, (size_t)at.line);
    if (parser->context == NULL) {
        conf_problem(reader->problems, &at, "not valid YAML: %s%s", what, advice);
        return;
    }
    conf_problem(reader->problems, &at, "not valid YAML: %s, %s that starts at line %zu%s", what,
                 parser->context, parser->context_mark.line + 1, advice);
}

/* The caller deletes the event. */
static bool event_next(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event)) {
        return true;
    }
    report_unreadable(reader);
    return false;
}

static struct conf_node *node_new(struct reader *reader, enum conf_type type,
                                  const yaml_event_t *event)
{
    struct conf_node *node = arena_get(reader->arena, sizeof *node);
    *node = mark_node(event->start_mark);
    node->type = type;
    node->text = "";
    return node;
}

static void refuse_decoration(struct reader *reader, const struct conf_node *at,
                              const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL) {
        conf_problem(reader->problems, at, "anchors (%s) are not supported; write the value out",
                     text_shown(arena_printf(reader->arena, "&%s", anchor), reader->arena));
    }
    if (tag != NULL) {
        conf_problem(reader->problems, at, "tags (%s) are not supported; write the value alone",
                     text_shown((const char *)tag, reader->arena));
    }
}

static struct conf_node *scalar_read(struct reader *reader, const yaml_event_t *event)
{
    struct conf_node *node = node_new(reader, CONF_SCALAR, event);
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    refuse_decoration(reader, node, event->data.scalar.anchor, event->data.scalar.tag);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text.data, '\0', text.len) != NULL) {
        conf_problem(reader->problems, node, "a text may not hold a NUL character ('\\0')");
        node->reported = true;
        return node;
    }
    node->text = arena_copy(reader->arena, text);
    return node;
}

static struct conf_node *alias_read(struct reader *reader, const yaml_event_t *event)
{
    struct conf_node *node = node_new(reader, CONF_SCALAR, event);
    conf_problem(
        reader->problems, node, "aliases (%s) are not supported; write the value out",
        text_shown(arena_printf(reader->arena, "*%s", event->data.alias.anchor), reader->arena));
    node->reported = true;
    return node;
}

/* Room for one more; what was grown out of stays in the arena, less in all than what is used. */
static struct conf_node **room(struct arena *arena, struct conf_node **nodes, size_t count)
{
    if (count != 0 && (count < 4 || (count & (count - 1)) != 0)) {
        return nodes;
    }
    size_t cap = count < 4 ? 4 : 2 * count;
    struct conf_node **more = arena_get(arena, cap * sizeof(struct conf_node *));
    if (count > 0) {
        memcpy(more, nodes, count * sizeof(struct conf_node *));
    }
    return more;
}

static struct conf_node *node_read(struct reader *, const yaml_event_t *first, size_t depth);

/* The node that starts with the next event, or NULL: at the end of the list or map (*ret_end) or of what can be read. */
static struct conf_node *child_read(struct reader *reader, size_t depth, bool *ret_end)
{
    yaml_event_t event;
    if (!event_next(reader, &event)) {
        return NULL;
    }
    *ret_end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    struct conf_node *node = *ret_end ? NULL : node_read(reader, &event, depth);
    yaml_event_delete(&event);
    return node;
}

static struct conf_node *list_read(struct reader *reader, const yaml_event_t *first, size_t depth)
{
    struct conf_node *list = node_new(reader, CONF_LIST, first);
    refuse_decoration(reader, list, first->data.sequence_start.anchor,
                      first->data.sequence_start.tag);
    for (;;) {
        bool end = false;
        struct conf_node *item = child_read(reader, depth + 1, &end);
        if (item == NULL) {
            return end ? list : NULL;
        }
        list->items = room(reader->arena, list->items, list->count);
        list->items[list->count++] = item;
    }
}

static void key_check(struct reader *reader, struct conf_node *key)
{
    if (key->type != CONF_SCALAR) {
        conf_problem(reader->problems, key, "a key must be a plain name, not %s",
                     key->type == CONF_LIST ? "a list" : "a map");
        *key = (struct conf_node){.line = key->line, .column = key->column, .text = ""};
        key->reported = true;
    } else if (!key->quoted && strcmp(key->text, "<<") == 0) {
        conf_problem(reader->problems, key,
                     "merge keys ('<<') are not supported; write the keys out");
        key->reported = true;
    } else if (key->text[0] == '\0' && !key->reported) {
        conf_problem(reader->problems, key, "a key is empty; a name must stand before ':'");
        key->reported = true;
    }
}

static int compare_keys(const void *a, const void *b)
{
    const struct conf_node *one = *(struct conf_node *const *)a;
    const struct conf_node *other = *(struct conf_node *const *)b;
    int order = strcmp(one->text, other->text);
    if (order == 0) {
        order = (one->line > other->line) - (one->line < other->line);
    }
    return order != 0 ? order : (one->column > other->column) - (one->column < other->column);
}

/* Sorted first, so that a map of many keys costs no square of them. */
static void refuse_duplicates(struct reader *reader, const struct conf_node *map)
{
    if (map->count < 2) {
        return;
    }
    struct conf_node **sorted = check_alloc(calloc(map->count, sizeof(struct conf_node *)));
    memcpy(sorted, map->keys, map->count * sizeof(struct conf_node *));
    qsort(sorted, map->count, sizeof(struct conf_node *), compare_keys);
    const struct conf_node *first = sorted[0];
    for (size_t i = 1; i < map->count; i++) {
        if (strcmp(first->text, sorted[i]->text) != 0 || first->reported) {
            first = sorted[i];
        } else if (!sorted[i]->reported && !problems_are_full(reader->problems)) {
            conf_problem(reader->problems, sorted[i],
                         "duplicate key %s; it stands at line %d already",
                         key_shown("", sorted[i]->text, reader->arena), first->line);
        }
    }
    free(sorted);
}

static struct conf_node *map_read(struct reader *reader, const yaml_event_t *first, size_t depth)
{
    struct conf_node *map = node_new(reader, CONF_MAP, first);
    refuse_decoration(reader, map, first->data.mapping_start.anchor, first->data.mapping_start.tag);
    for (;;) {
        bool end = false;
        struct conf_node *key = child_read(reader, depth + 1, &end);
        if (key == NULL && end) {
            break;
        }
        struct conf_node *value = key == NULL ? NULL : child_read(reader, depth + 1, &end);
        if (value == NULL) {
            return NULL;
        }
        key_check(reader, key);
        map->keys = room(reader->arena, map->keys, map->count);
        map->items = room(reader->arena, map->items, map->count);
        map->keys[map->count] = key;
        map->items[map->count++] = value;
    }
    refuse_duplicates(reader, map);
    return map;
}

static struct conf_node *node_read(struct reader *reader, const yaml_event_t *first, size_t depth)
{
    struct conf_node at = mark_node(first->start_mark);
    switch (first->type) {
    case YAML_SCALAR_EVENT:
        return scalar_read(reader, first);
    case YAML_ALIAS_EVENT:
        return alias_read(reader, first);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (depth >= CONF_DEPTH_MAX) {
            conf_problem(reader->problems, &at, "lists and maps are nested deeper than %d levels",
                         CONF_DEPTH_MAX);
            return NULL;
        }
        return first->type == YAML_SEQUENCE_START_EVENT ? list_read(reader, first, depth)
                                                        : map_read(reader, first, depth);
    default:
        CHECK(false); /* libyaml gives nothing else in a document */
        return NULL;
    }
}

/* Past the document's end: a second one is a problem. */
static void refuse_second(struct reader *reader)
{
    yaml_event_t event;
    for (bool end = false; !end && event_next(reader, &event);) {
        struct conf_node at = mark_node(event.start_mark);
        end = event.type != YAML_DOCUMENT_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT) {
            conf_problem(reader->problems, &at, "a second document starts here; a file holds one");
        }
        yaml_event_delete(&event);
    }
}

/* The document's root. NULL if there is none (*ret_empty) or it cannot be read. */
static struct conf_node *document_read(struct reader *reader, bool *ret_empty)
{
    struct conf_node *root = NULL;
    for (bool end = false; !end;) {
        yaml_event_t event;
        if (!event_next(reader, &event)) {
            return NULL;
        }
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT:
            break;
        case YAML_STREAM_END_EVENT:
            *ret_empty = true;
            end = true;
            break;
        default:
            root = node_read(reader, &event, 0);
            end = true;
        }
        yaml_event_delete(&event);
    }
    if (root != NULL) {
        refuse_second(reader);
    }
    return root;
}

static bool text_check(struct str text, struct conf_problems *problems)
{
    if (text.len > CONF_BYTES_MAX) {
        conf_problem(problems, NULL, "is larger than 1 MiB; a configuration must be smaller");
        return false;
    }
    for (size_t i = 0; i < text.len;) {
        size_t length = utf8_length(text.data + i, text.len - i);
        if (length == 0) {
            struct conf_node at = position_of(text, i);
            conf_problem(problems, &at, "not UTF-8 text; save the file as UTF-8");
            return false;
        }
        i += length;
    }
    return true;
}

static struct conf_node *root_read(struct str text, struct arena *arena,
                                   struct conf_problems *problems)
{
    struct reader reader = {.text = text, .arena = arena, .problems = problems};
    bool is_empty = false;
    CHECK(yaml_parser_initialize(&reader.parser));
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text.data, text.len);
    struct conf_node *root = document_read(&reader, &is_empty);
    yaml_parser_delete(&reader.parser);
    if (is_empty) {
        root = arena_get(arena, sizeof *root);
        *root = (struct conf_node){.line = 1, .column = 1, .text = ""};
    }
    return root;
}

struct conf_node *node_parse(struct str text, struct arena *arena, struct conf_problems *problems)
{
    if (text.len == 0) {
        text = STR("");
    }
    return text_check(text, problems) ? root_read(text, arena, problems) : NULL;
}

/* What the root of a file must be. */
static struct conf_node *parse_as(enum conf_type wanted, const char *file_name, struct str text,
                                  struct arena *arena, struct conf_problems *problems)
{
    problems->file = file_name;
    struct conf_node *root = node_parse(text, arena, problems);
    if (root == NULL || root->type == wanted) {
        return root;
    }
    if (conf_is_absent(root)) {
        root->type = wanted;
        return root;
    }
    if (!root->reported) {
        conf_problem(problems, root,
                     wanted == CONF_MAP
                         ? "must be a map of keys and values, not %s"
                         : "must be a list of entries such as '- { name: … }', not %s",
                     node_words(root));
    }
    return NULL;
}

struct conf_node *conf_parse_text(const char *file_name, struct str text, struct arena *arena,
                                  struct conf_problems *problems)
{
    return parse_as(CONF_MAP, file_name, text, arena, problems);
}

/* All of a descriptor, one byte more than allowed at most. */
static bool file_read(int fd, struct buf *out)
{
    while (out->len <= CONF_BYTES_MAX) {
        char *space = buf_reserve(out, 65536);
        if (space == NULL) {
            errno = ENOMEM;
            return false;
        }
        ssize_t got = read(fd, space, 65536);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0;
        }
        buf_commit(out, (size_t)got);
    }
    return true;
}

/* `what`: NULL, or what whoever may write it could change. */
static bool text_read(int fd, const char *what, struct buf *text, struct conf_problems *problems)
{
    struct stat status;
    struct sg_error err = {0};
    if (what != NULL && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        conf_problem(problems, NULL, "is no regular file");
        return false;
    }
    if (what != NULL && owner_check(problems->file, &status, what, &err) != 0) {
        conf_problem(problems, NULL, "%s", err.message);
        return false;
    }
    if (!file_read(fd, text)) {
        conf_problem(problems, NULL, "cannot be read: %s", strerrordesc_np(errno));
        return false;
    }
    return true;
}

static struct conf_node *parse_file(const char *path, enum conf_type wanted, const char *what,
                                    struct arena *arena, struct conf_problems *problems)
{
    problems->file = path;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (what != NULL ? O_NONBLOCK : 0));
    if (fd < 0) {
        conf_problem(problems, NULL, "cannot be opened: %s", strerrordesc_np(errno));
        return NULL;
    }
    BUF_CLEANUP struct buf text = {0};
    bool done = text_read(fd, what, &text, problems);
    (void)close(fd); /* read only */
    return done ? parse_as(wanted, path, buf_str(&text), arena, problems) : NULL;
}

struct conf_node *conf_parse_file(const char *path, struct arena *arena,
                                  struct conf_problems *problems)
{
    return parse_file(path, CONF_MAP, NULL, arena, problems);
}

struct conf_node *conf_parse_list_file(const char *path, const char *what, struct arena *arena,
                                       struct conf_problems *problems)
{
    return parse_file(path, CONF_LIST, what, arena, problems);
}

struct conf_node *conf_get(const struct conf_node *map, const char *key)
{
    for (size_t i = 0; map != NULL && map->type == CONF_MAP && i < map->count; i++) {
        if (strcmp(map->keys[i]->text, key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}

const struct conf_node *conf_at(const struct conf_node *map, const char *key)
{
    const struct conf_node *value = conf_get(map, key);
    return value != NULL ? value : map;
}

bool conf_is_absent(const struct conf_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node == NULL) {
        return true;
    }
    for (size_t i = 0;
         node->type == CONF_SCALAR && !node->quoted && !node->reported && i < COUNT_OF(nulls);
         i++) {
        if (strcmp(node->text, nulls[i]) == 0) {
            return true;
        }
    }
    return false;
}
