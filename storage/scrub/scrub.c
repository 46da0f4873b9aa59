/* The thread answers requests first; a round of its own gives way to them and goes on afterwards.
 *
 *   begin --pack by pack--> end, then rest until the next is due
 *     ^         '-- stop, request, restart: the place is in `state` and in DIR/scrub
 *
 * Chunks are healed at the end of a requested round, and in between once the damage has changed,
 * whoever found or mended some of it: what was mended may be the copy that something else lacks.
 * Looking for copies reads the indexes of all packs, so it then rests for as long as that took, and
 * until the next look at whether there is work. While nothing changes it is not repeated. */
#include "storage/scrub/scrub.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/quantity.h"
#include "base/thread/worker_thread.h"
#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/scrub/chunk_heal.h"
#include "storage/scrub/damage_report.h"
#include "storage/scrub/made_drop.h"
#include "storage/scrub/scrub_pack.h"
#include "storage/scrub/want_search.h"

enum {
	WATCH_MS = 60 * 1000,            /* between two looks at whether there is work */
	PAUSE_MS = 20,                   /* shorter pauses are added up */
	SLICE_MS = 200,                  /* of a pause, after which a request is noticed */
	SAVE_MS = 5000,                  /* between two writes of the place */
	HEAL_FAILED_MS = 60 * 60 * 1000, /* until a pack that could not be written is tried again */
	HEAL_AGAIN_MS = 10, /* until packs that are being sealed can be written again */
	HEAL_TRIES = 500,
	GATHER_MS = 500,
	HEAL_RATE = 4 * 1024 * 1024, /* least, of indexes that are looked through */
	PATH_BYTES = 4096
};

struct asked_scrub {
	struct call call; /* first */
	struct scrub *scrub;
	struct scrub_request request;
	struct asked_scrub *next; /* the queue's */
};

struct scrub {
	struct store *store;
	struct scrub_options options;
	char path[PATH_BYTES]; /* of the state's file */
	struct worker_thread thread;
	struct chunk_wants *wants;
	struct asked_scrub *first; /* guarded by the thread's lock, as the next two */
	struct asked_scrub *last;
	struct scrub_status status; /* what others see of the state */
	/* used by the thread only: */
	struct scrub_state state;
	uint64_t store_bytes;
	uint64_t rate;          /* bytes a second at present; 0: no limit */
	uint64_t spent;         /* bytes since the last pause */
	bool gives_way;         /* to requests */
	int64_t rounds_from_ms; /* no round of its own begins before */
	int64_t saved_ms;
	int64_t measured_ms; /* when store_bytes was last read; 0: not yet */
	/* pack_damage_changes when copies were last looked for; 0: they must be looked for again */
	uint64_t healed_changes;
	int64_t heal_due_ms;    /* copies are not looked for before */
	int64_t heal_failed_ms; /* when a mending that failed is tried again; 0: none did */
	uint64_t wants_changes; /* pack_damage_changes when the wants were last made */
};

static int64_t first_sleep(const struct scrub_options *options);
static void load_state(struct scrub *scrub);
static int64_t scrub_round(void *owner);
static bool answer_all(struct scrub *scrub);
static struct asked_scrub *take_asked(struct scrub *scrub);
static void refuse(struct asked_scrub *asked);
static void answer(struct scrub *scrub, struct asked_scrub *asked);
static void begin_round(struct scrub *scrub);
static void show(struct scrub *scrub);
static int64_t next_of(const struct scrub *scrub);
static int run_round(struct scrub *scrub, struct error *err);
static void note_work(const struct scrub *scrub);
static void note_rest(const struct scrub *scrub, bool is_over);
static int next_pack(struct scrub *scrub, struct pack_record *out, struct error *err);
static int measure(struct scrub *scrub, struct db *db, struct error *err);
static int find_pack(
	struct scrub *scrub, struct db *db, struct pack_record *out, struct error *err);
