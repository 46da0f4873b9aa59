#include "api/live/handlers.h"

#include "api/exchange/page_query.h"
#include "api/live/run_walk.h"

enum {
	PAGE_RUNS = 100,
	PAGE_MAX_RUNS = 1000,
	PAGE_FULL_BYTES = 4 * 1024 * 1024, /* a page ends behind so much, whatever its limit */
	BODY_MAX_BYTES = PAGE_FULL_BYTES + 4 * RUN_ELEMENT_MAX_BYTES
};

struct listing {              /* the exchange's state */
	struct run_walk walk; /* first */
	struct exchange *exchange;
	struct buffer body;
	struct json_writer json;
	uint64_t limit;
	uint64_t shown;
	const char *last; /* name of the last run that was shown */
	bool has_more;
};

static int read_parameters(struct exchange *exchange, struct listing *listing, struct error *err);
static bool list_all_runs_show(
	struct run_walk *walk, const struct run_glance *glance, const struct run_rights *rights);
static void list_all_runs_release(struct exchange *exchange);

enum next list_all_runs_begin(struct exchange *exchange)
{
	struct listing *const listing = arena_take(exchange->arena, sizeof(*listing));
	struct error err = {0};
	ASSERT(listing != NULL);
	*listing = (struct listing){.walk = {.show = list_all_runs_show}, .exchange = exchange};
	buffer_init(&listing->body, BODY_MAX_BYTES);
	exchange->state = listing;
	exchange->release = list_all_runs_release;
	if (read_parameters(exchange, listing, &err) != 0)
		return exchange_fail(exchange, &err);
	json_writer_init(&listing->json, &listing->body);
	json_writer_object(&listing->json, NULL);
	json_writer_array(&listing->json, "runs");
	return run_walk_begin(exchange, &listing->walk);
}

enum next list_all_runs_resume(struct exchange *exchange)
{
	struct listing *const listing = exchange->state;
	bool failed;
	const enum next next = run_walk_go_on(exchange, &listing->walk, &failed);
	if (next != NEXT_REPLY || failed)
		return next;
	json_writer_end(&listing->json, ']');
	if (listing->has_more && listing->last != NULL)
		json_writer_text(&listing->json, "next", span_text(listing->last));
	json_writer_end(&listing->json, '}');
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return exchange_reply_buffer(exchange, 200, "application/json", &listing->body);
}

static int read_parameters(struct exchange *exchange, struct listing *listing, struct error *err)
{
	struct span after;
	if (page_query_limit(exchange, PAGE_RUNS, PAGE_MAX_RUNS, &listing->limit, err) != 0)
		return -1;
	if (!exchange_query(exchange, "after", &after) || after.len == 0)
		return 0;
	listing->walk.after = after;
	if (span_find(after, '/') > 0 &&
		span_split(&listing->walk.after, '/', &listing->walk.after_bucket))
		return 0;
	return error_set(
		err, ERROR_INVALID, "The parameter after must be the name of a run, BUCKET/RUN.");
}

static bool list_all_runs_show(
	struct run_walk *walk, const struct run_glance *glance, const struct run_rights *rights)
{
	struct listing *const listing = (struct listing *)walk;
	const struct run_message *const run = &glance->run;
	listing->has_more = listing->shown == listing->limit || listing->body.len > PAGE_FULL_BYTES;
	if (listing->has_more)
		return false;
	run_element_print(glance, rights, NULL, &listing->json);
	listing->shown++;
	listing->last = arena_format(listing->exchange->arena, "%.*s/%.*s", (int)run->bucket.len,
		(const char *)run->bucket.data, (int)run->run.len, (const char *)run->run.data);
	return true;
}

static void list_all_runs_release(struct exchange *exchange)
{
	buffer_release(&((struct listing *)exchange->state)->body);
}
