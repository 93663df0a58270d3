/* A whole hook: who may use which models, with how many tokens, how many times at once. The first rule that fits the
 * identity holds; without one the request is refused. Where a request does not say how many tokens it wants, the rule's
 * limit is put into it. docs/writing-plugins.md walks through it.
 *
 *   interceptors:
 *     - plugin: policy
 *       rules:
 *         - { identity: team-a, models: ["qwen*"], max_tokens: 4096, at_once: 8 }
 *         - { identity: "*", models: [mock], max_tokens: 256 } */
#include <sandgate/plugin.h>

#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    const char *identity;
    const char *const *models;
    int64_t max_tokens, at_once; /* 0: as many as are asked for */
};

struct config {
    struct sg_list rules;
};

static const struct sg_option rule_options[] = {
    {"identity", SG_STRING, SG_REQUIRED, SG_FIELD(struct rule, identity),
     .help = "The name of a key's entry, or a pattern such as team-*."},
    {"models", SG_STRINGS, 0, SG_FIELD(struct rule, models), .def = "[\"*\"]",
     .help = "The models that it may use, as names or patterns."},
    {"max_tokens", SG_INT, 0, SG_FIELD(struct rule, max_tokens), .def = "0", .min = "0",
     .help = "Most tokens of an answer, all its choices together; 0: no limit."},
    {"at_once", SG_INT, 0, SG_FIELD(struct rule, at_once), .def = "0", .min = "0",
     .help = "Most requests at a time of all whom the rule fits; 0: no limit."},
    {0},
};

static const struct sg_option options[] = {
    {"rules", SG_LIST, SG_REQUIRED, SG_FIELD(struct config, rules), .fields = rule_options,
     .fields_size = sizeof(struct rule), .help = "Who may do what; the first that fits holds."},
    {0},
};

struct policy { /* one instance; its calls come from several threads */
    const struct config *config;
    pthread_mutex_t lock;
    int64_t *running; /* requests under each rule */
};

/* ---- the instance ---- */

static void policy_free(struct policy *policy)
{
    if (policy != NULL) {
        free(policy->running);
        free(policy);
    }
}

static int start(const void *config, struct sg_call *call, void **ret_self, struct sg_error *err)
{
    (void)call;
    const struct config *c = config;
    struct policy *policy = calloc(1, sizeof *policy);
    if (policy == NULL || (policy->running = calloc(c->rules.count + 1, sizeof(int64_t))) == NULL) {
        policy_free(policy);
        return sg->fail(err, SG_E_INTERNAL, "out of memory");
    }
    policy->config = c; /* lives until close() */
    pthread_mutex_init(&policy->lock, NULL);
    *ret_self = policy;
    return 0;
}

static void stop(void *self, struct sg_call *call)
{
    (void)call;
    struct policy *policy = self;
    pthread_mutex_destroy(&policy->lock);
    policy_free(policy);
}

/* ---- what is asked for ---- */

