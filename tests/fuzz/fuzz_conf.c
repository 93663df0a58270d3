/* Fuzzes core/conf: any bytes are parsed and, where a tree comes out, filled into a table with every type. Held: nothing
 * crashes or leaks, no tree without a problem or a map, each problem is one line, and a secret is in none of them. */
#include "base/check.h"
#include "conf/conf.h"

#include <stdint.h>
#include <stdlib.h>

struct item {
    const char *when;
    int64_t delay_ms;
    const char *const *names;
};

struct config {
    const char *text, *key, *mode;
    bool enabled;
    int64_t count, timeout_ms;
    uint64_t memory;
    const char *const *names;
    struct sg_map headers;
    struct sg_list rules;
};

static const struct sg_option fields[] = {
    {"when", SG_STRING, SG_REQUIRED, SG_FIELD(struct item, when), .help = "h"},
    {"delay", SG_DURATION, 0, SG_FIELD(struct item, delay_ms), .def = "1s", .help = "h"},
    {"names", SG_STRINGS, 0, SG_FIELD(struct item, names), .def = "[a]", .help = "h"},
    {0},
};

static const struct sg_option table[] = {
    {"text", SG_STRING, SG_REQUIRED, SG_FIELD(struct config, text), .help = "h"},
    {"key", SG_STRING, SG_SECRET, SG_FIELD(struct config, key), .help = "h"},
    {"mode", SG_CHOICE, 0, SG_FIELD(struct config, mode), .choices = "fast|slow", .help = "h"},
    {"enabled", SG_BOOL, 0, SG_FIELD(struct config, enabled), .def = "on", .help = "h"},
    {"count", SG_INT, 0, SG_FIELD(struct config, count), .min = "-5", .max = "10", .help = "h"},
    {"timeout", SG_DURATION, 0, SG_FIELD(struct config, timeout_ms), .max = "1h", .help = "h"},
    {"memory", SG_SIZE, 0, SG_FIELD(struct config, memory), .min = "1KiB", .help = "h"},
    {"names", SG_STRINGS, 0, SG_FIELD(struct config, names), .help = "h"},
    {"headers", SG_MAP, 0, SG_FIELD(struct config, headers), .help = "h"},
    {"rules", SG_LIST, 0, SG_FIELD(struct config, rules), .help = "h", .fields = fields,
     .fields_size = sizeof(struct item)},
    {0},
};

static void lines_hold(const struct conf_problems *problems)
{
    size_t lines = 0;
    for (size_t i = 0; i < problems->text.len; i++) {
        unsigned char c = (unsigned char)problems->text.data[i];
        lines += c == '\n';
        CHECK(c == '\n' || c >= 0x20);
    }
    size_t shown = problems->count > CONF_PROBLEMS_MAX ? CONF_PROBLEMS_MAX + 1 : problems->count;
    CHECK(lines == shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const reserved[] = {"name", "plugin", NULL};
    struct arena *arena = arena_new(0);
    struct conf_problems problems = {0};
    setenv("FUZZ", "sk-hidden", 1);
    const struct conf_node *root =
        conf_parse_text("f.yaml", (struct str){(const char *)data, size}, arena, &problems);
    CHECK(root != NULL ? root->type == CONF_MAP : problems.count > 0);
    if (root != NULL) {
        struct config config = {0};
        size_t before = problems.count;
        size_t count = conf_fill(table, root, root, reserved, "fuzz", &config, arena, &problems);
        CHECK(count == problems.count - before);
        CHECK(config.names != NULL);
        CHECK(config.count >= -5 && config.count <= 10);
    }
    lines_hold(&problems);
    bool is_written = size > 0 && memmem(data, size, "hidden", 6) != NULL;
    CHECK(is_written || problems.text.len == 0 || strstr(problems.text.data, "hidden") == NULL);
    conf_problems_clear(&problems);
    arena_free(arena);
    return 0;
}
