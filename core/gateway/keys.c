/* Keys as the files have them, checked: see keys.h. */
#include "gateway/keys.h"

#include "base/check.h"
#include "gateway/config.h"
#include "http/head.h"

#include <string.h>

enum { NAME_BYTES_MAX = 128, KEY_BYTES_MIN = 8 };

#define COUNT_OPTION(name_, member, max_, help_)                                           \
    {                                                                                      \
        .name = name_, .type = SG_INT, SG_FIELD(struct auth_key_text, member), .def = "0", \
        .min = "0", .max = max_, .help = help_                                             \
    }

const struct sg_option auth_key_options[] = {
    {.name = "name",
     .type = SG_STRING,
     .flags = SG_REQUIRED,
     SG_FIELD(struct auth_key_text, name),
     .help = "The identity that the key gives; two keys of one name are one identity."},
    {.name = "sha256",
     .type = SG_STRING,
     .flags = SG_SECRET,
     SG_FIELD(struct auth_key_text, sha256),
     .help = "The key's SHA-256 in hexadecimal."},
    {.name = "key",
     .type = SG_STRING,
     .flags = SG_SECRET,
     SG_FIELD(struct auth_key_text, key),
     .help = "The key itself, usually from the environment."},
    {.name = "use",
     .type = SG_CHOICE,
     SG_FIELD(struct auth_key_text, use),
     .def = "requests",
     .choices = "requests|metrics|admin",
     .help = "metrics: the key opens /metrics and nothing else; admin: the address "
             "server.admin and nothing else; requests: everything but those."},
    {.name = "expires",
     .type = SG_STRING,
     SG_FIELD(struct auth_key_text, expires),
     .help = "The last day on which the key is good, 2026-12-31 (UTC), or the moment from which it "
             "is not, 2026-12-31T18:00:00Z."},
    {.name = "models",
     .type = SG_STRINGS,
     SG_FIELD(struct auth_key_text, models),
     .help = "Models that the key may use: exact names or patterns with *; default all."},
    {.name = "tools",
     .type = SG_STRINGS,
     SG_FIELD(struct auth_key_text, tools),
     .help = "Hosted tools that the key may use, such as code_interpreter or web_search, or "
             "patterns with *; prompts that the upstream keeps, which may have tools, are called "
             "prompt; default all, [] none."},
    COUNT_OPTION("requests_per_minute", limits.requests_per_minute, "1000000",
                 "Most requests to models a minute, of all keys of the name together; 0: no "
                 "limit."),
    COUNT_OPTION("runs_per_minute", limits.runs_per_minute, "1000000",
                 "Most calls of hosted tools that are run for it a minute; 0: no limit."),
    COUNT_OPTION("in_flight", limits.in_flight, "1000000",
                 "Most requests to models at a time; 0: no limit."),
    COUNT_OPTION("per_identity", per_identity, "100000",
                 "Most session containers, instead of sessions.per_identity; of each user, where "
                 "there is user_from."),
    COUNT_OPTION("max_containers", max_containers, "100000",
                 "Most containers, instead of sessions.max_containers; of all its users "
                 "together."),
    {.name = "user_from",
     .type = SG_STRING,
     SG_FIELD(struct auth_key_text, user_from),
     .help = "header:NAME: whoever has the key speaks for users, whom this header of each request "
             "names; each is an identity."},
    COUNT_OPTION("user_requests_per_minute", user_limits.requests_per_minute, "1000000",
                 "Most requests of each user a minute, within the key's own limit."),
    COUNT_OPTION("user_runs_per_minute", user_limits.runs_per_minute, "1000000",
                 "Most calls of hosted tools of each user a minute, likewise."),
    COUNT_OPTION("user_in_flight", user_limits.in_flight, "1000000",
                 "Most requests of each user at a time, likewise."),
    {0},
};

/* ---- finding ---- */

static uint64_t digest_hash(const uint8_t sha256[SHA256_BYTES])
{
    uint64_t value;
    memcpy(&value, sha256, sizeof value); /* a SHA-256 needs no further mixing */
    return value;
}

struct auth_key *keys_find(const struct key_set *set, const uint8_t sha256[SHA256_BYTES])
{
    for (struct hash_node *node = hash_first(&set->by_hash, digest_hash(sha256)); node != NULL;
         node = hash_next(node)) {
        struct auth_key *key = INDEX_OWNER(node, struct auth_key, by_hash);
        if (equal_constant_time(sha256, key->sha256, SHA256_BYTES)) {
            return key;
        }
    }
    return NULL;
}

