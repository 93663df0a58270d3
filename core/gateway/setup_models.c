/* The section `models`: names of the operator's own, and the entries that stand behind them (named_model.h). */
#include "gateway/named_model.h"
#include "gateway/setup.h"

#include "base/check.h"
#include "http/head.h"

#include <string.h>

struct entry_text {
    const char *upstream, *model;
    int64_t weight;
};

struct model_text {
    const char *name;
    struct sg_list to, fallback;
    bool sticky;
};

#define UPSTREAM_OPTION                                                       \
    {                                                                         \
        .name = "upstream", .type = SG_STRING, .flags = SG_REQUIRED,          \
        SG_FIELD(struct entry_text, upstream), .help = "The upstream's name." \
    }
#define MODEL_OPTION                                                             \
    {                                                                            \
        .name = "model", .type = SG_STRING, SG_FIELD(struct entry_text, model),  \
        .help = "The model's name there; default the name that clients ask for." \
    }

static const struct sg_option to_options[] = {
    UPSTREAM_OPTION,
    MODEL_OPTION,
    {.name = "weight",
     .type = SG_INT,
     SG_FIELD(struct entry_text, weight),
     .def = "1",
     .min = "1",
     .max = "100",
     .help = "Its share of the requests, beside the other weights."},
    {0},
};

static const struct sg_option fallback_options[] = {UPSTREAM_OPTION, MODEL_OPTION, {0}};

const struct sg_option model_options[] = {
    {.name = "name",
     .type = SG_STRING,
     .flags = SG_REQUIRED,
     SG_FIELD(struct model_text, name),
     .help = "What clients ask for, and see in answers; an exact name."},
    {.name = "to",
     .type = SG_LIST,
     .flags = SG_REQUIRED,
     SG_FIELD(struct model_text, to),
     .help = "Where requests go: spread by weight; where one fails before anything was said, to "
             "another.",
     .fields = to_options,
     .fields_size = sizeof(struct entry_text)},
    {.name = "fallback",
     .type = SG_LIST,
     SG_FIELD(struct model_text, fallback),
     .help = "Where they go when all of 'to' fail, in this order.",
     .fields = fallback_options,
     .fields_size = sizeof(struct entry_text)},
    {.name = "sticky",
     .type = SG_BOOL,
     SG_FIELD(struct model_text, sticky),
     .def = "true",
     .help =
         "Requests with the same session id, or the same prompt_cache_key, go to the same entry "
         "of 'to' while it works."},
    {0},
};

static const struct upstream *upstream_named(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        if (strcmp(settings->upstreams[i].name, name) == 0) {
            return &settings->upstreams[i];
        }
    }
    return NULL;
}

static bool is_there_already(const struct named_model *model, const struct model_entry *entry)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->entries[i].upstream == entry->upstream &&
            strcmp(model->entries[i].model, entry->model) == 0) {
            return true;
        }
    }
    return false;
}

/* An upstream that needs a restart to be there is left out. */
static void add_entry(struct setup *s, const struct conf_node *at, const struct entry_text *text,
                      struct named_model *model)
{
    const struct settings *settings = s->settings;
    struct model_entry entry = {.upstream = upstream_named(settings, text->upstream),
                                .model = text->model != NULL ? text->model : model->name,
                                .weight = (unsigned)text->weight};
    if (entry.upstream == NULL && setup_upstream_is_absent(s, text->upstream)) {
        return;
    }
    if (entry.upstream == NULL) {
        conf_problem(s->problems, conf_at(at, "upstream"),
                     "model '%s': there is no upstream '%s'%s", model->name, text->upstream,
                     setup_suggestion(s, text->upstream, settings->upstreams,
                                      settings->upstreams_count, sizeof *settings->upstreams));
    } else if (entry.model[0] == '\0' || !http_value_valid(str_of(entry.model))) {
        conf_problem(
            s->problems, conf_at(at, "model"),
            "model '%s': the 'model' of an entry must be a name without control characters",
            model->name);
    } else if (is_there_already(model, &entry)) {
        conf_problem(s->problems, at, "model '%s': '%s' of upstream '%s' is there twice",
                     model->name, entry.model, text->upstream);
    } else {
        model->entries[model->count++] = entry;
    }
}

static void add_entries(struct setup *s, const struct conf_node *list, const struct sg_list *texts,
                        struct named_model *model)
{
    const struct entry_text *text = texts->items;
    for (size_t i = 0; i < texts->count; i++) {
        add_entry(s, list->items[i], &text[i], model);
    }
}

