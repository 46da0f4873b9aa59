#include "api/live/run_walk.h"

enum { SLICE_RUNS = 64, SLICE_MS = 5 };

/* No name of a run begins with this byte or a higher one. */
static const struct span behind_all_runs = {(const uint8_t *)"\x7f", 1};

/* How a slice ended. */
enum slice { SLICE_FAILED = -1, SLICE_OVER, SLICE_MORE, SLICE_STOPPED };

static enum slice walk_slice(struct exchange *exchange, struct run_walk *walk, struct error *err);
static int judge(struct exchange *exchange, const struct run_glance *glance, struct run_rights *out,
	bool *out_skips, struct error *err);
static void move_behind(struct exchange *exchange, struct run_walk *walk,
	const struct run_glance *glance, bool skips);
static int64_t now_ms(const struct exchange *exchange);

enum next run_walk_begin(struct exchange *exchange, struct run_walk *walk)
{
	const struct run_glance_scan scan = {.after_bucket = walk->after_bucket,
		.after = walk->after,
		.names_only = walk->names_only,
		.limit = SLICE_RUNS};
	ASSERT(walk->show != NULL && exchange->principal != NULL);
	return exchange_await(exchange, run_glance_call(exchange->context->store, &scan));
}

enum next run_walk_go_on(struct exchange *exchange, struct run_walk *walk, bool *out_failed)
{
	struct error err = {0};
	const enum slice slice = call_outcome(exchange->call, &err) != 0
		? SLICE_FAILED
		: walk_slice(exchange, walk, &err);
	*out_failed = slice == SLICE_FAILED;
	if (slice == SLICE_FAILED)
		return exchange_fail(exchange, &err);
	return slice == SLICE_MORE ? run_walk_begin(exchange, walk) : NEXT_REPLY;
}

static enum slice walk_slice(struct exchange *exchange, struct run_walk *walk, struct error *err)
{
	const int64_t until_ms = now_ms(exchange) + SLICE_MS;
	size_t count;
	const struct run_glance *const runs = run_glance_result(exchange->call, &count);
	for (size_t i = 0; i < count; i++) {
		struct run_rights rights;
		bool skips = false;
		if (judge(exchange, &runs[i], &rights, &skips, err) != 0)
			return SLICE_FAILED;
		if (arena_overflowed(exchange->arena)) {
			error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
			return SLICE_FAILED;
		}
		if (rights.reads && !walk->show(walk, &runs[i], &rights))
			return SLICE_STOPPED;
		move_behind(exchange, walk, &runs[i], skips);
		if (skips || (i + 1 < count && now_ms(exchange) >= until_ms))
			return SLICE_MORE;
	}
	return count == SLICE_RUNS ? SLICE_MORE : SLICE_OVER;
}

static int judge(struct exchange *exchange, const struct run_glance *glance, struct run_rights *out,
	bool *out_skips, struct error *err)
{
	if (run_rights_judge(exchange, glance, out, err) != 0)
		return -1;
	*out_skips = !out->reads && run_rights_are_none(exchange, glance);
	return 0;
}

static void move_behind(struct exchange *exchange, struct run_walk *walk,
	const struct run_glance *glance, bool skips)
{
	walk->after_bucket = arena_copy(exchange->arena, glance->run.bucket);
	walk->after = skips ? behind_all_runs : arena_copy(exchange->arena, glance->run.run);
}

static int64_t now_ms(const struct exchange *exchange)
{
	const struct clock_source *const clock = exchange->context->clock;
	return clock->monotonic_ms(clock);
}