static void set_rate(struct scrub *scrub);
static int scan_pack(struct scrub *scrub, const struct pack_record *record, struct error *err);
static void log_pack_failure(struct scrub *scrub, const struct pack_id *pack, struct error *err);
static bool scrub_spend(void *owner, size_t bytes);
static bool goes_on(struct scrub *scrub);
static void scrub_passed(void *owner, uint32_t chunk);
static void save(struct scrub *scrub);
static void end_round(struct scrub *scrub);
static void log_round(struct scrub *scrub, const char *event);
static void tell_damage(struct scrub *scrub);
static void heal_now(struct scrub *scrub);
static void heal_once(struct scrub *scrub, struct chunk_heal_report *out);
static void drop_made(struct scrub *scrub);
static bool is_due(struct scrub *scrub);
static void own_round(struct scrub *scrub);
static void heal_if_due(struct scrub *scrub);
static bool heal_is_due(const struct scrub *scrub, int64_t now_ms);
static void heal_sent(struct scrub *scrub);
static void refresh_wants(struct scrub *scrub);
static void scrub_refuse_all(void *owner);
static void scrub_begin(struct call *call);

static const struct call_kind kind = {.stages = {{.begin = scrub_begin}}};

struct scrub *scrub_start(struct store *store, const struct scrub_options *options)
{
	struct scrub *const scrub = memory_new(sizeof(*scrub));
	ASSERT(store != NULL && options->period_ms >= 0 && options->watch_ms >= 0);
	scrub->store = store;
	scrub->options = *options;
	if (options->watch_ms == 0)
		scrub->options.watch_ms = WATCH_MS;
	scrub->rounds_from_ms = clock_monotonic_ms() + options->first_ms;
	snprintf(scrub->path, sizeof(scrub->path), "%s/scrub", store_folder(store));
	scrub->wants = chunk_wants_new();
	load_state(scrub);
	work_notes_set(store_work_notes(store), WORK_SCRUB, WORK_RESTING, "%s", "");
	const struct worker_thread_plan plan = {.name = "scrub",
		.first_ms = first_sleep(&scrub->options),
		.round = scrub_round,
		.last = scrub_refuse_all};
	worker_thread_start(&scrub->thread, &plan, scrub);
	return scrub;
}

void scrub_quiesce(struct scrub *scrub)
{
	worker_thread_quiesce(&scrub->thread);
}

void scrub_stop(struct scrub *scrub)
{
	if (scrub == NULL)
		return;
	worker_thread_stop(&scrub->thread);
	ASSERT(scrub->first == NULL); /* scrub_refuse_all has answered the last ones */
	worker_thread_release(&scrub->thread);
	chunk_wants_free(scrub->wants);
	free(scrub);
}

void scrub_look(struct scrub *scrub, struct scrub_status *out)
{
	lock_enter(&scrub->thread.lock);
	*out = scrub->status;
	lock_leave(&scrub->thread.lock);
}

size_t scrub_ask(struct scrub *scrub, const struct want_place *place, struct chunk_want *out,
	size_t capacity)
{
	return chunk_wants_ask(scrub->wants, place, out, capacity);
}

int scrub_take(struct scrub *scrub, const struct want_place *place, const struct chunk_id *id,
	struct span bytes, struct error *err)
{
	if (chunk_wants_take(scrub->wants, place, id, bytes, err) != 0)
		return -1;
	worker_thread_wake(&scrub->thread);
	return 0;
}

struct call *scrub_call(struct scrub *scrub, const struct scrub_request *request)
{
	ASSERT(scrub != NULL && request != NULL);
	struct asked_scrub *const asked = call_new(sizeof(*asked), &kind, scrub->store, 0);
	asked->scrub = scrub;
	asked->request = *request;
	return &asked->call;
}

const struct scrub_request *scrub_result(const struct call *call)
{
	return &((const struct asked_scrub *)call)->request;
}

int scrub_run(struct scrub *scrub, struct scrub_request *request, struct error *err)
{
	struct call *const call = scrub_call(scrub, request);
	const int result = call_run(call, err);
	*request = *scrub_result(call);
	call_free(call);
	return result;
}

/* Damage is healed from the first minute on. */
static int64_t first_sleep(const struct scrub_options *options)
{
	if (options->period_ms == 0)
		return WORKER_THREAD_UNTIL_WOKEN;
	return options->first_ms < options->watch_ms ? options->first_ms : options->watch_ms;
}

/* Before the thread runs. */
static void load_state(struct scrub *scrub)
{
	struct error err = {0};
	if (scrub_state_read(scrub->path, &scrub->state, &err) != 0)
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub_state", &err);
	scrub->status = (struct scrub_status){.state = scrub->state, .next_ms = next_of(scrub)};
	metrics_set(
		store_metrics(scrub->store), METRIC_SCRUB_ENDED, scrub->state.last_ended_ms / 1000);
}