static bool name_is_good(struct setup *s, const struct conf_node *entry, const char *name)
{
    struct str text = str_of(name);
    bool is_good = text.len > 0 && text.len <= NAMED_MODEL_NAME_BYTES && http_value_valid(text) &&
                   strchr(name, '*') == NULL && str_eq(str_trim(text), text);
    if (!is_good) {
        conf_problem(s->problems, conf_get(entry, "name"),
                     "models: a 'name' is what clients write: 1 to %d bytes without '*', white "
                     "space around it and control characters, not '%.80s'",
                     NAMED_MODEL_NAME_BYTES, name);
    }
    return is_good;
}

static bool entries_are_good(struct setup *s, const struct conf_node *entry,
                             const struct model_text *text)
{
    bool is_good = text->to.count + text->fallback.count <= NAMED_MODEL_ENTRIES_MAX;
    if (!is_good) {
        conf_problem(s->problems, conf_at(entry, "to"),
                     "model '%s': 'to' and 'fallback' may have %d entries together, not %zu",
                     text->name, NAMED_MODEL_ENTRIES_MAX, text->to.count + text->fallback.count);
    }
    return is_good;
}

static void read_model(struct setup *s, const struct conf_node *entry, size_t index)
{
    (void)index; /* each is known by its name */
    struct model_text text = {0};
    struct settings *settings = s->settings;
    size_t found =
        conf_fill(model_options, entry, entry, NULL, "models", &text, settings->arena, s->problems);
    if (found > 0 || !name_is_good(s, entry, text.name) || !entries_are_good(s, entry, &text)) {
        return;
    }
    struct named_model *model = &settings->models[settings->models_count];
    model->name = text.name;
    model->is_sticky = text.sticky;
    model->entry = entry;
    add_entries(s, conf_get(entry, "to"), &text.to, model);
    model->to_count = model->count;
    add_entries(s, conf_get(entry, "fallback"), &text.fallback, model);
    if (model->to_count == 0) { /* all of them are absent, or problems */
        model->to_count = model->count;
    }
    for (size_t i = 0; i < model->count; i++) {
        model->entries[i].weight += model->entries[i].weight == 0; /* of the fallback */
    }
    if (model->count > 0) {
        named_model_schedule(model, settings->arena);
        hash_put(&settings->models_by_name, &model->by_name,
                 hash_bytes(model->name, strlen(model->name)));
        settings->models_count++;
    }
}

/* One that nothing leads to was meant otherwise. */
static void check_reached(struct setup *s, const struct upstream *upstream)
{
    bool is_reached = upstream->models[0] != NULL;
    for (size_t i = 0; i < s->settings->models_count; i++) {
        const struct named_model *model = &s->settings->models[i];
        for (size_t k = 0; k < model->count; k++) {
            is_reached = is_reached || model->entries[k].upstream == upstream;
        }
    }
    if (!is_reached) {
        conf_problem(s->problems, upstream->entry,
                     "upstream '%s' serves no model: give it 'models', or name it in an entry of "
                     "the section 'models'",
                     upstream->name);
    }
}

void setup_models(struct setup *s, const struct conf_node *root)
{
    struct settings *settings = s->settings;
    size_t before = s->problems->count, count = setup_count(root, "models");
    settings->models = arena_get(settings->arena, (count + 1) * sizeof *settings->models);
    setup_section(s, root, "models", read_model);
    setup_names_unique(s, root, "models");
    for (size_t i = 0; i < settings->upstreams_count && s->problems->count == before; i++) {
        check_reached(s, &settings->upstreams[i]);
    }
}

/* Host and port, as it is written. */
static struct str server_of(const struct upstream *upstream)
{
    const char *server = strstr(upstream->base_url, "://") + 3;
    return (struct str){server, strcspn(server, "/")};
}

static void warn_of_shared_keys(const struct named_model *model, struct conf_problems *warnings)
{
    const struct upstream *first = NULL;
    for (size_t i = 0; i < model->count; i++) {
        const struct upstream *upstream = model->entries[i].upstream;
        if (!upstream->passthrough) {
            continue;
        }
        first = first == NULL ? upstream : first;
        if (!str_eq_nocase(server_of(first), server_of(upstream))) {
            conf_problem(warnings, model->entry,
                         "warning: model '%s': the client's own key goes to '%s' and to '%s', "
                         "which are different servers: put upstreams into one model only where the "
                         "same keys are for all of them",
                         model->name, first->name, upstream->name);
            return;
        }
    }
}

void setup_models_warn(const struct settings *settings, struct conf_problems *warnings)
{
    for (size_t i = 0; i < settings->models_count; i++) {
        warn_of_shared_keys(&settings->models[i], warnings);
    }
}
