#include "api/objects/anchor_wait.h"

enum { WAIT_MAX_MS = 60 * 1000 };
static const char RETRY_AFTER_SECONDS[] = "5";

static struct step_watch *watch_of(const struct exchange *exchange);
static int ask(struct anchor_wait *anchor, struct error *err);
static enum next begin_wait(struct anchor_wait *anchor);
static enum next fail(struct anchor_wait *anchor, const struct error *err);

void anchor_wait_init(struct anchor_wait *anchor, struct exchange *exchange)
{
	long_wait_init(&anchor->wait, exchange, exchange->context->shares.waits, WAIT_MAX_MS);
}

void anchor_wait_look(struct anchor_wait *anchor)
{
	anchor->seen = step_watch_generation(
		watch_of(anchor->wait.exchange), span_of(NULL, 0), run_anchors_topic());
}

enum next anchor_wait_for(struct anchor_wait *anchor)
{
	struct error err = {0};
	return ask(anchor, &err) == 0 ? begin_wait(anchor) : fail(anchor, &err);
}

bool anchor_wait_try(struct anchor_wait *anchor)
{
	struct error ignored = {0};
	return ask(anchor, &ignored) == 0 && long_wait_enter(&anchor->wait, &ignored) == 0 &&
		begin_wait(anchor) == NEXT_WAIT;
}

static struct step_watch *watch_of(const struct exchange *exchange)
{
	return store_step_watch(exchange->context->store);
}

/* Has the anchor made. Fails when it cannot be made, or when the time to wait for it is over. */
static int ask(struct anchor_wait *anchor, struct error *err)
{
	if (run_ask_anchor(anchor->wait.exchange->context->store, &anchor->anchor, err) != 0 ||
		long_wait_check(&anchor->wait, err) != 0)
		return -1;
	return long_wait_left_ms(&anchor->wait) > 0
		? 0
		: error_set(err, ERROR_BUSY,
			  "The anchor of step %llu is still being made: ask again.",
			  (unsigned long long)anchor->anchor.step);
}

static enum next begin_wait(struct anchor_wait *anchor)
{
	return long_wait_for(&anchor->wait, span_of(NULL, 0), run_anchors_topic(), anchor->seen);
}

static enum next fail(struct anchor_wait *anchor, const struct error *err)
{
	struct exchange *const exchange = anchor->wait.exchange;
	if (err->kind == ERROR_BUSY)
		exchange_add_header(exchange, "Retry-After", RETRY_AFTER_SECONDS);
	return exchange_fail(exchange, err);
}
