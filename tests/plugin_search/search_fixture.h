/* One provider at a time: its plugin, a configuration with a key, and a call whose http() is scripted. */
#ifndef TESTS_SEARCH_FIXTURE_H
#define TESTS_SEARCH_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

#define KEY "key-0123456789"
#define SEARXNG_URL "https://search.example/sub/"

static const char *const providers[] = {"searxng", "brave",  "tavily",
                                        "exa",     "serper", "perplexity"};

struct search_fixture {
    const struct sg_plugin *plugin;
    void *config, *self;
    struct sg_call *call;
};

/* Options in turn, ended by NULL. */
static inline void fixture_begin(struct search_fixture *f, const char *name)
{
    f->plugin = host_load(name)->plugins[0];
    f->config = config_new(f->plugin);
    f->call = call_new();
    config_set(f->plugin, f->config, "api_key", KEY);
    if (strcmp(name, "searxng") == 0) {
        config_set(f->plugin, f->config, "base_url", SEARXNG_URL);
    }
}

static inline void fixture_set(struct search_fixture *f, const char *name, const char *value)
{
    config_set(f->plugin, f->config, name, value);
}

static inline int fixture_open(struct search_fixture *f)
{
    return f->plugin->open(f->config, f->call, &f->self, call_error(f->call));
}

/* Anew for each search, so that what was asked and emitted is that of one. */
static inline void fixture_next(struct search_fixture *f)
{
    call_free(f->call);
    f->call = call_new();
}

static inline int fixture_search(struct search_fixture *f, struct sg_query query)
{
    CU_ASSERT_EQUAL(fixture_open(f), 0);
    return f->plugin->search->search(f->self, f->call, &query, call_error(f->call));
}

static inline void fixture_end(struct search_fixture *f)
{
    call_free(f->call);
    config_free(f->plugin, f->config);
}

/* An answer with one hit in the form of each service. */
static inline const char *answer_of(const char *name)
{
    if (strcmp(name, "brave") == 0) {
        return "{\"type\":\"search\",\"query\":{\"original\":\"x\"},\"web\":{\"type\":\"search\","
               "\"results\":[{\"title\":\"T\",\"url\":\"https://a.example/\",\"description\":"
               "\"S\"}]}}";
    }
    if (strcmp(name, "serper") == 0) {
        return "{\"searchParameters\":{\"q\":\"x\"},\"organic\":[{\"title\":\"T\",\"link\":"
               "\"https://a.example/\",\"snippet\":\"S\",\"position\":1}]}";
    }
    return "{\"results\":[{\"title\":\"T\",\"url\":\"https://a.example/"
           "\",\"content\":\"S\",\"text\":"
           "\"S\",\"snippet\":\"S\"}]}";
}

#define ONE_HIT \
    "{\"title\": \"T\", \"url\": \"https://a.example/\", \"snippet\": \"S\", \"date\": null}"

#endif
