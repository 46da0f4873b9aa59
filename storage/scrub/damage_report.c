#include "storage/scrub/damage_report.h"

#include <stdlib.h>

#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"

struct reporting {
	struct call call; /* first */
	struct damage_report report;
};

static int follow(struct store *store, struct damage_report *report, struct error *err);
static int add_chunks(struct db *db, struct damage_report *report, struct error *err);
static size_t run_length(const struct damage_report *report, size_t from);
static enum call_next report_help(struct call *call, struct error *err);
static void report_release(struct call *call);

static const struct call_kind kind = {.stages = {{.help = report_help}}, .release = report_release};

int damage_report_make(struct store *store, struct damage_report *out, struct error *err)
{
	*out = (struct damage_report){0};
	out->places = pack_damage_list(store_packs(store)->damage, &out->count);
	if (follow(store, out, err) == 0)
		return 0;
	damage_report_release(out);
	return -1;
}

void damage_report_release(struct damage_report *report)
{
	free(report->places);
	reach_free(report->reach);
	*report = (struct damage_report){0};
}

void damage_report_log(struct store *store, const struct damage_report *report)
{
	size_t listed, count;
	const struct reach_key *const keys = reach_keys(report->reach, &listed, &count);
	for (size_t i = 0; i < listed; i++) {
		const struct log_field fields[] = {
			log_span("bucket", keys[i].bucket), log_span("key", keys[i].key)};
		log_event(store_log(store), LOG_ERROR, NULL, "damaged_key", fields, 2);
	}
	const struct reach_step *const steps = reach_steps(report->reach, &listed, &count);
	for (size_t i = 0; i < listed; i++) {
		const struct log_field fields[] = {log_span("bucket", steps[i].bucket),
			log_span("run", steps[i].run), log_number("step", steps[i].step),
			log_text("form", reach_form_name(steps[i].form))};
		log_event(store_log(store), LOG_ERROR, NULL, "damaged_step", fields, 4);
	}
}

struct call *damage_report_call(struct store *store)
{
	return call_new(sizeof(struct reporting), &kind, store, 0);
}

const struct damage_report *damage_report_result(const struct call *call)
{
	return &((const struct reporting *)call)->report;
}

static int follow(struct store *store, struct damage_report *report, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	report->reach = reach_new(db);
	int result = add_chunks(db, report, err);
	if (result == 0)
		result = reach_settle(report->reach, err);
	store_snapshot_give(store, db);
	return result;
}

static int add_chunks(struct db *db, struct damage_report *report, struct error *err)
{
	for (size_t from = 0, length; from < report->count; from += length) {
		const struct chunk_place *const place = &report->places[from];
		int64_t number = 0;
		length = run_length(report, from);
		const int found = pack_row_number(db, &place->pack, &number, err);
		if (found < 0 ||
			(found == 1 &&
				reach_add_chunks(report->reach, number, place->chunk,
					(uint32_t)length, err) != 0))
			return -1;
	}
	return 0;
}

/* How many chunks of one pack follow on one another. */
static size_t run_length(const struct damage_report *report, size_t from)
{
	const struct chunk_place *const first = &report->places[from];
	size_t length = 1;
	while (from + length < report->count && first[length].chunk == first->chunk + length &&
		pack_id_equal(&first[length].pack, &first->pack))
		length++;
	return length;
}

static enum call_next report_help(struct call *call, struct error *err)
{
	struct reporting *const reporting = (struct reporting *)call;
	return damage_report_make(call->store, &reporting->report, err) == 0 ? CALL_NEXT
									     : CALL_FAILS;
}

static void report_release(struct call *call)
{
	damage_report_release(&((struct reporting *)call)->report);
}
