/* Pins are rows that retention reads (step_keep.h). Putting one also makes its step want an anchor,
 * which the step worker makes. */
#include "storage/runs/pin.h"

#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/step_anchor_base.h"
#include "storage/runs/step_read.h"
#include "wire/replica_message.h"

enum { PIN_ARENA_BYTES = 1024 * 1024 };

struct pin_change {
	struct call call;
	struct run_ref run;
	struct pin_message pin; /* only its name when the pin is to be removed */
};

static struct call *make(struct store *store, const struct call_kind *kind,
	const struct run_ref *run, const struct pin_message *pin);
static int pin_put_apply(struct call *call, struct db *db, struct error *err);
static int check_room(struct db *db, int64_t run, struct span name, int64_t now, struct error *err);
static void pin_put_settle(struct call *call);
static int pin_remove_apply(struct call *call, struct db *db, struct error *err);
static bool is_ours(struct span name);
static int no_pin(struct span name, struct error *err);
static int read_list(struct db_statement *scan, struct arena *arena, struct pin_message *pins,
	size_t *out_count, struct error *err);

static const struct call_kind put_kind = {
	.stages = {{.apply = pin_put_apply}},
	.settle = pin_put_settle,
};

static const struct call_kind remove_kind = {.stages = {{.apply = pin_remove_apply}}};

struct call *pin_put_call(
	struct store *store, const struct run_ref *run, const struct pin_message *pin)
{
	return make(store, &put_kind, run, pin);
}

const struct pin_message *pin_put_result(const struct call *call)
{
	ASSERT(call->kind == &put_kind);
	return &((const struct pin_change *)call)->pin;
}

struct call *pin_remove_call(struct store *store, const struct run_ref *run, struct span name)
{
	return make(store, &remove_kind, run, &(struct pin_message){.name = name});
}

int pin_find(struct store *store, const struct run_ref *run, struct span name,
	struct pin_message *out, struct error *err)
{
	struct run_row row;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = run_row_need(db, run, &row, err);
	if (found == 0) {
		found = is_ours(name)
			? 0
			: pin_row_find(db, row.id, name, store_now_ms(store), out, err);
		found = found < 0 ? -1 : found == 1 ? 0 : no_pin(name, err);
	}
	store_reader_give(store, db);
	return found;
}

int pin_list(struct store *store, const struct run_ref *run, struct arena *arena,
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
	int result = run_row_need(db, run, &row, err);
	if (result == 0)
		result = read_list(pin_row_scan(db, row.id, store_now_ms(store), err), arena, *out,
			out_count, err);
	store_reader_give(store, db);
	if (result == 0 && arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing pins.");
	return result;
}

static struct call *make(struct store *store, const struct call_kind *kind,
	const struct run_ref *run, const struct pin_message *pin)
{
	struct pin_change *const change = call_new(sizeof(*change), kind, store, PIN_ARENA_BYTES);
	change->run = run_ref_copy(run, change->call.arena);
	change->pin = *pin;
	change->pin.name = arena_copy(change->call.arena, pin->name);
	return &change->call;
}

static int pin_put_apply(struct call *call, struct db *db, struct error *err)
{
	struct pin_change *const change = (struct pin_change *)call;
	struct pin_message *const pin = &change->pin;
	struct run_row run;
	struct step_row step;
	uint64_t anchor;
	const int64_t now = store_now_ms(call->store);
	if (replica_check_id("A pin's name", pin->name, err) != 0 ||
		run_row_need(db, &change->run, &run, err) != 0 ||
		step_need_kept(db, run.id, pin->step, &step, &anchor, err) != 0 ||
		check_room(db, run.id, pin->name, now, err) != 0)
		return -1;
	pin->created_ms = now;
	pin->expires_ms = pin->ttl_s == 0 ? 0 : now + (int64_t)pin->ttl_s * 1000;
	if (pin_row_put(db, run.id, pin, err) != 0)
		return -1;
	return step_anchor_want_pinned(db, run.id, pin->step, err);
}

/* An existing pin may always move. */
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
		: error_set(err, ERROR_BUSY, "The run has %d pins, which is the limit.",
			  PINS_OF_RUN_MAX);
}

/* The step worker makes the anchor of the pinned step. */
static void pin_put_settle(struct call *call)
{
	if (!call->failed)
		store_wake(call->store, STORE_STEP_WORK);
}

static int pin_remove_apply(struct call *call, struct db *db, struct error *err)
{
	const struct pin_change *const change = (const struct pin_change *)call;
	const struct span name = change->pin.name;
	struct run_row run;
	struct pin_message there;
	if (run_row_need(db, &change->run, &run, err) != 0)
		return -1;
	const int found = is_ours(name)
		? 0
		: pin_row_find(db, run.id, name, store_now_ms(call->store), &there, err);
	if (found != 1)
		return found < 0 ? -1 : no_pin(name, err);
	return pin_row_remove(db, run.id, name, err);
}

/* A rollback is no client's pin: it has requests of its own. */
static bool is_ours(struct span name)
{
	return span_equal_text(name, PIN_ROLLBACK);
}

static int no_pin(struct span name, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The run has no pin '%.*s'.",
		(int)span_slice(name, 0, 128).len, (const char *)name.data);
}

/* Ends the scan. */
static int read_list(struct db_statement *scan, struct arena *arena, struct pin_message *pins,
	size_t *out_count, struct error *err)
{
	int got = -1;
	while (*out_count < PINS_OF_RUN_MAX && (got = db_step(scan, err)) == 1) {
		pin_row_read(scan, &pins[*out_count]);
		if (is_ours(pins[*out_count].name))
			continue;
		pins[*out_count].name = arena_copy(arena, pins[*out_count].name);
		(*out_count)++;
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}
