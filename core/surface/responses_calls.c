/* Calls of functions: whose each is, what is shown of ours, and their results. */
#include "surface/arguments.h"
#include "surface/responses.h"
#include "surface/results.h"

#include "base/check.h"

/* ---- whose is it? ---- */

static bool is_call(const struct responses_item *item)
{
    return item->kind == RESPONSES_CALL || item->awaits_client;
}

/* Results of ours stand before the client's calls; so does text that is held. A call whose name is not known may be
 * ours. */
bool responses_is_held(const struct responses *r, const struct responses_item *item)
{
    const struct responses_turn *turn = r->turn;
    for (size_t i = 0; i < turn->items_count && turn->items[i] != item; i++) {
        const struct responses_item *before = turn->items[i];
        bool runs = before->kind == RESPONSES_CALL && !before->is_dropped &&
                    (!before->is_decided || before->offer >= 0);
        bool waits = before->kind == RESPONSES_MESSAGE && r->request.holds_text;
        if (runs || waits || before->is_held) {
            return true;
        }
    }
    return false;
}

/* With parallel calls switched off the first call stands. */
static bool is_too_many(const struct responses *r, const struct responses_item *item)
{
    const struct responses_turn *turn = r->turn;
    for (size_t i = 0; i < turn->items_count && turn->items[i] != item; i++) {
        if (is_call(turn->items[i])) {
            return r->request.parallel_off;
        }
    }
    return false;
}

/* Shown are calls that will be run: those of a last turn, and those beyond what the client allows, are not. */
static bool is_to_be_hidden(const struct responses *r, const struct responses_item *item)
{
    const struct responses_turn *turn = r->turn;
    size_t calls = r->calls_counted;
    for (size_t i = 0; i < turn->items_count && turn->items[i] != item; i++) {
        calls += turn->items[i]->offer >= 0 && !turn->items[i]->is_dropped;
    }
    struct str hosted = r->request.set.offers[item->offer].hosted;
    return turn->is_last || calls >= r->request.calls_max ||
           responses_kind_of_hosted(hosted) == NULL;
}

/* Ids of calls pair them with their results: none twice. */
static void call_identify(const struct responses_turn *turn, struct responses_item *item)
{
    bool good = item->call_id.len > 0;
    for (size_t i = 0; i < turn->items_count && good && turn->items[i] != item; i++) {
        good = !str_eq(buf_str(&turn->items[i]->call_id), buf_str(&item->call_id));
    }
    if (!good) {
        buf_reset(&item->call_id);
        responses_id_mint(&item->call_id, "call_sg");
    }
}

void responses_call_decide(struct responses *r, struct responses_item *item)
{
    bool known = item->kind == RESPONSES_CALL ? item->name.len > 0 : item->awaits_client;
    if (item->is_decided || !known) {
        return;
    }
    item->is_decided = true;
    if (item->kind == RESPONSES_CALL) {
        item->offer = tools_offer_of(&r->request.set, buf_str(&item->name));
        call_identify(r->turn, item);
    }
    if (item->offer < 0) {
        responses_call_give(r, item);
    }
    bool runs_nothing = r->request.choice.kind == TOOL_CHOICE_NONE;
    item->is_dropped = is_too_many(r, item) || (item->offer >= 0 && runs_nothing);
    if (item->offer >= 0 && !item->is_dropped) {
        item->is_hidden = is_to_be_hidden(r, item);
    } else if (item->offer < 0) {
        item->is_held = responses_is_held(r, item);
    }
}

/* ---- ours, as they come ---- */

static void hosted_item_tell(struct responses *r, struct responses_shown *shown, const char *event,
                             struct buf *out)
{
    BUF_CLEANUP struct buf object = {0};
    shown->kind->put(shown, responses_includes(r->request.include, shown->kind->include), &object);
    responses_event_put(r, event, shown, (struct responses_member[]){{"item", buf_str(&object)}}, 1,
                        out);
}

void responses_hosted_announce(struct responses *r, struct responses_shown *shown, struct buf *out)
{
    shown->status = "in_progress";
    hosted_item_tell(r, shown, "response.output_item.added", out);
    shown->kind->opened(r, shown, out);
}

static void hosted_open(struct responses *r, struct responses_item *item, struct buf *out)
{
    struct responses_shown *shown = item->shown = responses_shown_add(r);
    shown->kind = responses_kind_of_hosted(r->request.set.offers[item->offer].hosted);
    responses_id_mint(&shown->id, shown->kind->mark);
    member_stream_init(&shown->text, shown->kind->member);
    if (shown->kind->container != NULL) {
        const char *container = r->container.id(r->container.context);
        (void)buf_puts(&shown->container_id, container); /* small: fits */
    }
    responses_hosted_announce(r, shown, out);
}

static void hosted_argue(struct responses *r, struct responses_item *item, bool ended,
                         struct buf *out)
{
    struct responses_shown *shown = item->shown;
    struct arena *arena = arena_new(0);
    member_stream_feed(&shown->text,
                       responses_inner_next(&item->arguments, &item->arguments_read, ended, arena));
    arena_free(arena);
    if (ended) {
        member_stream_end(&shown->text);
    }
    if (!shown->is_argued) {
        shown->is_argued = ended;
        shown->kind->argued(r, shown, ended, out);
    }
}

