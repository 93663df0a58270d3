/* Keeping sessions over a restart: see keeper.h. */
#include "gateway/keeper.h"

#include "base/check.h"
#include "base/identity.h"
#include "base/log.h"
#include "gateway/passthrough.h"
#include "gateway/state_file.h"
#include "session/kept.h"

#include <stdlib.h>

_Static_assert(KEPT_SECRET_BYTES == PASSTHROUGH_SECRET_BYTES, "it is that secret");

struct keeper {
    struct gateway *gateway;
    struct state_file *file;
    struct fiber *fiber;  /* that writes now and then */
    struct fiber *waiter; /* for its end */
    bool is_failing;      /* the last write failed */
    uint64_t written;     /* the registry's changes when it was written last */
};

/* ---- whose handles they are ---- */

static void account_of(const struct config *config, struct sandbox *sandbox)
{
    static const char *const modes[] = {
        [AUTH_KEYS] = "keys", [AUTH_NONE] = "none", [AUTH_PASSTHROUGH] = "passthrough"};
    const struct instance *instance = sandbox->instance;
    const struct sg_plugin *plugin = instance->plugin;
    const char *account = "";
    if ((plugin->flags & SG_DURABLE) != 0 && plugin->sandbox->account != NULL) {
        account = plugin->sandbox->account(instance->self);
    }
    sandbox->is_durable = (plugin->flags & SG_DURABLE) != 0 && account != NULL;
    if (sandbox->is_durable) {
        const struct str parts[] = {str_of(modes[config->auth.mode]), str_of(plugin->name),
                                    str_of(account)};
        sha256_parts(parts, COUNT_OF(parts), sandbox->account);
    }
}

static void accounts_find(struct config *config)
{
    bool is_any = false;
    for (size_t i = 0; i < config->sandboxes_count; i++) {
        account_of(config, &config->sandboxes[i]);
        is_any = is_any || config->sandboxes[i].is_durable;
    }
    if (!is_any) {
        struct log_line line;
        log_begin(&line, SG_WARN, "nothing_outlives");
        log_text(&line, "message",
                 "sessions.on_shutdown is 'keep', but no sandbox here outlives the gateway: a "
                 "restart ends all sessions, and tells them so");
        log_end(&line);
    }
}

int keeper_new(struct gateway *gateway, struct keeper **ret, struct sg_error *err)
{
    const struct sessions_config *sessions = &gateway->config->sessions;
    if (sessions->state_file == NULL) {
        return 0;
    }
    struct state_file *file;
    int code = state_file_open(sessions->state_file, &file, err);
    if (code != 0) {
        return code;
    }
    struct keeper *keeper = check_alloc(calloc(1, sizeof *keeper));
    keeper->gateway = gateway;
    keeper->file = file;
    accounts_find(gateway->config);
    *ret = keeper;
    return 0;
}

void keeper_free(struct keeper *keeper)
{
    if (keeper != NULL) {
        CHECK(keeper->fiber == NULL);
        state_file_close(keeper->file);
        free(keeper);
    }
}

/* ---- the start ---- */

static struct take_up_caps caps_of(void *ctx, struct str identity)
{
    const struct settings *settings = ctx;
    const struct auth_key *key = keys_named(&settings->keys, identity_key(identity));
    return key == NULL ? (struct take_up_caps){0}
                       : (struct take_up_caps){key->per_identity, key->max_containers};
}

static void report_log(const struct take_up_report *report)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "state_taken_up");
    log_int(&line, "containers", (int64_t)report->taken);
    log_int(&line, "evicted", (int64_t)report->evicted);
    log_int(&line, "losses", (int64_t)report->notices);
    log_int(&line, "not_taken",
            (int64_t)(report->without_sandbox + report->of_other_account + report->ended +
                      report->without_room + report->doubled));
    log_end(&line);
}

static void refusal_log(bool is_aside, const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "state_refused");
    log_text(&line, "message", err->message);
    log_text(&line, "set_aside", is_aside ? "as FILE.bad" : "could not be: it is replaced later");
    log_end(&line);
}

/* Removed before it is used: whatever it may do to us, it does so once. */
static int state_load(struct keeper *keeper, struct buf *text, struct kept *ret,
                      struct sg_error *err)
{
    uint8_t secret[KEPT_SECRET_BYTES];
    bool has_secret = false;
    int code = state_file_read(keeper->file, KEPT_BYTES_MAX, text, err);
    if (code == 0) {
        code = kept_read(buf_str(text), ret, secret, &has_secret, err);
        if (code != 0) {
            (void)error_context(err, "sessions.state_file: '%s' is not taken up", /* the code */
                                keeper->gateway->config->sessions.state_file);
        }
    }
    code = code == 0 ? state_file_remove(keeper->file, err) : code;
    if (code == 0 && has_secret) {
        passthrough_use_secret(keeper->gateway->passthrough, secret);
    }
    explicit_bzero(secret, sizeof secret);
    return code;
}

void keeper_take_up(struct keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    struct gateway *gateway = keeper->gateway;
    BUF_CLEANUP struct buf text = {.max = KEPT_BYTES_MAX + 1};
    struct kept kept = {.arena = arena_new(0)}; /* what it says lies in the text, or here */
    struct sg_error err = {0};
    int code = state_load(keeper, &text, &kept, &err);
    if (code == 0) {
        struct settings *settings = settings_take(&gateway->settings);
        struct take_up options = {.sandboxes = gateway->config->sandboxes,
                                  .sandboxes_count = gateway->config->sandboxes_count,
                                  .caps = caps_of,
                                  .ctx = settings};
        struct take_up_report report;
        registry_take_up(gateway->registry, &options, &kept, &report);
        settings_unref(settings);
        report_log(&report);
    } else if (code != SG_E_NOT_FOUND) {
        refusal_log(state_file_set_aside(keeper->file), &err);
    }
    arena_free(kept.arena);
}

