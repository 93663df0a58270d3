/* What a process and each of its loops need for fetching: libcurl's own start, multis, names, what is kept. */
#include "http/fetch_internal.h"

#include <stdlib.h>

int fetch_global_init(struct sg_error *err)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? 0
               : error_set(err, SG_E_INTERNAL, "libcurl cannot be started");
}

void fetch_global_clear(void)
{
    curl_global_cleanup();
}

static int fetch_loop_fill(struct fetch_loop *home, struct sg_error *err)
{
    home->share = check_alloc(curl_share_init());
    CHECK(curl_share_setopt(home->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_OK);
    CHECK(curl_share_setopt(home->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) ==
          CURLSHE_OK);
    resolver_init(&home->resolver, home->loop);
    for (size_t i = 0; i < FETCH_MULTIS_FIRST; i++) {
        int code = multi_init(&home->multis[i], home, err);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

int fetch_loop_init(struct loop *loop, struct sg_error *err)
{
    struct fetch_loop *home = check_alloc(calloc(1, sizeof *home));
    home->magic = FETCH_LOOP_MAGIC;
    home->loop = loop;
    loop_slot_set(loop, LOOP_SLOT_FETCH, home);
    int code = fetch_loop_fill(home, err);
    if (code != 0) {
        fetch_loop_clear(loop);
    }
    return code;
}

void fetch_close_idle(struct loop *loop)
{
    struct fetch_loop *home = loop_slot(loop, LOOP_SLOT_FETCH);
    if (home != NULL) {
        CHECK_MAGIC(home, FETCH_LOOP_MAGIC);
        multis_close_idle(home);
    }
}

void fetch_loop_clear(struct loop *loop)
{
    struct fetch_loop *home = loop_slot(loop, LOOP_SLOT_FETCH);
    if (home == NULL) {
        return;
    }
    CHECK_MAGIC(home, FETCH_LOOP_MAGIC);
    CHECK(home->fetches == 0);
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        multi_clear(&home->multis[i]);
    }
    CHECK(curl_share_cleanup(home->share) == CURLSHE_OK);
    resolver_clear(&home->resolver);
    free(home->sockets);
    loop_slot_set(loop, LOOP_SLOT_FETCH, NULL);
    home->magic = 0;
    free(home);
}
