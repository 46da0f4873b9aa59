#include "storage/runs/pin.h"

#include "storage/run_tables/pin_row.h"
#include "storage/runs/run_change.h"
#include "storage/runs/step_anchor_base.h"
#include "wire/replica_message.h"

static int64_t now_ms(struct store *store)
{
	return store_clock(store)->wall_ms(store_clock(store));
}

static int no_pin(struct span name, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The run has no pin '%.*s'.",
		(int)span_slice(name, 0, 128).len, (const char *)name.data);
}

static int check_step(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	struct step_row row;
	uint64_t anchor;
	const int found = step_row_find(db, run, step, &row, err);
	if (found == 0)
		return step_no_step(step, err);
	if (found == 1 && row.state != STEP_KEPT)
		return step_is_collected(db, run, step, &anchor, err);
	return found == 1 ? 0 : -1;
}

/* A pin that is there already may always move. */
static int check_room(struct db *db, int64_t run, struct span name, int64_t now, struct error *err)
{
	struct pin_message there;
	size_t count = 0;
	const int found = pin_row_find(db, run, name, now, &there, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (pin_row_count(db, run, now, &count, err) != 0)
		return -1;
	return count < PINS_OF_RUN_MAX
		? 0
		: error_set(err, ERROR_BUSY, "The run has %d pins, the most there may be.",
			  PINS_OF_RUN_MAX);
}

static int apply_put(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	struct run_row run;
	const int64_t now = now_ms(change->store);
	if (run_row_need(db, change->bucket, change->run, &run, err) != 0 ||
		check_step(db, run.id, change->pin.step, err) != 0)
		return -1;
	if (check_room(db, run.id, change->pin.name, now, err) != 0)
		return -1;
	change->pin.created_ms = now;
	change->pin.expires_ms =
		change->pin.ttl_s == 0 ? 0 : now + (int64_t)change->pin.ttl_s * 1000;
	if (pin_row_put(db, run.id, &change->pin, err) != 0)
		return -1;
	return step_anchor_want_pinned(db, run.id, change->pin.step, err);
}

/* The anchor that the server makes of a pinned step is background work. */
static void pinned(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	if (!base->failed)
		store_wake(change->store, STORE_STEP_WORK);
	change->done(change->owner);
}

static int apply_bad_name(struct change *base, struct db *db, struct error *err)
{
	(void)db;
	return replica_check_id("A pin's name", ((struct run_change *)base)->pin.name, err);
}

struct run_change *pin_put_start(struct store *store, struct span bucket, struct span run,
	const struct pin_message *pin, void (*done)(void *owner), void *owner)
{
	struct error ignored;
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->change.done = pinned;
	change->pin = *pin;
	change->pin.name = arena_copy(change->arena, pin->name);
	run_change_submit(change,
		replica_check_id("A pin's name", pin->name, &ignored) == 0 ? apply_put
									   : apply_bad_name);
	return change;
}

static int apply_remove(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	struct run_row run;
	struct pin_message there;
	if (run_row_need(db, change->bucket, change->run, &run, err) != 0)
		return -1;
	const int found =
		pin_row_find(db, run.id, change->name, now_ms(change->store), &there, err);
	if (found != 1)
		return found < 0 ? -1 : no_pin(change->name, err);
	return pin_row_remove(db, run.id, change->name, err);
}

struct run_change *pin_remove_start(struct store *store, struct span bucket, struct span run,
	struct span name, void (*done)(void *owner), void *owner)
{
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->name = arena_copy(change->arena, name);
	run_change_submit(change, apply_remove);
	return change;
}

int pin_find(struct store *store, struct span bucket, struct span run, struct span name,
	struct pin_message *out, struct error *err)
{
	struct run_row row;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = run_row_need(db, bucket, run, &row, err);
	if (found == 0) {
		found = pin_row_find(db, row.id, name, now_ms(store), out, err);
		found = found < 0 ? -1 : found == 1 ? 0 : no_pin(name, err);
	}
	store_reader_give(store, db);
	return found;
}

static int read_list(struct db *db, int64_t run, int64_t now, struct arena *arena,
	struct pin_message *pins, size_t *out_count, struct error *err)
{
	struct db_statement *const scan = pin_row_scan(db, run, now, err);
	int got = -1;
	while (*out_count < PINS_OF_RUN_MAX && (got = db_step(scan, err)) == 1) {
		pin_row_read(scan, &pins[*out_count]);
		pins[*out_count].name = arena_copy(arena, pins[*out_count].name);
		(*out_count)++;
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

int pin_list(struct store *store, struct span bucket, struct span run, struct arena *arena,
	struct pin_message **out, size_t *out_count, struct error *err)
{
	struct run_row row;
	*out_count = 0;
	*out = arena_take_array(arena, PINS_OF_RUN_MAX, sizeof(**out));
	if (*out == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing pins.");
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = run_row_need(db, bucket, run, &row, err);
	if (result == 0)
		result = read_list(db, row.id, now_ms(store), arena, *out, out_count, err);
	store_reader_give(store, db);
	if (result == 0 && arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing pins.");
	return result;
}
