/* Naming a snapshot is one change: it compares the snapshot with the newest one and notes it in
 * `adoptions`. From then on the step worker treats it like a publish in any other convention
 * (storage/step_jobs/adopt_job.h). */
#include "storage/runs/hot_load.h"

#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/run_row.h"

enum { NOTE_ARENA_BYTES = 4 * 1024 * 1024 };

struct hot_load {
	struct call call;
	struct hot_load_params params;
	bool is_known; /* nothing was noted, because the identity is known */
};

static int shown(struct span text);
static int hot_load_apply(struct call *call, struct db *db, struct error *err);
static int check_room(struct db *db, int64_t run, struct error *err);
static int check_base(const struct hot_load_params *params, struct db *db, int64_t run,
	struct arena *arena, struct error *err);
static int add_note(
	struct hot_load *load, struct db *db, const struct run_row *run, struct error *err);
static struct span objects_prefix(const struct hot_load_params *params,
	const struct run_settings *settings, struct arena *arena);
static void hot_load_settle(struct call *call);
static struct db *open_run(
	struct store *store, const struct run_ref *run, struct run_row *out, struct error *err);

static const struct call_kind hot_load_kind = {
	.stages = {{.apply = hot_load_apply}},
	.settle = hot_load_settle,
};

int hot_load_find(struct store *store, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	const int got =
		db == NULL ? -1 : deployment_row_find(db, deployment, among, arena, out, err);
	store_reader_give(store, db);
	if (got == 0)
		return error_set(err, ERROR_NO_RUN,
			"No run of yours has the setting \"hot_load\" with the deployment '%.*s'.",
			shown(deployment), (const char *)deployment.data);
	return got < 0 ? -1 : 0;
}

int hot_load_check_identity(struct span identity, struct error *err)
{
	bool is_good = identity.len > 0 && identity.len <= ADOPT_IDENTITY_MAX_BYTES &&
		!span_equal_text(identity, ".") && !span_equal_text(identity, "..");
	for (size_t i = 0; is_good && i < identity.len; i++)
		is_good = identity.data[i] >= ' ' && identity.data[i] != 0x7f &&
			identity.data[i] != '/';
	if (is_good)
		return 0;
	return error_set(err, ERROR_INVALID,
		"The identity of a snapshot is one path segment of 1 to %d bytes.",
		ADOPT_IDENTITY_MAX_BYTES);
}

struct call *hot_load_call(struct store *store, const struct hot_load_params *params)
{
	ASSERT(params->identity.len > 0 && params->identity.len <= ADOPT_IDENTITY_MAX_BYTES);
	struct hot_load *const load =
		call_new(sizeof(*load), &hot_load_kind, store, NOTE_ARENA_BYTES);
	struct arena *const arena = load->call.arena;
	load->params = (struct hot_load_params){
		.run = run_ref_copy(&params->run, arena),
		.deployment = arena_copy(arena, params->deployment),
		.identity = arena_copy(arena, params->identity),
		.has_base = params->has_base,
		.base = arena_copy(arena, params->base),
	};
	return &load->call;
}

int hot_load_identity(struct store *store, const struct run_ref *run, uint64_t step,
	struct arena *arena, struct span *out, struct error *err)
{
	struct run_row row;
	struct adoption adoption;
	struct db *const db = open_run(store, run, &row, err);
	if (db == NULL)
		return -1;
	const int found = adopt_row_find_step(db, row.id, step, arena, &adoption, err);
	store_reader_give(store, db);
	if (found < 0)
		return -1;
	const char *const name =
		found == 0 ? arena_format(arena, "step_%06llu", (unsigned long long)step) : NULL;
	*out = found == 1 ? adoption.identity : name != NULL ? span_text(name) : (struct span){0};
	return 0;
}

int hot_load_find_newest(struct store *store, const struct run_ref *run, struct arena *arena,
	struct hot_load_newest *out, struct error *err)
{
	struct run_row row;
	struct adoption adoption;
	struct db *const db = open_run(store, run, &row, err);
	if (db == NULL)
		return -1;
	const int found = adopt_row_find_last(db, row.id, arena, &adoption, err);
	store_reader_give(store, db);
	*out = (struct hot_load_newest){0};
	if (found == 1)
		*out = (struct hot_load_newest){.is_known = true,
			.identity = adoption.identity,
			.is_step = adoption.state == ADOPTION_PUBLISHED,
			.failed = adoption.state == ADOPTION_FAILED,
			.error = adoption.error};
	return found < 0 ? -1 : 0;
}