struct auth_key *keys_named(const struct key_set *set, struct str name)
{
    for (struct hash_node *node = hash_first(&set->by_name, hash_bytes(name.data, name.len));
         node != NULL; node = hash_next(node)) {
        struct auth_key *key = INDEX_OWNER(node, struct auth_key, by_name);
        if (str_is(name, key->name)) {
            return key;
        }
    }
    return NULL;
}

void keys_clear(struct key_set *set)
{
    hash_clear(&set->by_hash);
    hash_clear(&set->by_name);
}

/* ---- comparing ---- */

static bool texts_alike(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool lists_alike(const char *const *a, const char *const *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    for (; *a != NULL && *b != NULL && strcmp(*a, *b) == 0; a++, b++) {
    }
    return *a == *b;
}

static bool limits_alike(const struct key_limits *a, const struct key_limits *b)
{
    return a->requests_per_minute == b->requests_per_minute &&
           a->runs_per_minute == b->runs_per_minute && a->in_flight == b->in_flight;
}

/* What belongs to the name. */
static bool shares_alike(const struct auth_key *a, const struct auth_key *b)
{
    return limits_alike(&a->limits, &b->limits) && limits_alike(&a->user_limits, &b->user_limits) &&
           a->per_identity == b->per_identity && a->max_containers == b->max_containers &&
           texts_alike(a->user_header, b->user_header);
}

bool keys_alike(const struct auth_key *a, const struct auth_key *b)
{
    return texts_alike(a->name, b->name) && a->for_metrics == b->for_metrics &&
           a->for_admin == b->for_admin && a->expires_unix_ms == b->expires_unix_ms &&
           lists_alike(a->models, b->models) && lists_alike(a->tools, b->tools) &&
           shares_alike(a, b);
}

/* ---- reading one ---- */

struct entry { /* of a list of keys */
    const struct auth_key_text *text;
    const struct conf_node *node;
    struct conf_problems *problems;
};

/* The mark between a key and its users is such a character. */
static bool name_usable(const struct entry *e)
{
    struct str name = str_of(e->text->name);
    bool is_good = name.len <= NAME_BYTES_MAX && http_value_valid(name) &&
                   memchr(name.data, '\t', name.len) == NULL;
    if (!is_good) {
        conf_problem(e->problems, conf_get(e->node, "name"),
                     "auth: the name of a key is at most %d bytes, without control characters",
                     NAME_BYTES_MAX);
    }
    return is_good;
}

static bool hash_read(const struct entry *e, struct auth_key *key)
{
    const struct auth_key_text *text = e->text;
    bool has_hash = text->sha256 != NULL, has_key = text->key != NULL;
    if (has_hash == has_key) {
        conf_problem(e->problems, e->node, "auth: key '%s' needs exactly one of 'sha256' and 'key'",
                     text->name);
        return false;
    }
    if (has_hash && !hex_decode(str_of(text->sha256), key->sha256, SHA256_BYTES)) {
        conf_problem(e->problems, e->node,
                     "auth: 'sha256' of key '%s' must be 64 hexadecimal digits (make it with: "
                     "printf %%s KEY | sha256sum)",
                     text->name);
        return false;
    }
    const char *problem = has_key ? config_key_problem(text->key) : NULL;
    if (problem == NULL && has_key && strlen(text->key) < KEY_BYTES_MIN) {
        problem = "is shorter than 8 characters";
    }
    if (problem != NULL) {
        conf_problem(e->problems, e->node, "auth: key '%s' %s", text->name, problem);
        return false;
    }
    if (has_key) {
        sha256(str_of(text->key), key->sha256);
    }
    return true;
}

static bool expiry_usable(const struct entry *e, struct auth_key *key)
{
    key->expires_unix_ms = INT64_MAX;
    if (e->text->expires == NULL || expiry_read(e->text->expires, &key->expires_unix_ms)) {
        return true;
    }
    conf_problem(e->problems, conf_get(e->node, "expires"),
                 "auth: key '%s': 'expires' must be a date such as 2026-12-31 (to its end, UTC) or "
                 "a time such as 2026-12-31T18:00:00Z, not '%.40s'",
                 key->name, e->text->expires);
    return false;
}

static bool users_usable(const struct entry *e, struct auth_key *key)
{
    const char *from = e->text->user_from;
    const struct conf_node *at = conf_get(e->node, "user_from");
    static const struct key_limits none = {0};
    if (from == NULL && !limits_alike(&e->text->user_limits, &none)) {
        conf_problem(
            e->problems, e->node,
            "auth: key '%s': limits of users (user_…) need 'user_from', which says where a "
            "request names its user",
            key->name);
        return false;
    }
    enum header_source kind = from == NULL ? HEADER_SOURCE_GOOD : config_header_source(from);
    if (kind == HEADER_SOURCE_SECRET) {
        conf_problem(e->problems, at,
                     "auth: key '%s': 'user_from' may not be '%.80s': a secret is no name, users "
                     "are logged",
                     key->name, from);
    } else if (kind != HEADER_SOURCE_GOOD) {
        conf_problem(e->problems, at,
                     "auth: key '%s': 'user_from' must be header:NAME, such as "
                     "header:x-openwebui-user-id, not '%.80s'",
                     key->name, from);
    }
    key->user_header = from != NULL && kind == HEADER_SOURCE_GOOD ? from + strlen("header:") : NULL;
    return kind == HEADER_SOURCE_GOOD;
}

static const char *const *list_given(const struct entry *e, const char *name,
                                     const char *const *list)
{
    return conf_is_absent(conf_get(e->node, name)) ? NULL : list;
}

bool key_is_for_requests(const struct auth_key *key)
{
    return !key->for_metrics && !key->for_admin;
}

static bool use_usable(const struct entry *e, struct auth_key *key)
{
    static const struct auth_key nothing = {0};
    key->for_metrics = strcmp(e->text->use, "metrics") == 0;
    key->for_admin = strcmp(e->text->use, "admin") == 0;
    bool is_plain = key->models == NULL && key->tools == NULL && shares_alike(key, &nothing);
    if ((key->for_metrics || key->for_admin) && !is_plain) {
        conf_problem(e->problems, e->node,
                     "auth: key '%s' opens %s only: models, tools, limits and users mean nothing "
                     "for it",
                     key->name, key->for_admin ? "the admin address" : "/metrics");
        return false;
    }
    return true;
}

/* What is filled stays unread if something of the entry is wrong: it may be half of what was meant. */
static bool entry_read(const struct entry *e, struct auth_key *key)
{
    const struct auth_key_text *text = e->text;
    bool is_unread = (text->key == NULL && conf_get(e->node, "key") != NULL) ||
                     (text->sha256 == NULL && conf_get(e->node, "sha256") != NULL);
    if (text->name == NULL || text->name[0] == '\0' || text->use == NULL || is_unread) {
        return false; /* reported already */
    }
    *key = (struct auth_key){.name = text->name,
                             .models = list_given(e, "models", text->models),
                             .tools = list_given(e, "tools", text->tools),
                             .limits = text->limits,
                             .user_limits = text->user_limits,
                             .per_identity = (size_t)text->per_identity,
                             .max_containers = (size_t)text->max_containers,
                             .file = e->problems->file,
                             .line = e->node->line};
    return name_usable(e) && hash_read(e, key) && expiry_usable(e, key) && users_usable(e, key) &&
           use_usable(e, key);
}

/* ---- reading all ---- */

/* One key can only be one identity: whose sessions would it open? And what belongs to the name is said once, or twice the
 * same. */
static bool key_fits(const struct key_set *set, const struct auth_key *key, const struct entry *e)
{
    const struct auth_key *twin = keys_find(set, key->sha256);
    const struct auth_key *first = keys_named(set, str_of(key->name));
    if (twin != NULL) {
        conf_problem(e->problems, e->node,
                     "auth: the key of '%s' is that of '%s' too (%s:%d): each needs its own",
                     key->name, twin->name, twin->file, twin->line);
        return false;
    }
    if (first != NULL && key_is_for_requests(first) && key_is_for_requests(key) &&
        !shares_alike(first, key)) {
        conf_problem(e->problems, e->node,
                     "auth: key '%s' has other limits or users than at %s:%d: keys of one name are "
                     "one identity, so that both have to say the same",
                     key->name, first->file, first->line);
        return false;
    }
    return true;
}

void keys_read(struct key_set *set, const struct conf_node *list,
               const struct auth_key_text *entries, size_t count, struct conf_problems *problems)
{
    for (size_t i = 0; i < count; i++) { /* a mistake in one hides none in another */
        struct entry entry = {&entries[i], list->items[i], problems};
        struct auth_key *key = &set->keys[set->count];
        if (!entry_read(&entry, key) || !key_fits(set, key, &entry)) {
            continue;
        }
        set->count++;
        hash_put(&set->by_hash, &key->by_hash, digest_hash(key->sha256));
        if (keys_named(set, str_of(key->name)) == NULL) {
            hash_put(&set->by_name, &key->by_name, hash_bytes(key->name, strlen(key->name)));
        }
    }
}

bool keys_open_admin(const struct key_set *set)
{
    bool is_open = false;
    for (size_t i = 0; i < set->count; i++) {
        is_open = is_open || set->keys[i].for_admin;
    }
    return is_open;
}
