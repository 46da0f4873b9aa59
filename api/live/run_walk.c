#include "api/live/run_walk.h"

enum { SLICE_RUNS = 64, SLICE_MS = 5, JUDGE_ARENA_BYTES = 4 * 1024 * 1024 };

/* No name of a run begins with this byte or a higher one. */
static const struct span behind_all_runs = {(const uint8_t *)"\x7f", 1};

/* How a slice ended. */
enum slice { SLICE_FAILED = -1, SLICE_OVER, SLICE_MORE, SLICE_STOPPED };

static enum next read_slice(struct exchange *exchange, const struct run_walk *walk,
	struct span bucket, struct span run);
static enum slice walk_slice(struct exchange *exchange, struct run_walk *walk,
	const struct run_glance **out_last, bool *out_skips, struct error *err);
static int judge(struct exchange *exchange, const struct run_glance *glance, struct run_rights *out,
	bool *out_skips, struct error *err);
static int64_t now_ms(const struct exchange *exchange);

enum next run_walk_begin(struct exchange *exchange, struct run_walk *walk)
{
	ASSERT(walk->show != NULL && exchange->principal != NULL);
	return read_slice(exchange, walk, walk->after_bucket, walk->after);
}

/* The names of the next place lie in the call of this slice, which ends when the next one has
 * copied them; so a walk takes no memory of the exchange, however long it is. */
enum next run_walk_go_on(struct exchange *exchange, struct run_walk *walk, bool *out_failed)
{
	struct error err = {0};
	const struct run_glance *last = NULL;
	bool skips = false;
	const enum slice slice = call_outcome(exchange->call, &err) != 0
		? SLICE_FAILED
		: walk_slice(exchange, walk, &last, &skips, &err);
	*out_failed = slice == SLICE_FAILED;
	if (slice == SLICE_FAILED)
		return exchange_fail(exchange, &err);
	if (slice != SLICE_MORE)
		return NEXT_REPLY;
	return read_slice(
		exchange, walk, last->run.bucket, skips ? behind_all_runs : last->run.run);
}

static enum next read_slice(
	struct exchange *exchange, const struct run_walk *walk, struct span bucket, struct span run)
{
	const struct run_glance_scan scan = {.after_bucket = bucket,
		.after = run,
		.names_only = walk->names_only,
		.limit = SLICE_RUNS};
	return exchange_await(exchange, run_glance_call(exchange->context->store, &scan));
}

/* *out_last: the last run that was looked at, if there was one. *out_skips: the walk goes on behind
 * all runs of its bucket. */
static enum slice walk_slice(struct exchange *exchange, struct run_walk *walk,
	const struct run_glance **out_last, bool *out_skips, struct error *err)
{
	const int64_t until_ms = now_ms(exchange) + SLICE_MS;
	size_t count;
	const struct run_glance *const runs = run_glance_result(exchange->call, &count);
	for (size_t i = 0; i < count; i++) {
		struct run_rights rights;
		*out_last = &runs[i];
		if (judge(exchange, &runs[i], &rights, out_skips, err) != 0)
			return SLICE_FAILED;
		if (rights.reads && !walk->show(walk, &runs[i], &rights))
			return SLICE_STOPPED;
		if (*out_skips || (i + 1 < count && now_ms(exchange) >= until_ms))
			return SLICE_MORE;
	}
	return count == SLICE_RUNS ? SLICE_MORE : SLICE_OVER;
}

/* In memory of its own, because what it asks the catalog for is needed for this run alone. */
static int judge(struct exchange *exchange, const struct run_glance *glance, struct run_rights *out,
	bool *out_skips, struct error *err)
{
	struct arena *const own = exchange->arena;
	exchange->arena = arena_new(JUDGE_ARENA_BYTES);
	int result = run_rights_judge(exchange, glance, out, err);
	*out_skips = result == 0 && !out->reads && run_rights_are_none(exchange, glance);
	if (result == 0 && arena_overflowed(exchange->arena))
		result = error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	arena_free(exchange->arena);
	exchange->arena = own;
	return result;
}

static int64_t now_ms(const struct exchange *exchange)
{
	const struct clock_source *const clock = exchange->context->clock;
	return clock->monotonic_ms(clock);
}