static int shown(struct span text)
{
	return (int)span_slice(text, 0, 120).len;
}

static int hot_load_apply(struct call *call, struct db *db, struct error *err)
{
	struct hot_load *const load = (struct hot_load *)call;
	const struct hot_load_params *const params = &load->params;
	struct run_row run;
	struct adoption known;
	if (run_row_need(db, &params->run, &run, err) != 0)
		return -1;
	if (!span_equal_text(params->deployment, run.settings.hot_load))
		return error_set(err, ERROR_NO_RUN,
			"The deployment '%.*s' has been bound to another run.",
			shown(params->deployment), (const char *)params->deployment.data);
	const int found =
		adopt_row_find_identity(db, run.id, params->identity, call->arena, &known, err);
	load->is_known = found == 1 && known.state != ADOPTION_FAILED;
	if (found < 0 || load->is_known)
		return found < 0 ? -1 : 0;
	if (check_room(db, run.id, err) != 0 ||
		(params->has_base && check_base(params, db, run.id, call->arena, err) != 0))
		return -1;
	return add_note(load, db, &run, err);
}

static int check_room(struct db *db, int64_t run, struct error *err)
{
	int64_t waiting = 0;
	if (adopt_row_count_waiting(db, run, &waiting, err) != 0)
		return -1;
	return waiting < ADOPT_WAITING_MOST
		? 0
		: error_set(err, ERROR_BUSY, "%d snapshots wait to become steps: ask again later.",
			  ADOPT_WAITING_MOST);
}

/* An incremental snapshot must build on the newest one. */
static int check_base(const struct hot_load_params *params, struct db *db, int64_t run,
	struct arena *arena, struct error *err)
{
	struct adoption newest;
	struct adoption base;
	const int found = adopt_row_find_newest(db, run, arena, &newest, err);
	if (found < 0)
		return -1;
	if (found == 1 && span_equal(newest.identity, params->base))
		return 0;
	const int known = adopt_row_find_identity(db, run, params->base, arena, &base, err);
	if (known < 0)
		return -1;
	if (known == 1 && found == 1 && base.state != ADOPTION_FAILED)
		return error_set(err, ERROR_HEAD_MOVED,
			"The snapshot builds on '%.*s', but must build on the newest one, '%.*s'.",
			shown(params->base), (const char *)params->base.data,
			shown(newest.identity), (const char *)newest.identity.data);
	return error_set(err, ERROR_BASE_MISSING,
		"The snapshot builds on '%.*s', which is unknown.", shown(params->base),
		(const char *)params->base.data);
}

static int add_note(
	struct hot_load *load, struct db *db, const struct run_row *run, struct error *err)
{
	const struct hot_load_params *const params = &load->params;
	struct arena *const arena = load->call.arena;
	const struct adoption adoption = {
		.run = run->id,
		.convention = ADOPT_HOT_LOAD,
		.identity = params->identity,
		.objects = objects_prefix(params, &run->settings, arena),
		.has_base = params->has_base,
		.base = params->base,
	};
	if (arena_overflowed(arena))
		return error_set(err, ERROR_TOO_LARGE, "The texts of the request are too large.");
	return adopt_row_note(db, &adoption, store_now_ms(load->call.store), err);
}

/* The beginning of the keys of the snapshot's objects. */
static struct span objects_prefix(const struct hot_load_params *params,
	const struct run_settings *settings, struct arena *arena)
{
	char prefix[2 * RUN_PREFIX_MAX_BYTES];
	const size_t len = run_settings_prefix(settings->hot_load_prefix, params->run.name, prefix);
	ASSERT(len <= sizeof(prefix));
	const char *const text = arena_format(arena, "%.*s%.*s/", (int)len, prefix,
		(int)params->identity.len, (const char *)params->identity.data);
	return text == NULL ? (struct span){0} : span_text(text);
}

static void hot_load_settle(struct call *call)
{
	if (!call->failed && !((const struct hot_load *)call)->is_known)
		store_wake(call->store, STORE_STEP_WORK);
}

/* Takes a reader and finds the run. NULL with the error set on failure. */
static struct db *open_run(
	struct store *store, const struct run_ref *run, struct run_row *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL || run_row_need(db, run, out, err) == 0)
		return db;
	store_reader_give(store, db);
	return NULL;
}