void responses_hosted_show(struct responses *r, struct responses_item *item, bool ended,
                           struct buf *out)
{
    if (!item->is_decided || item->offer < 0 || item->is_dropped || item->is_hidden) {
        return;
    }
    if (item->shown == NULL) {
        hosted_open(r, item, out);
    }
    if (!item->shown->is_closed) {
        hosted_argue(r, item, ended, out);
    }
}

void responses_hosted_close(struct responses *r, struct responses_shown *shown, const char *status,
                            struct buf *out)
{
    if (shown->is_closed) {
        return;
    }
    if (!shown->is_argued) {
        shown->is_argued = true;
        shown->kind->argued(r, shown, true, out);
    }
    shown->status = status != NULL ? status : shown->kind->unfinished;
    shown->is_closed = true;
    hosted_item_tell(r, shown, "response.output_item.done", out);
}

/* ---- at the turn's end ---- */

static struct str kept_copy(struct responses_turn *turn, struct str text)
{
    return (struct str){check_alloc(arena_copy(turn->arena, text)), text.len};
}

/* What the tool gets, and as inner text what goes up. */
static void arguments_fit(struct responses_turn *turn, struct responses_item *item)
{
    struct str text = responses_inner_text(buf_str(&item->arguments), turn->arena);
    struct str object, settled = arguments_settle(text, &object);
    BUF_CLEANUP struct buf inner = {0};
    item->settled = settled;
    if (str_eq(object, text)) {
        item->history = kept_copy(turn, buf_str(&item->arguments));
        return;
    }
    (void)buf_put_json_inner(&inner, object); /* as large as what is kept */
    item->history = kept_copy(turn, buf_str(&inner));
}

static void call_settle(struct responses *r, struct responses_turn *turn,
                        struct responses_item *item)
{
    responses_call_decide(r, item);
    if (!item->is_decided) { /* a name that never came: nobody can do anything with it */
        item->is_dropped = item->is_decided = true;
    }
    if (item->is_dropped) {
        return;
    }
    if (item->offer < 0) {
        turn->client_calls++;
        return;
    }
    struct tool_offer *offer = &r->request.set.shown[item->offer];
    arguments_fit(turn, item);
    offer->called = true;
    turn->ours[turn->ours_count] = (struct surface_call){.offer = (size_t)item->offer,
                                                         .id = buf_str(&item->call_id),
                                                         .name = buf_str(&item->name),
                                                         .arguments = item->settled,
                                                         .options = offer->options};
    turn->ours_items[turn->ours_count++] = item;
}

void responses_calls_settle(struct responses *r, struct responses_turn *turn)
{
    turn->ours = arena_get(turn->arena, (turn->items_count + 1) * sizeof *turn->ours);
    turn->ours_items = arena_get(turn->arena, (turn->items_count + 1) * sizeof(void *));
    for (size_t i = 0; i < turn->items_count; i++) {
        if (is_call(turn->items[i])) {
            call_settle(r, turn, turn->items[i]);
        }
    }
}

/* ---- results ---- */

static struct responses_item *item_of(struct responses *r, size_t call)
{
    CHECK(r->last != NULL);
    CHECK(call < r->last->ours_count);
    return r->last->ours_items[call];
}

void responses_call_begin(struct surface_exchange *exchange, size_t call, struct str container_id,
                          struct buf *out)
{
    (void)container_id; /* it was announced */
    struct responses *r = responses_of(exchange);
    struct responses_shown *shown = item_of(r, call)->shown;
    if (shown != NULL && !shown->is_closed) {
        shown->kind->begun(r, shown, out);
    }
}

void responses_call_end(struct surface_exchange *exchange, size_t call,
                        const struct surface_result *result, struct buf *out)
{
    static const char *const statuses[] = {[SURFACE_CALL_COMPLETED] = "completed",
                                           [SURFACE_CALL_FAILED] = "failed",
                                           [SURFACE_CALL_NOT_RUN] = NULL};
    struct responses *r = responses_of(exchange);
    struct responses_item *item = item_of(r, call);
    struct responses_shown *shown = item->shown;
    buf_reset(&item->result);
    (void)buf_append_str(&item->result, result->model_text); /* bounded by the loop */
    item->has_result = true;
    r->calls_counted += result->status != SURFACE_CALL_NOT_RUN;
    if (result->status == SURFACE_CALL_COMPLETED) {
        cited_pages_add(&r->pages, result, r->arena);
    }
    if (shown == NULL || shown->is_closed) {
        return;
    }
    (void)buf_append_str(&shown->call_id, buf_str(&item->call_id)); /* bounded, likewise below */
    (void)buf_append_str(&shown->arguments, item->settled);
    (void)buf_append_str(&shown->model_text, result->model_text);
    if (result->status != SURFACE_CALL_NOT_RUN) {
        shown->kind->ended(r, shown, result, out);
    }
    responses_hosted_close(r, shown, statuses[result->status], out);
}

bool responses_results_cut(struct surface_exchange *exchange, size_t bytes_max)
{
    struct responses_turn *turn = responses_of(exchange)->last;
    bool is_cut = false;
    for (size_t i = 0; turn != NULL && i < turn->ours_count; i++) {
        is_cut =
            result_cut(&turn->ours_items[i]->result, bytes_max, "the context is full") || is_cut;
    }
    return is_cut;
}