static int64_t scrub_round(void *owner)
{
	struct scrub *const scrub = owner;
	const bool answered = answer_all(scrub);
	const bool works_alone = scrub->options.period_ms > 0;
	heal_sent(scrub);
	if (works_alone && !answered && is_due(scrub))
		own_round(scrub);
	if (works_alone)
		heal_if_due(scrub);
	refresh_wants(scrub);
	return works_alone ? scrub->options.watch_ms : WORKER_THREAD_UNTIL_WOKEN;
}

static bool answer_all(struct scrub *scrub)
{
	struct asked_scrub *asked;
	bool any = false;
	while ((asked = take_asked(scrub)) != NULL) {
		if (worker_thread_is_stopping(&scrub->thread))
			refuse(asked);
		else
			answer(scrub, asked);
		any = true;
	}
	return any;
}

static struct asked_scrub *take_asked(struct scrub *scrub)
{
	lock_enter(&scrub->thread.lock);
	struct asked_scrub *const asked = scrub->first;
	if (asked != NULL)
		scrub->first = asked->next;
	if (scrub->first == NULL)
		scrub->last = NULL;
	lock_leave(&scrub->thread.lock);
	return asked;
}

static void refuse(struct asked_scrub *asked)
{
	struct error err;
	error_set(&err, ERROR_BUSY, "The store is closing.");
	call_resume(&asked->call, &err);
}

static void answer(struct scrub *scrub, struct asked_scrub *asked)
{
	struct error err = {0};
	scrub->gives_way = false;
	scrub->rate = asked->request.bytes_per_second;
	if (!asked->request.resumes || scrub->state.began_ms == 0)
		begin_round(scrub);
	const int result = run_round(scrub, &err);
	if (result == 0) {
		heal_now(scrub);
		refresh_wants(scrub);
		end_round(scrub);
	}
	asked->request.report = result == 0 ? scrub->state.last : scrub->state.report;
	asked->request.damaged_now = pack_damage_count(store_packs(scrub->store)->damage);
	call_resume(&asked->call, result != 0 ? &err : NULL);
}

static void begin_round(struct scrub *scrub)
{
	scrub->state.began_ms = store_now_ms(scrub->store);
	scrub->state.pack = 0;
	scrub->state.chunk = 0;
	scrub->state.report = (struct scrub_report){0};
	show(scrub);
	save(scrub);
}

/* Shows the state to others. */
static void show(struct scrub *scrub)
{
	lock_enter(&scrub->thread.lock);
	scrub->status = (struct scrub_status){.state = scrub->state,
		.store_bytes = scrub->store_bytes,
		.next_ms = next_of(scrub)};
	lock_leave(&scrub->thread.lock);
	metrics_set(store_metrics(scrub->store), METRIC_SCRUB_ROUND_BYTES,
		(int64_t)scrub->state.report.bytes);
}

/* A last round of the future is one that a wrong clock has left: the next is due. */
static int64_t next_of(const struct scrub *scrub)
{
	const struct scrub_state *const state = &scrub->state;
	const int64_t now_ms = store_now_ms(scrub->store);
	if (scrub->options.period_ms == 0)
		return 0;
	return state->began_ms != 0 || state->last_began_ms == 0 || state->last_began_ms > now_ms
		? now_ms
		: state->last_began_ms + scrub->options.period_ms;
}

/* Goes through the packs from the state's place on, to the end. busy: it was stopped, or gives
 * way. */
static int run_round(struct scrub *scrub, struct error *err)
{
	struct pack_record record;
	int got;
	log_round(scrub, "scrub_begin");
	note_work(scrub);
	while ((got = next_pack(scrub, &record, err)) == 1) {
		got = scan_pack(scrub, &record, err);
		if (got < 0)
			break;
		if (got == 0)
			continue;
		scrub->state.pack++;
		scrub->state.chunk = 0;
		show(scrub);
		note_work(scrub);
		if (clock_monotonic_ms() - scrub->saved_ms >= SAVE_MS)
			save(scrub);
		heal_sent(scrub);
		if (scrub->gives_way)
			heal_if_due(scrub);
		refresh_wants(scrub);
	}
	save(scrub);
	note_rest(scrub, got == 0);
	return got < 0 ? -1 : 0;
}

