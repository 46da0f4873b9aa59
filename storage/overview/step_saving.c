#include "storage/overview/step_saving.h"

#include <stdatomic.h>

#include "storage/core/call.h"
#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/run_tables/step_sizes.h"

enum { ARENA_BYTES = 64 * 1024, WAITING_MAX = 256 };

/* Nobody waits for it: it is freed with its wake. */
struct counting {
	struct call call; /* first */
	struct step_part_sent sent;
};

static enum call_next step_saving_help(struct call *call, struct error *err);
static void step_saving_ended(void *owner);
static int look(struct store *store, struct db *db, const struct step_part_sent *sent,
	uint64_t *out_full, struct error *err);
static int find_form_bytes(struct db *db, int64_t run, const struct step_part_sent *sent,
	const struct step_row *step, uint64_t *out, struct error *err);

static const struct call_kind kind = {.stages = {{.help = step_saving_help}}};

int step_saving_find(struct store *store, const struct step_part_sent *sent, uint64_t *out_full,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	const int result = db == NULL ? -1 : look(store, db, sent, out_full, err);
	store_reader_give(store, db);
	return result;
}

void step_saving_count(struct store *store, const struct step_part_sent *sent)
{
	_Atomic unsigned *const waiting = &store_parts(store)->savings_waiting;
	if (atomic_fetch_add(waiting, 1) >= WAITING_MAX) {
		atomic_fetch_sub(waiting, 1);
		return;
	}
	struct counting *const counting = call_new(sizeof(*counting), &kind, store, ARENA_BYTES);
	counting->sent = *sent;
	counting->sent.run = run_ref_copy(&sent->run, counting->call.arena);
	call_start(&counting->call, step_saving_ended, counting);
}

static enum call_next step_saving_help(struct call *call, struct error *err)
{
	const struct counting *const counting = (const struct counting *)call;
	struct metrics *const metrics = store_metrics(call->store);
	uint64_t full;
	if (step_saving_find(call->store, &counting->sent, &full, err) != 0)
		return CALL_FAILS;
	metrics_add(metrics, METRIC_FORM_FULL_BYTES_SENT, (int64_t)full);
	metrics_add(metrics, METRIC_FORM_BYTES_SENT, (int64_t)counting->sent.bytes);
	return CALL_NEXT;
}

static void step_saving_ended(void *owner)
{
	struct counting *const counting = owner;
	atomic_fetch_sub(&store_parts(counting->call.store)->savings_waiting, 1);
	call_free(&counting->call);
}

static int look(struct store *store, struct db *db, const struct step_part_sent *sent,
	uint64_t *out_full, struct error *err)
{
	struct run_row run;
	struct step_row step;
	uint64_t full;
	uint64_t of;
	if (run_row_need(db, &sent->run, &run, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, sent->step, &step, err);
	if (found < 0)
		return -1;
	if (found == 0 || step.state != STEP_KEPT)
		return error_set(err, ERROR_NO_STEP, "Step %llu does not exist.",
			(unsigned long long)sent->step);
	if (step_sizes_find(store_parts(store)->step_sizes, db, &step, &full, err) != 0 ||
		find_form_bytes(db, run.id, sent, &step, &of, err) != 0)
		return -1;
	*out_full = of == 0 ? 0 : (uint64_t)((double)full * ((double)sent->bytes / (double)of));
	return 0;
}

/* The bytes of the whole delta or fold; 0: it is gone. */
static int find_form_bytes(struct db *db, int64_t run, const struct step_part_sent *sent,
	const struct step_row *step, uint64_t *out, struct error *err)
{
	struct fold_row fold;
	*out = step->form_bytes[STEP_DELTA];
	if (sent->from + 1 >= sent->step)
		return 0;
	const int found = fold_row_find(db, run, sent->from, sent->step, &fold, err);
	*out = found == 1 ? fold.bytes : 0;
	return found < 0 ? -1 : 0;
}
