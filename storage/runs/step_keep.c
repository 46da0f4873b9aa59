/* Everything that must be kept is collected as ranges of steps. These are joined, extended
 * downwards to an anchor each, and joined again. The memory is bounded: when replicas want more
 * than WANTED_MAX steps, all steps from the last known one to the head are kept. */
#include "storage/runs/step_keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/run_tables/path_hold.h"
#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/step_row.h"

enum {
	WANTED_MAX = 64,
	/* pins and the rollback */
	PIN_RANGES_MAX = PINS_OF_RUN_MAX + 1,
	/* the last steps; replicas that hold a step, wanted steps, and those beyond them; paths;
	 * pins */
	RANGES_MAX = 1 + (1 + WANTED_MAX + 1) + PATH_HOLD_RANGES_MAX + PIN_RANGES_MAX
};

static bool is_of_this_start(struct store *store, const struct run_row *run);
static void add(struct step_keep *keep, uint64_t first, uint64_t last);
static void add_replicas(struct store *store, const struct run_row *run, struct step_keep *keep);
static int add_pins(
	struct store *store, struct db *db, int64_t run, struct step_keep *keep, struct error *err);
static int root_range(struct db *db, const struct run_row *run, struct step_range *range,
	bool *out_rooted, struct error *err);
static int check_pins(struct store *store, struct db *db, const struct run_row *run, uint64_t step,
	struct error *err);
static int check_replicas(
	struct store *store, const struct run_row *run, uint64_t step, struct error *err);
static int check_paths(
	struct store *store, const struct run_row *run, uint64_t step, struct error *err);

bool step_keep_is_known(struct store *store, const struct run_row *run)
{
	const struct clock_source *const clock = store_clock(store);
	if (!store_may_delete(store))
		return false;
	if (is_of_this_start(store, run))
		return true;
	return replica_table_is_whole(store_parts(store)->replicas) &&
		clock->monotonic_ms(clock) - store_opened(store).monotonic_ms >= PATH_HOLD_MS;
}

int step_keep_find(struct store *store, struct db *db, const struct run_row *run,
	struct step_keep *out, struct error *err)
{
	ASSERT(run->has_head && run->settings.keep_steps > 0);
	*out = (struct step_keep){.ranges = memory_new_array(RANGES_MAX, sizeof(*out->ranges))};
	add(out,
		run->head + 1 > run->settings.keep_steps ? run->head + 1 - run->settings.keep_steps
							 : 0,
		run->head);
	add_replicas(store, run, out);
	out->count +=
		path_hold_ranges(store_parts(store)->path_holds, run->id, &out->ranges[out->count]);
	ASSERT(out->count <= RANGES_MAX - PIN_RANGES_MAX);
	if (add_pins(store, db, run->id, out, err) != 0)
		return -1;
	out->count = step_range_join(out->ranges, out->count);
	for (size_t i = 0; i < out->count; i++) {
		const uint64_t first = out->ranges[i].first;
		bool rooted = false;
		if (root_range(db, run, &out->ranges[i], &rooted, err) != 0)
			return -1;
		if (out->ranges[i].last >= run->head && !rooted) {
			out->wants_anchor = true;
			out->anchor_at = first;
		}
	}
	out->count = step_range_join(out->ranges, out->count);
	return 0;
}

void step_keep_release(struct step_keep *keep)
{
	free(keep->ranges);
	keep->ranges = NULL;
}

int step_keep_check(struct store *store, struct db *db, const struct run_row *run, uint64_t step,
	struct error *err)
{
	if (check_pins(store, db, run, step, err) != 0 ||
		check_replicas(store, run, step, err) != 0)
		return -1;
	return check_paths(store, run, step, err);
}

/* Whether the run was opened after the start of the process. */
static bool is_of_this_start(struct store *store, const struct run_row *run)
{
	return run->created_ms >= store_opened(store).wall_ms;
}

static void add(struct step_keep *keep, uint64_t first, uint64_t last)
{
	ASSERT(keep->count < RANGES_MAX && first <= last);
	keep->ranges[keep->count++] = (struct step_range){first, last};
}

/* A replica that holds no step yet fetches the step that it wants, from an anchor on. During a
 * rollback the fleet does not go to the head, so nothing is kept for that: otherwise a long one
 * would keep all that the trainer publishes meanwhile. */