static void note_work(const struct scrub *scrub)
{
	char done[QUANTITY_TEXT_BYTES];
	char all[QUANTITY_TEXT_BYTES];
	quantity_format(scrub->state.report.bytes, done);
	quantity_format(scrub->store_bytes, all);
	work_notes_set(store_work_notes(scrub->store), WORK_SCRUB, WORK_WORKING,
		"verified %s of %s", done, all);
}

static void note_rest(const struct scrub *scrub, bool is_over)
{
	char done[QUANTITY_TEXT_BYTES];
	quantity_format(scrub->state.report.bytes, done);
	work_notes_set(store_work_notes(scrub->store), WORK_SCRUB, WORK_RESTING,
		is_over ? "its last round verified %s" : "its round paused behind %s", done);
}

/* Finds the next sealed pack, moves the state to it, and sets the rate. 0: there is none. */
static int next_pack(struct scrub *scrub, struct pack_record *out, struct error *err)
{
	if (!goes_on(scrub))
		return error_set(err, ERROR_BUSY, "scrub was stopped.");
	struct db *const db = store_reader_take(scrub->store, err);
	if (db == NULL)
		return -1;
	int got = measure(scrub, db, err);
	if (got == 0)
		got = find_pack(scrub, db, out, err);
	store_reader_give(scrub->store, db);
	set_rate(scrub);
	return got;
}

/* Reads the size of the store once a minute, because that takes a pass over all packs. */
static int measure(struct scrub *scrub, struct db *db, struct error *err)
{
	const int64_t now_ms = clock_monotonic_ms();
	if (scrub->measured_ms != 0 && now_ms - scrub->measured_ms < WATCH_MS)
		return 0;
	scrub->measured_ms = now_ms;
	return pack_row_bytes(db, &scrub->store_bytes, err);
}

static int find_pack(struct scrub *scrub, struct db *db, struct pack_record *out, struct error *err)
{
	struct scrub_state *const state = &scrub->state;
	int64_t number = state->pack - 1;
	size_t count = 1;
	int got = 0;
	while (got == 0 && count == 1) {
		const int64_t after = number;
		if (pack_row_numbers(db, after, &number, 1, &count, err) != 0)
			return -1;
		if (count == 1)
			got = pack_row_find(db, number, out, err);
		if (got == 1 && out->state != PACK_SEALED)
			got = 0;
	}
	if (got == 1 && number != state->pack) {
		state->pack = number;
		state->chunk = 0;
	}
	return got;
}

static void set_rate(struct scrub *scrub)
{
	if (!scrub->gives_way)
		return;
	const double seconds = (double)scrub->options.period_ms / 1000;
	const uint64_t needed = (uint64_t)((double)scrub->store_bytes / seconds) + 1;
	const uint64_t wanted = scrub->options.bytes_per_second;
	scrub->rate = wanted > needed ? wanted : needed;
}

/* 1: the pack is done; 0: the rest of it must be scanned again; -1: busy. */
static int scan_pack(struct scrub *scrub, const struct pack_record *record, struct error *err)
{
	const struct scrub_work work = {.store = scrub->store,
		.pace = {.spend = scrub_spend, .owner = scrub},
		.passed = scrub_passed,
		.owner = scrub,
		.report = &scrub->state.report};
	const int64_t begun_us = clock_monotonic_us();
	const int got = scrub_pack_scan(&work, &record->id, scrub->state.chunk, err);
	if (got == 1)
		metrics_work(store_metrics(scrub->store), METRIC_WORK_SCRUB_PACK, begun_us);
	scrub->state.report.packs += got == 1;
	if (got >= 0 || !goes_on(scrub))
		return got;
	log_pack_failure(scrub, &record->id, err);
	scrub->state.report.packs_failed++;
	return 1;
}

static void log_pack_failure(struct scrub *scrub, const struct pack_id *pack, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	error_wrap(err, "Pack %s cannot be scrubbed", text);
	log_failure(store_log(scrub->store), LOG_ERROR, NULL, "scrub_pack", err);
}