/* ---- writing ---- */

struct writing { /* on a worker thread */
    struct keeper *keeper;
    const struct kept *kept; /* NULL: it is only seen to that the file is ours */
    struct sg_error err;
};

static int lock_hold(struct keeper *keeper, struct sg_error *err)
{
    bool was_gone = false;
    int code = state_file_hold(keeper->file, &was_gone, err);
    if (was_gone) {
        struct log_line line;
        log_begin(&line, SG_WARN, "state_lock_retaken");
        log_text(&line, "message",
                 "the file of the lock was removed: leave it where it is, for it keeps a second "
                 "gateway out");
        log_end(&line);
    }
    return code;
}

static int write_blocking(void *arg)
{
    struct writing *writing = arg;
    struct keeper *keeper = writing->keeper;
    int code = lock_hold(keeper, &writing->err);
    if (code != 0 || writing->kept == NULL) {
        return code;
    }
    const struct gateway *gateway = keeper->gateway;
    BUF_CLEANUP struct buf text = {.max = KEPT_BYTES_MAX + KIB};
    const uint8_t *secret = gateway->config->auth.mode == AUTH_PASSTHROUGH
                                ? passthrough_secret(gateway->passthrough)
                                : NULL;
    if (writing->kept->containers_count + writing->kept->notices_count == 0) {
        return state_file_remove(keeper->file, &writing->err);
    }
    if (!kept_write(writing->kept, secret, &text)) {
        code = error_set(&writing->err, SG_E_LIMIT,
                         "sessions.state_file: the state of all sessions has more than %zu bytes",
                         KEPT_BYTES_MAX);
    } else {
        code = state_file_write(keeper->file, buf_str(&text), &writing->err);
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    return code;
}

/* Waits. */
static int kept_put(struct keeper *keeper, const struct kept *kept, struct sg_error *err)
{
    struct writing writing = {.keeper = keeper, .kept = kept};
    int code = fiber_blocking(write_blocking, &writing, err);
    if (writing.err.code != 0) {
        *err = writing.err;
    }
    return code;
}

/* Once when it begins to fail, once when it works again: it is tried every few seconds. */
static void writing_log(struct keeper *keeper, int code, const struct sg_error *err)
{
    struct log_line line;
    if ((code != 0) == keeper->is_failing) {
        return;
    }
    keeper->is_failing = code != 0;
    log_begin(&line, code != 0 ? SG_ERROR : SG_INFO,
              code != 0 ? "state_write_failed" : "state_write_recovered");
    log_text(&line, "message", code != 0 ? err->message : NULL);
    log_end(&line);
}

static void write_changes(struct keeper *keeper)
{
    struct registry *registry = keeper->gateway->registry;
    struct registry_stats stats;
    registry_stats(registry, &stats);
    uint64_t changes = registry_changes(registry);
    bool is_changed = changes != keeper->written || stats.leases > 0; /* in use, time is a change */
    struct kept kept = {.arena = arena_new(0)};
    struct sg_error err = {0};
    if (is_changed) {
        registry_look(registry, &kept);
    }
    int code = kept_put(keeper, is_changed ? &kept : NULL, &err);
    arena_free(kept.arena);
    if (code == 0) {
        keeper->written = changes;
    }
    writing_log(keeper, code, &err);
}

static void write_now_and_then(void *arg)
{
    struct keeper *keeper = arg;
    do {
        write_changes(keeper);
    } while (fiber_sleep(keeper->gateway->config->sessions.state_every_ms) == 0);
    keeper->fiber = NULL;
    if (keeper->waiter != NULL) {
        fiber_wake(keeper->waiter);
    }
}

void keeper_start(struct keeper *keeper)
{
    struct sg_error err = {0};
    if (keeper == NULL || keeper->gateway->config->sessions.state_every_ms == 0) {
        return;
    }
    if (fiber_start(loop_self(), "keeper", write_now_and_then, keeper, &keeper->fiber, &err) != 0) {
        writing_log(keeper, err.code, &err); /* the end writes all the same */
    }
}

void keeper_stop(struct keeper *keeper)
{
    if (keeper == NULL || keeper->fiber == NULL) {
        return;
    }
    keeper->waiter = fiber_self();
    fiber_cancel(keeper->fiber);
    while (keeper->fiber != NULL) {
        (void)fiber_park(DEADLINE_NONE); /* a write under way ends by itself */
    }
    keeper->waiter = NULL;
}

int keeper_keep(void *ctx, const struct kept *kept, struct sg_error *err)
{
    struct keeper *keeper = ctx;
    struct sg_error scratch = {0};
    struct log_line line;
    int code = kept_put(keeper, kept, err);
    bool ignored = false;
    if (code != 0) { /* what the file says is deleted now */
        if (state_file_hold(keeper->file, &ignored, &scratch) == 0) { /* else it is another's */
            (void)state_file_remove(keeper->file, &scratch); /* or its containers are found gone */
        }
        return code;
    }
    log_begin(&line, SG_INFO, "state_kept");
    log_int(&line, "containers", (int64_t)kept->containers_count);
    log_int(&line, "losses", (int64_t)kept->notices_count);
    log_end(&line);
    return 0;
}
