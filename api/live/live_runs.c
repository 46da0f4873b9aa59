/* A round reads the runs that changed in the catalog, then those whose fleets moved, some at a
 * time. A run of both is told once where they come together. */
#include "api/live/live_runs.h"

#include "api/auth/authorise.h"
#include "api/exchange/principal.h"
#include "api/exchange/server_event.h"
#include "api/live/run_element.h"
#include "storage/core/run_feed.h"
#include "storage/runs/replica.h"

enum { PIECE_RUNS = 16 };

/* What a piece is about. */
struct piece {
	struct run_change changes[2 * PIECE_RUNS];
	size_t count;
};

/* TOLD_LOST: nobody can tell what this caller must hear. */
enum told { TOLD_FAILED = -1, TOLD, TOLD_LOST };

static bool live_runs_may(struct live_part *part, struct exchange *exchange);
static bool live_runs_look(struct live_part *part, struct exchange *exchange);
static enum live_told live_runs_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out);
static bool collect(struct live_runs *runs, struct exchange *exchange, struct piece *piece);
static bool has_run(const struct piece *piece, int64_t run);
static enum told tell_one(
	struct exchange *exchange, const struct run_change *change, struct buffer *out);
static enum told tell_end(
	struct exchange *exchange, const struct run_change *change, struct buffer *out);
static void tell_removed(const struct run_change *change, struct buffer *out);
static enum live_told reset(
	struct live_runs *runs, struct exchange *exchange, const char *reason, struct buffer *out);
static void begin_anew(struct live_runs *runs, struct exchange *exchange);

void live_runs_begin(struct live_runs *runs, struct exchange *exchange)
{
	*runs = (struct live_runs){
		.part = {.may = live_runs_may, .look = live_runs_look, .tell = live_runs_tell}};
	begin_anew(runs, exchange);
}

/* Each run is judged when it is told. */
static bool live_runs_may(struct live_part *part, struct exchange *exchange)
{
	(void)part;
	(void)exchange;
	return true;
}

static bool live_runs_look(struct live_part *part, struct exchange *exchange)
{
	struct live_runs *const runs = (struct live_runs *)part;
	struct store *const store = exchange->context->store;
	runs->changes_until = run_feed_last(store_run_feed(store));
	runs->moves_until = replica_last_move(store);
	return runs->changes_until > runs->changes || runs->moves_until > runs->moves;
}

static enum live_told live_runs_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out)
{
	struct live_runs *const runs = (struct live_runs *)part;
	struct piece *const piece = arena_take(exchange->arena, sizeof(*piece));
	if (piece == NULL)
		return LIVE_FAILED;
	if (!collect(runs, exchange, piece))
		return reset(runs, exchange, "too_far_behind", out);
	for (size_t i = 0; i < piece->count; i++) {
		const enum told told = tell_one(exchange, &piece->changes[i], out);
		if (told == TOLD_FAILED)
			return LIVE_FAILED;
		if (told == TOLD_LOST)
			return reset(runs, exchange, "bucket_removed", out);
	}
	return runs->changes < runs->changes_until || runs->moves < runs->moves_until ? LIVE_MORE
										      : LIVE_DONE;
}

static bool collect(struct live_runs *runs, struct exchange *exchange, struct piece *piece)
{
	struct store *const store = exchange->context->store;
	int64_t moved[PIECE_RUNS];
	struct run_feed_page page = {
		.after = runs->changes, .until = runs->changes_until, .limit = PIECE_RUNS};
	if (!run_feed_read(store_run_feed(store), &page, exchange->arena, piece->changes))
		return false;
	runs->changes = page.after;
	piece->count = page.count;
	const size_t count =
		replica_moved_runs(store, &runs->moves, runs->moves_until, moved, PIECE_RUNS);
	for (size_t i = 0; i < count; i++)
		if (!has_run(piece, moved[i]))
			piece->changes[piece->count++] = (struct run_change){.run = moved[i]};
	return true;
}

static bool has_run(const struct piece *piece, int64_t run)
{
	for (size_t i = 0; i < piece->count; i++)
		if (piece->changes[i].run == run && !piece->changes[i].has_ended)
			return true;
	return false;
}

/* A run that has ended since is told by the change of its end. */
static enum told tell_one(
	struct exchange *exchange, const struct run_change *change, struct buffer *out)
{
	struct run_glance glance;
	struct run_rights rights;
	struct error ignored = {0};
	struct json_writer json;
	if (change->has_ended)
		return tell_end(exchange, change, out);
	const int found = run_glance_find(
		exchange->context->store, change->run, exchange->arena, &glance, &ignored);
	if (found < 0 ||
		(found == 1 && run_rights_judge(exchange, &glance, &rights, &ignored) != 0))
		return TOLD_FAILED;
	if (found == 0 || !rights.reads)
		return TOLD;
	buffer_add_text(out, "event: run\ndata: ");
	json_writer_init(&json, out);
	run_element_print(&glance, &rights, NULL, &json);
	buffer_add_text(out, "\n\n");
	return TOLD;
}

/* The end was noted in a transaction that may have failed, and the name may be in use again. Where
 * the bucket is gone too, nobody can tell any more who might know of the run; a bucket that has its
 * name now may be another account's. */
static enum told tell_end(
	struct exchange *exchange, const struct run_change *change, struct buffer *out)
{
	const struct run_ref ref = {
		.bucket = {change->bucket, change->bucket_id}, .name = change->name};
	struct bucket_ref bucket = ref.bucket;
	struct run_message run;
	struct error err = {0};
	const char *const key = arena_format(
		exchange->arena, "%.*s/", (int)ref.name.len, (const char *)ref.name.data);
	if (run_find(exchange->context->store, &ref, exchange->arena, &run, &err) == 0)
		return TOLD;
	if (err.kind == ERROR_NO_BUCKET && !exchange->principal->is_root)
		return TOLD_LOST;
	if (err.kind != ERROR_NO_RUN && err.kind != ERROR_NO_BUCKET)
		return TOLD_FAILED;
	const int may = authorise_permits(
		exchange, &bucket, span_text(key != NULL ? key : "/"), PERMISSION_READ, &err);
	if (may == 1)
		tell_removed(change, out);
	return may < 0 ? TOLD_FAILED : TOLD;
}

static void tell_removed(const struct run_change *change, struct buffer *out)
{
	struct json_writer json;
	server_event_begin(out, "run_removed", &json);
	json_writer_text(&json, "bucket", change->bucket);
	json_writer_text(&json, "run", change->name);
	server_event_end(out, &json);
}

/* The client fetches the lists anew, so all that has changed until now needs no telling. */
static enum live_told reset(
	struct live_runs *runs, struct exchange *exchange, const char *reason, struct buffer *out)
{
	server_event_print(out, "reset", "reason", span_text(reason));
	begin_anew(runs, exchange);
	return LIVE_DONE;
}

static void begin_anew(struct live_runs *runs, struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	runs->changes = runs->changes_until = run_feed_last(store_run_feed(store));
	runs->moves = runs->moves_until = replica_last_move(store);
}