static bool scrub_spend(void *owner, size_t bytes)
{
	struct scrub *const scrub = owner;
	scrub->spent += bytes;
	int64_t ms = scrub->rate == 0 ? 0 : (int64_t)(scrub->spent * 1000 / scrub->rate);
	if (ms < PAUSE_MS)
		return goes_on(scrub);
	scrub->spent = 0;
	for (; ms > 0 && goes_on(scrub); ms -= SLICE_MS)
		(void)worker_thread_pause(&scrub->thread, ms < SLICE_MS ? ms : SLICE_MS);
	return goes_on(scrub);
}

static bool goes_on(struct scrub *scrub)
{
	lock_enter(&scrub->thread.lock);
	const bool is_asked = scrub->gives_way && scrub->first != NULL;
	lock_leave(&scrub->thread.lock);
	return !is_asked && !worker_thread_is_stopping(&scrub->thread);
}

static void scrub_passed(void *owner, uint32_t chunk)
{
	struct scrub *const scrub = owner;
	scrub->state.chunk = chunk;
	show(scrub);
	if (clock_monotonic_ms() - scrub->saved_ms >= SAVE_MS)
		save(scrub);
}

static void save(struct scrub *scrub)
{
	struct error err = {0};
	scrub->saved_ms = clock_monotonic_ms();
	if (!store_takes_work(scrub->store))
		return;
	if (scrub_state_write(store_files(scrub->store), scrub->path, &scrub->state, &err) != 0)
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub_state", &err);
}

static void end_round(struct scrub *scrub)
{
	struct scrub_state *const state = &scrub->state;
	log_round(scrub, "scrub_end");
	tell_damage(scrub);
	state->last = state->report;
	state->last_began_ms = state->began_ms;
	state->last_ended_ms = store_now_ms(scrub->store);
	state->began_ms = 0;
	state->pack = 0;
	state->chunk = 0;
	state->report = (struct scrub_report){0};
	metrics_set(store_metrics(scrub->store), METRIC_SCRUB_ENDED, state->last_ended_ms / 1000);
	show(scrub);
	save(scrub);
}

/* At the beginning the numbers are those of a round that goes on. */
static void log_round(struct scrub *scrub, const char *event)
{
	const struct scrub_report *const report = &scrub->state.report;
	const struct log_field fields[] = {log_number("packs", (int64_t)report->packs),
		log_number("bytes", (int64_t)report->bytes),
		log_number("damaged", (int64_t)report->chunks_damaged),
		log_number("healed", (int64_t)report->chunks_healed),
		log_number("failed", (int64_t)report->packs_failed),
		log_number("mended", (int64_t)report->packs_mended)};
	log_event(store_log(scrub->store), LOG_INFO, NULL, event, fields,
		sizeof(fields) / sizeof(*fields));
}

/* Names in the log what the damage that is left touches. */
static void tell_damage(struct scrub *scrub)
{
	struct damage_report report;
	struct error err = {0};
	if (!pack_damage_is_known(store_packs(scrub->store)->damage))
		return;
	if (damage_report_make(scrub->store, &report, &err) != 0) {
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub", &err);
		return;
	}
	damage_report_log(scrub->store, &report);
	damage_report_release(&report);
}

/* Waits for packs that must be sealed first. */
static void heal_now(struct scrub *scrub)
{
	struct chunk_heal_report healed;
	for (int i = 0; i < HEAL_TRIES; i++) {
		heal_once(scrub, &healed);
		if (healed.waiting == 0 || !worker_thread_pause(&scrub->thread, HEAL_AGAIN_MS))
			break;
	}
}

static void heal_once(struct scrub *scrub, struct chunk_heal_report *out)
{
	const struct work_pace pace = {.spend = scrub_spend, .owner = scrub};
	struct error err = {0};
	*out = (struct chunk_heal_report){0};
	if (!store_takes_work(scrub->store))
		return;
	scrub->healed_changes = pack_damage_changes(store_packs(scrub->store)->damage);
	if (chunk_heal_run(scrub->store, scrub->wants, &pace, out, &err) != 0)
		scrub->healed_changes = 0; /* it was stopped, and must look again */
	scrub->state.report.chunks_healed += out->healed;
	drop_made(scrub);
}

/* After the healing, because a made file may have the only sound copy of something else. */
static void drop_made(struct scrub *scrub)
{
	struct error err = {0};
	if (store_may_delete(scrub->store) && made_drop_run(scrub->store, &err) != 0)
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub_made", &err);
}