static const struct rule *rule_find(const struct policy *policy, const char *identity)
{
    const struct rule *rules = policy->config->rules.items;
    for (size_t i = 0; identity != NULL && i < policy->config->rules.count; i++) {
        if (fnmatch(rules[i].identity, identity, 0) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

static int check_model(const struct rule *rule, const cJSON *body, struct sg_error *err)
{
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(body, "model");
    for (const char *const *one = rule->models; cJSON_IsString(model) && *one != NULL; one++) {
        if (fnmatch(*one, model->valuestring, 0) == 0) {
            return 0;
        }
    }
    return sg->fail(err, SG_E_DENIED, "This key may not use the model '%.100s'.",
                    cJSON_IsString(model) ? model->valuestring : "");
}

/* The members by which the API forms say how long an answer may be. */
static const char *const limits[] = {"max_tokens", "max_completion_tokens", "max_output_tokens"};

static int too_many(const struct rule *rule, struct sg_error *err)
{
    return sg->fail(err, SG_E_DENIED, "This key may have %lld tokens an answer at most.",
                    (long long)rule->max_tokens);
}

static int check_limit(const struct rule *rule, const cJSON *value, double choices,
                       struct sg_error *err)
{
    if (!cJSON_IsNumber(value) || value->valuedouble < 0) {
        return sg->fail(err, SG_E_INVALID, "'%s' must be a number here.", value->string);
    }
    return value->valuedouble * choices <= (double)rule->max_tokens ? 0 : too_many(rule, err);
}

/* The core asks for the text as it was sent, so the member is put in front of the others and nothing else is touched. */
static int emit_limited(struct sg_call *call, const char *json, size_t len, const char *name,
                        long long tokens, struct sg_error *err)
{
    char member[64];
    const char *rest = memchr(json, '{', len);
    if (rest == NULL) {
        return sg->fail(err, SG_E_INVALID, "The body must be a JSON object.");
    }
    rest++;
    int size = snprintf(member, sizeof member, "{\"%s\":%lld,", name, tokens);
    int code = sg->emit(call, SG_OUT_DATA, member, (size_t)size, err);
    return code != 0 ? code : sg->emit(call, SG_OUT_DATA, rest, len - (size_t)(rest - json), err);
}

static int check_tokens(const struct rule *rule, struct sg_call *call, const char *json, size_t len,
                        const cJSON *body, struct sg_error *err)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(body, "n");
    double choices = cJSON_IsNumber(n) && n->valuedouble > 1 ? n->valuedouble : 1;
    bool is_said = false;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(body, limits[i]);
        int code = value != NULL ? check_limit(rule, value, choices, err) : 0;
        if (code != 0) {
            return code;
        }
        is_said = is_said || value != NULL;
    }
    bool has_messages = cJSON_HasObjectItem(body, "messages");
    if (is_said || (!has_messages && !cJSON_HasObjectItem(body, "input"))) {
        return 0;
    }
    long long each = (long long)((double)rule->max_tokens / choices);
    return each < 1
               ? too_many(rule, err)
               : emit_limited(call, json, len, has_messages ? limits[0] : limits[2], each, err);
}

/* ---- the hook ---- */

/* How many requests run under the rule, one more or less. False if it would be too many. */
static bool count(struct policy *policy, const struct rule *rule, int64_t more)
{
    const struct rule *rules = policy->config->rules.items;
    pthread_mutex_lock(&policy->lock);
    int64_t *running = &policy->running[rule - rules];
    bool fits = more < 0 || rule->at_once == 0 || *running < rule->at_once;
    *running += fits ? more : 0;
    pthread_mutex_unlock(&policy->lock);
    return fits;
}

static int check(const struct rule *rule, struct sg_call *call, const char *json, size_t len,
                 struct sg_error *err)
{
    cJSON *body = cJSON_ParseWithLength(json, len);
    if (body == NULL) { /* the core has read it; only memory can be the matter */
        return sg->fail(err, SG_E_LIMIT, "The request is too large for this gateway's policy.");
    }
    int code = check_model(rule, body, err);
    if (code == 0 && rule->max_tokens > 0) {
        code = check_tokens(rule, call, json, len, body, err);
    }
    cJSON_Delete(body);
    return code;
}

static int request(void *self, struct sg_call *call, const char *json, size_t len, void **ret_state,
                   struct sg_error *err)
{
    struct policy *policy = self;
    const struct rule *rule = rule_find(policy, sg->identity(call));
    if (rule == NULL) {
        return sg->fail(err, SG_E_DENIED, "This key may use nothing here.");
    }
    int code = check(rule, call, json, len, err);
    if (code == 0 && !count(policy, rule, 1)) {
        code = sg->fail(err, SG_E_LIMIT, "This key has %lld requests in progress, its limit.",
                        (long long)rule->at_once);
    }
    *ret_state = (void *)rule; /* comes back in done() */
    return code;
}

static void done(void *self, void *state)
{
    (void)count(self, state, -1);
}

static const struct sg_interceptor_ops operations = {.request = request, .done = done};

static const struct sg_plugin policy = {
    .name = "policy",
    .help = "Says who may use which models, with how many tokens, how many times at once.",
    .options = options,
    .config_size = sizeof(struct config),
    .open = start,
    .close = stop,
    .interceptor = &operations,
    /* Not SG_ON_LOOP: a body of many MiB takes longer to parse than a loop may be held. */
};

SG_PLUGIN_SET("1.0", &policy);