static void add_replicas(struct store *store, const struct run_row *run, struct step_keep *keep)
{
	uint64_t wanted[WANTED_MAX];
	uint64_t lowest;
	if (replica_table_lowest(store_parts(store)->replicas, run->id, &lowest, NULL) &&
		lowest < run_row_target(run))
		add(keep, lowest, run_row_target(run));
	const size_t count =
		replica_table_wanted(store_parts(store)->replicas, run->id, wanted, WANTED_MAX);
	/* a step that is still to be published needs nothing kept */
	for (size_t i = 0; i < count && wanted[i] <= run->head; i++)
		add(keep, wanted[i], wanted[i]);
	if (count == WANTED_MAX && wanted[count - 1] <= run->head) /* there may be more */
		add(keep, wanted[count - 1], run->head);
}

static int add_pins(
	struct store *store, struct db *db, int64_t run, struct step_keep *keep, struct error *err)
{
	struct db_statement *const scan = pin_row_scan(db, run, store_now_ms(store), err);
	int got;
	while ((got = db_step(scan, err)) == 1) {
		struct pin_message pin;
		if (keep->count == RANGES_MAX) {
			got = error_set(
				err, ERROR_DAMAGED, "A run has over %d pins.", PINS_OF_RUN_MAX);
			break;
		}
		pin_row_read(scan, &pin);
		add(keep, pin.step, pin.step);
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

/* Extends the range downwards to the anchor from which its first step is reached. *out_rooted: the
 * first step has an anchor itself. */
static int root_range(struct db *db, const struct run_row *run, struct step_range *range,
	bool *out_rooted, struct error *err)
{
	uint64_t anchor = 0;
	const int found = step_row_root_at_or_below(db, run->id, range->first, &anchor, err);
	if (found < 0)
		return -1;
	ASSERT(found == 0 || anchor <= range->first);
	*out_rooted = found == 1 && anchor == range->first;
	range->first = found == 1 ? anchor : 0;
	return 0;
}

static int check_pins(struct store *store, struct db *db, const struct run_row *run, uint64_t step,
	struct error *err)
{
	char name[PIN_NAME_BYTES];
	const int found = pin_row_find_step(db, run->id, step, store_now_ms(store), name, err);
	if (found == 1 && strcmp(name, PIN_ROLLBACK) == 0)
		return error_set(err, ERROR_CHAIN_IN_USE,
			"The fleet is held at step %llu by a rollback.", (unsigned long long)step);
	if (found == 1)
		return error_set(err, ERROR_CHAIN_IN_USE, "The pin '%s' keeps step %llu.", name,
			(unsigned long long)step);
	return found;
}

static int check_replicas(
	struct store *store, const struct run_row *run, uint64_t step, struct error *err)
{
	char id[REPLICA_ID_MAX_BYTES + 1];
	uint64_t wanted[WANTED_MAX];
	uint64_t lowest;
	if (!replica_table_is_whole(store_parts(store)->replicas) && !is_of_this_start(store, run))
		return error_set(err, ERROR_DAMAGED,
			"The leases of replicas could not be read when the server was started, so a replica may hold step %llu.",
			(unsigned long long)step);
	const bool has_lowest =
		replica_table_lowest(store_parts(store)->replicas, run->id, &lowest, id);
	if (has_lowest && lowest == step)
		return error_set(err, ERROR_CHAIN_IN_USE, "The replica '%s' holds step %llu.", id,
			(unsigned long long)step);
	if (has_lowest && lowest < step && step <= run_row_target(run))
		return error_set(err, ERROR_CHAIN_IN_USE,
			"The replica '%s' holds step %llu and needs step %llu on its path to the %s.",
			id, (unsigned long long)lowest, (unsigned long long)step,
			run->rollback.is_on ? "step of the rollback" : "head");
	const size_t count =
		replica_table_wanted(store_parts(store)->replicas, run->id, wanted, WANTED_MAX);
	for (size_t i = 0; i < count; i++)
		if (wanted[i] == step)
			return error_set(err, ERROR_CHAIN_IN_USE,
				"A replica with a lease is fetching step %llu.",
				(unsigned long long)step);
	return 0;
}

static int check_paths(
	struct store *store, const struct run_row *run, uint64_t step, struct error *err)
{
	struct step_range ranges[PATH_HOLD_RANGES_MAX];
	const size_t count = path_hold_ranges(store_parts(store)->path_holds, run->id, ranges);
	const size_t at = step_range_at_or_behind(ranges, count, step);
	if (at == count || ranges[at].first > step)
		return 0;
	return error_set(err, ERROR_CHAIN_IN_USE,
		"A reader was told less than %d minutes ago to fetch step %llu.",
		PATH_HOLD_MS / 60000 + 1, (unsigned long long)step);
}