static bool is_due(struct scrub *scrub)
{
	return clock_monotonic_ms() >= scrub->rounds_from_ms &&
		store_now_ms(scrub->store) >= next_of(scrub);
}

static void own_round(struct scrub *scrub)
{
	struct error err = {0};
	scrub->gives_way = true;
	if (scrub->state.began_ms == 0)
		begin_round(scrub);
	if (run_round(scrub, &err) == 0) {
		heal_if_due(scrub);
		end_round(scrub);
	} else if (err.kind != ERROR_BUSY)
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub", &err);
}

static void heal_if_due(struct scrub *scrub)
{
	const int64_t began_ms = clock_monotonic_ms();
	struct chunk_heal_report healed;
	if (!heal_is_due(scrub, began_ms))
		return;
	scrub->gives_way = true;
	scrub->rate = scrub->options.bytes_per_second > HEAL_RATE ? scrub->options.bytes_per_second
								  : HEAL_RATE;
	heal_once(scrub, &healed);
	const int64_t ended_ms = clock_monotonic_ms();
	const int64_t rested_ms = ended_ms + (ended_ms - began_ms);
	const int64_t watched_ms = began_ms + scrub->options.watch_ms;
	scrub->heal_due_ms = rested_ms > watched_ms ? rested_ms : watched_ms;
	scrub->heal_failed_ms = healed.failed > 0 ? ended_ms + HEAL_FAILED_MS : 0;
	if (healed.waiting > 0)
		scrub->healed_changes = 0;
}

static bool heal_is_due(const struct scrub *scrub, int64_t now_ms)
{
	const struct pack_damage *const damage = store_packs(scrub->store)->damage;
	const bool may_help = pack_damage_changes(damage) != scrub->healed_changes ||
		(scrub->heal_failed_ms != 0 && now_ms >= scrub->heal_failed_ms);
	return pack_damage_is_known(damage) && may_help && now_ms >= scrub->heal_due_ms;
}

/* Heals with what workers have sent, if anything. It waits a moment for the worker's next chunks,
 * because each pack is written again as a whole. */
static void heal_sent(struct scrub *scrub)
{
	struct chunk_heal_report healed = {0};
	struct error ignored = {0};
	if (!chunk_wants_has_bytes(scrub->wants) || !store_takes_work(scrub->store))
		return;
	(void)worker_thread_pause(&scrub->thread, GATHER_MS);
	for (int i = 0; i < HEAL_TRIES && chunk_wants_has_bytes(scrub->wants); i++) {
		(void)chunk_heal_run(scrub->store, scrub->wants, NULL, &healed, &ignored);
		if (scrub->state.began_ms != 0)
			scrub->state.report.chunks_healed += healed.healed;
		if (healed.waiting == 0)
			chunk_wants_drop_bytes(scrub->wants);
		else if (!worker_thread_pause(&scrub->thread, HEAL_AGAIN_MS))
			break;
	}
	chunk_wants_drop_bytes(scrub->wants);
	refresh_wants(scrub);
}

/* Makes the list of what workers are asked for again, once the damage has changed. */
static void refresh_wants(struct scrub *scrub)
{
	const uint64_t changes = pack_damage_changes(store_packs(scrub->store)->damage);
	struct error err = {0};
	if (changes == scrub->wants_changes)
		return;
	scrub->wants_changes = changes;
	if (want_search_run(scrub->store, scrub->wants, &err) != 0)
		log_failure(store_log(scrub->store), LOG_WARNING, NULL, "scrub_wants", &err);
}

static void scrub_refuse_all(void *owner)
{
	(void)answer_all(owner);
}

static void scrub_begin(struct call *call)
{
	struct asked_scrub *const asked = (struct asked_scrub *)call;
	struct scrub *const scrub = asked->scrub;
	ASSERT(asked->next == NULL);
	lock_enter(&scrub->thread.lock);
	const bool refused = worker_thread_is_stopping(&scrub->thread);
	if (!refused) {
		*(scrub->last != NULL ? &scrub->last->next : &scrub->first) = asked;
		scrub->last = asked;
		worker_thread_wake_held(&scrub->thread);
	}
	lock_leave(&scrub->thread.lock);
	if (refused)
		refuse(asked);
}
