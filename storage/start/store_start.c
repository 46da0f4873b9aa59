/* The steps, in an order in which a catalog is refused before anything moves:
 *
 *   1. acknowledged
 *   2. the log, before SQLite sees it
 *   3. the catalog, asked before it migrates
 *   4. its identity against what was acknowledged
 *   5. the headers of the packs against that, and the rows of the table packs against their sum
 *   6. then the packs are settled, and a new life begins
 *
 * A store that is only read takes the same steps on a copy of its catalog, and settles nothing. */
#include "storage/start/store_start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/core/pack_staged_row.h"
#include "storage/core/removal_row.h"
#include "storage/db/db_sums.h"
#include "storage/packs/pack_recovery.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/start/catalog.h"
#include "storage/start/catalog_log.h"
#include "storage/start/lost_changes.h"
#include "storage/start/migration_copy.h"
#include "storage/start/old_catalog.h"

enum { PATH_BYTES = 4096, IDS_SINCE = 5 };

struct starting {
	const struct store_start_params *params;
	struct store_start *out;
	char catalog_path[PATH_BYTES];
	char acknowledged_path[PATH_BYTES];
	char aside_path[PATH_BYTES];
	struct acknowledgement last;
	bool reads_only;
	bool is_whole;   /* certainly everything that the last life acknowledged is there */
	bool has_lost;   /* something is lost, and the policy accepts that */
	bool is_asked;   /* the gate of a migration has judged the identity */
	bool is_refused; /* the gate of the migrations has said why */
	struct pack_record *records;
	size_t record_count;
	struct pack_id *removals;
	size_t removal_count;
	struct pack_recovery *recovery;
};

static void name_paths(struct starting *starting);
static int open_acknowledged(struct starting *starting, struct error *err);
static void set_reads_only(struct starting *starting, const char *why);
static int check_is_there(const struct starting *starting, struct error *err);
static off_t bytes_of(const char *path);
static int check_new(const struct starting *starting, const char *what, struct error *err);
static bool has_journal(const struct starting *starting);
static int count_packs(const struct starting *starting, size_t *out_count, struct error *err);
static int store_start_count_pack(void *taker, const char *name, uint64_t size, struct error *err);
static int lost_catalog(
	const struct starting *starting, const char *what, size_t packs, struct error *err);
static int settle_log(struct starting *starting, struct error *err);
static int prepare_log(
	struct starting *starting, bool accepts_loss, bool *out_is_whole, struct error *err);
static int take_copy(struct starting *starting, struct error *err);
static int open_and_judge(struct starting *starting, struct error *err);
static int open_catalog(struct starting *starting, struct error *err);
static int advise_rebuild(const struct starting *starting, struct error *err);
static int store_start_ask(void *owner, struct db *db, int version, struct error *err);
static int judge_version(struct starting *starting, struct db *db, int version, struct error *err);
static int check_before(struct starting *starting, struct db *db, struct error *err);
static int keep_old(const struct starting *starting, int version, struct error *err);
static int check_old(struct starting *starting, struct db *db, int version, struct error *err);
static int accept_old(struct starting *starting, const struct error *why, struct error *err);
static int refuse_or_accept(
	struct starting *starting, const struct error *why, int64_t change, struct error *err);
static int judge_loss(
	struct starting *starting, const struct error *why, const char *remedy, struct error *err);
static int judge(struct starting *starting, struct error *err);
static int check_identity(struct starting *starting, struct error *err);
static int judge_identity(const struct starting *starting, const struct store_identity *store,
	int64_t change, struct error *out_why, struct error *err);
static int read_names(struct starting *starting, struct error *err);
static int look_at_packs(struct starting *starting, struct error *err);
static struct pack_origin origin_of(const struct store_identity *store);
static int check_packs(struct starting *starting, struct error *err);
static int refuse_without_packs(
	struct starting *starting, const struct pack_facts *facts, struct error *err);
static int prove_rows(struct starting *starting, struct error *err);
static int start_copy(struct starting *starting, struct error *err);
static void close_catalog(struct starting *starting);
static void forget_packs(struct starting *starting);
static int accept(struct starting *starting, struct error *err);
static int begin_life(struct starting *starting, struct error *err);
static int begin_journal(struct starting *starting, struct error *err);
static uint64_t next_life(const struct starting *starting);
static int record_life(struct starting *starting, const struct pack_record *sealed, size_t count,
	struct error *err);
static int note_life(struct starting *starting, struct error *err);
static void release(struct starting *starting);

int store_start(const struct store_start_params *params, struct store_start *out, struct error *err)
{
	struct starting starting = {.params = params, .out = out, .is_whole = true};
	*out = (struct store_start){0};
	name_paths(&starting);
	int result = -1;
	if (open_acknowledged(&starting, err) == 0 && check_is_there(&starting, err) == 0 &&
		settle_log(&starting, err) == 0 && open_and_judge(&starting, err) == 0)
		result = accept(&starting, err);
	forget_packs(&starting);
	if (result == 0)
		return 0;
	release(&starting);
	return err->kind != ERROR_DAMAGED
		? -1
		: error_wrap(err,
			  "The start was refused and nothing was changed (docs/OPERATIONS.md, \"A damaged catalog\")");
}

static void name_paths(struct starting *starting)
{
	const char *folder = starting->params->folder;
	snprintf(starting->catalog_path, sizeof(starting->catalog_path), "%s/catalog.db", folder);
	snprintf(starting->acknowledged_path, sizeof(starting->acknowledged_path),
		"%s/acknowledged", folder);
	snprintf(starting->aside_path, sizeof(starting->aside_path), "%s/set-aside", folder);
}

/* Reads the last acknowledgement. Opening the file for writing shows whether the disk takes
 * writes. */
static int open_acknowledged(struct starting *starting, struct error *err)
{
	const struct store_start_params *params = starting->params;
	starting->out->acknowledged =
		acknowledged_open(params->files, starting->acknowledged_path, &starting->last, err);
	if (starting->out->acknowledged != NULL)
		return 0;
	if (err->os_errno != EROFS)
		return -1;
	set_reads_only(starting, "the file system of the data folder takes no writes.");
	return acknowledged_read(starting->acknowledged_path, &starting->last, err);
}

static void set_reads_only(struct starting *starting, const char *why)
{
	starting->reads_only = true;
	starting->is_whole = false;
	store_health_set_read_only(starting->params->health, why);
}

/* Checks this before SQLite opens the file, because SQLite makes a missing catalog, and removes the
 * log of an empty one. */
static int check_is_there(const struct starting *starting, struct error *err)
{
	char log_path[PATH_BYTES + 8];
	const char *what = file_exists(starting->catalog_path) ? "empty" : "missing";
	size_t packs = 0;
	snprintf(log_path, sizeof(log_path), "%s-wal", starting->catalog_path);
	if (bytes_of(starting->catalog_path) > 0)
		return 0;
	if (bytes_of(log_path) == 0)
		return check_new(starting, what, err);
	return count_packs(starting, &packs, err) != 0 ? -1
						       : lost_catalog(starting, what, packs, err);
}

static off_t bytes_of(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 ? facts.st_size : 0;
}

/* An empty catalog is right only in a new store. Where there are packs, it was emptied or put here
 * by mistake. */
static int check_new(const struct starting *starting, const char *what, struct error *err)
{
	size_t packs;
	if (starting->params->memory_packs)
		return 0;
	if (count_packs(starting, &packs, err) != 0)
		return -1;
	if (packs == 0 && starting->last.store.life == 0 && !has_journal(starting))
		return 0;
	return lost_catalog(starting, what, packs, err);
}

static bool has_journal(const struct starting *starting)
{
	char path[PATH_BYTES + 16];
	char **names = NULL;
	size_t count = 0;
	struct error ignored;
	snprintf(path, sizeof(path), "%s/journal", starting->params->folder);
	if (file_list(path, &names, &count, &ignored) != 0)
		return false;
	file_names_free(names, count);
	return count > 0;
}

static int count_packs(const struct starting *starting, size_t *out_count, struct error *err)
{
	struct backend *backend = starting->params->packs->backend;
	*out_count = 0;
	if (backend->ops->list(backend, store_start_count_pack, out_count, err) != 0)
		return -1;
	return backend->ops->list_aside(backend, store_start_count_pack, out_count, err);
}

static int store_start_count_pack(void *taker, const char *name, uint64_t size, struct error *err)
{
	struct pack_id file;
	enum pack_file_kind kind;
	(void)size, (void)err;
	if (pack_format_parse_name(name, &file, &kind) && kind == PACK_FILE_PACK)
		++*(size_t *)taker;
	return 0;
}

static int lost_catalog(
	const struct starting *starting, const char *what, size_t packs, struct error *err)
{
	return error_set(err, ERROR_DAMAGED,
		"%s is %s, and the store was started %" PRIu64
		" times and has %zu pack files. %s; for a new store, use another folder.",
		starting->catalog_path, what, starting->last.store.life, packs,
		has_journal(starting) ? "Make the catalog again from the journal with deltabucketd"
					" rebuild, or put the newest one back, with its -wal file"
				      : "Put the catalog back, with its -wal file");
}

/* Makes the log fit for SQLite: that of the catalog, or of a copy for a store that is only read. */
static int settle_log(struct starting *starting, struct error *err)
{
	enum after_damage policy = starting->params->after_damage;
	starting->out->catalog_path = memory_copy_text(starting->catalog_path);
	if (!starting->reads_only &&
		prepare_log(starting, policy == AFTER_DAMAGE_SERVE, &starting->is_whole, err) == 0)
		return 0;
	if (!starting->reads_only &&
		(err->kind != ERROR_DAMAGED || policy != AFTER_DAMAGE_READ_ONLY))
		return -1;
	if (!starting->reads_only)
		set_reads_only(starting,
			"the catalog's log is damaged, and --after-damage says read-only.");
	bool ignored;
	return take_copy(starting, err) != 0
		? -1
		: prepare_log(starting, policy != AFTER_DAMAGE_REFUSE, &ignored, err);
}

static int prepare_log(
	struct starting *starting, bool accepts_loss, bool *out_is_whole, struct error *err)
{
	const struct store_start_params *params = starting->params;
	const struct catalog_log_params log = {
		.files = params->files,
		.catalog_path = starting->out->catalog_path,
		.folder = params->folder,
		.aside = starting->out->copy != NULL ? NULL : starting->aside_path,
		.last = &starting->last,
		.floor = params->floor,
		.log = params->log,
		.accepts_loss = accepts_loss,
	};
	return catalog_log_prepare(&log, out_is_whole, err);
}

static int take_copy(struct starting *starting, struct error *err)
{
	struct store_start *out = starting->out;
	catalog_copy_free(out->copy);
	out->copy = catalog_copy_make(starting->params->files, starting->catalog_path, err);
	if (out->copy == NULL)
		return -1;
	free(out->catalog_path);
	out->catalog_path = memory_copy_text(catalog_copy_path(out->copy));
	return 0;
}

static int open_and_judge(struct starting *starting, struct error *err)
{
	if (open_catalog(starting, err) != 0 || judge(starting, err) != 0)
		return -1;
	return starting->has_lost && !starting->reads_only &&
			starting->params->after_damage == AFTER_DAMAGE_READ_ONLY
		? start_copy(starting, err)
		: 0;
}

static int open_catalog(struct starting *starting, struct error *err)
{
	ASSERT(starting->out->db == NULL);
	const struct catalog_gate gate = {.ask = store_start_ask, .owner = starting};
	starting->out->db = catalog_open_asking(starting->out->catalog_path, &gate, err);
	if (starting->out->db == NULL)
		return advise_rebuild(starting, err);
	db_keep_log(starting->out->db, true); /* until it is accepted */
	return store_row_read(starting->out->db, &starting->out->store, err);
}

/* A file that is cut off, or whose first pages are damaged. */
static int advise_rebuild(const struct starting *starting, struct error *err)
{
	const bool is_damaged = err->kind == ERROR_DAMAGED || err->kind == ERROR_CORRUPT;
	if (is_damaged && !starting->is_refused)
		error_advise(err,
			"make it again from the journal with deltabucketd rebuild --replace, or put"
			" the newest copy of it back, with its -wal file.");
	return -1;
}

static int store_start_ask(void *owner, struct db *db, int version, struct error *err)
{
	struct starting *starting = owner;
	const int result = judge_version(starting, db, version, err);
	starting->is_refused = result != 0;
	return result;
}

static int judge_version(struct starting *starting, struct db *db, int version, struct error *err)
{
	if (version == 0)
		return check_new(starting, "empty", err);
	if (version < IDS_SINCE ? check_old(starting, db, version, err) != 0
				: check_before(starting, db, err) != 0)
		return -1;
	return starting->reads_only ? 0 : keep_old(starting, version, err);
}

/* Judges the identity before the migration changes anything. A copy may be migrated first. */
static int check_before(struct starting *starting, struct db *db, struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	struct store_identity store;
	struct error why = {0};
	int64_t change = 0;
	if (starting->reads_only)
		return 0;
	if (store_row_read(db, &store, err) != 0 || db_find_i64(db, SQL_CHANGE, &change, err) < 0)
		return -1;
	starting->is_asked = true;
	if (judge_identity(starting, &store, change, &why, err) != 0)
		return -1;
	if (why.kind == ERROR_NONE)
		return 0;
	if (starting->params->after_damage != AFTER_DAMAGE_READ_ONLY)
		return refuse_or_accept(starting, &why, change, err);
	*err = why; /* to only read it, it would have to be migrated too */
	return -1;
}

/* For a program that knows this schema: the catalog, and for a day the packs that it names. */
static int keep_old(const struct starting *starting, int version, struct error *err)
{
	const struct store_start_params *params = starting->params;
	struct backup_holds *holds = params->packs->holds;
	struct backup_hold ignored;
	if (migration_copy_make(params->files, params->folder, version, err) != 0)
		return -1;
	return holds == NULL ? 0 : backup_holds_take(holds, "before-migration", &ignored, err);
}

/* A catalog from before stores had ids gets one only if it belongs to the packs. */
static int check_old(struct starting *starting, struct db *db, int version, struct error *err)
{
	struct error why = {0};
	const struct old_catalog old = {.db = db,
		.version = version,
		.path = starting->catalog_path,
		.packs = starting->params->packs,
		.store_has_id = starting->last.store.life > 0};
	if (old_catalog_check_ids(&old, err) != 0)
		return -1;
	return old_catalog_check_packs(&old, &why) == 0 ? 0 : accept_old(starting, &why, err);
}

static int accept_old(struct starting *starting, const struct error *why, struct error *err)
{
	if (starting->params->after_damage == AFTER_DAMAGE_SERVE)
		return refuse_or_accept(starting, why, 0, err);
	*err = *why;
	return -1;
}

/* Handles a loss that the policy may accept: refuses the catalog, or logs the loss and goes on.
 * What the journal has is not given up: the next change would take its place there. */
static int refuse_or_accept(
	struct starting *starting, const struct error *why, int64_t change, struct error *err)
{
	const enum after_damage policy = starting->params->after_damage;
	const bool writes = policy == AFTER_DAMAGE_SERVE && !starting->reads_only;
	struct lost_changes lost = {.kept = 0};
	if (policy == AFTER_DAMAGE_REFUSE || writes)
		lost_changes_look(starting->params->folder, change, &lost);
	return writes && lost_changes_come_back(&lost)
		? lost_changes_refuse(&lost, why, err)
		: judge_loss(starting, why, lost.remedy, err);
}

/* `remedy` follows on a refusal. */
static int judge_loss(
	struct starting *starting, const struct error *why, const char *remedy, struct error *err)
{
	ASSERT(why->kind != ERROR_NONE);
	starting->is_whole = false;
	if (starting->params->after_damage == AFTER_DAMAGE_REFUSE)
		return error_set(err, why->kind, "%s%s", why->text, remedy);
	if (!starting->reads_only) /* else it was logged already */
		log_failure(starting->params->log, LOG_ERROR, NULL, "damage_accepted", why);
	starting->has_lost = true;
	return 0;
}

static int judge(struct starting *starting, struct error *err)
{
	if (check_identity(starting, err) != 0 || read_names(starting, err) != 0 ||
		look_at_packs(starting, err) != 0 || check_packs(starting, err) != 0)
		return -1;
	return prove_rows(starting, err);
}

/* Compares the catalog with the last acknowledgement. */
static int check_identity(struct starting *starting, struct error *err)
{
	struct error why = {0};
	starting->is_whole &=
		starting->last.store.life > 0 && acknowledged_is_exact(&starting->last);
	if (starting->is_asked && !starting->reads_only)
		return 0;
	const int64_t change = db_change(starting->out->db);
	if (judge_identity(starting, &starting->out->store, change, &why, err) != 0)
		return -1;
	return why.kind == ERROR_NONE ? 0 : refuse_or_accept(starting, &why, change, err);
}

/* Fails for the catalog of another store. *out_why: what it lacks; untouched when that is nothing.
 * */
static int judge_identity(const struct starting *starting, const struct store_identity *store,
	int64_t change, struct error *out_why, struct error *err)
{
	const struct acknowledgement *last = &starting->last;
	if (last->store.life == 0)
		return 0;
	if (memcmp(store->id, last->store.id, STORE_ID_BYTES) != 0)
		return error_set(err, ERROR_DAMAGED,
			"%s is the catalog of another store than the one in this folder."
			" Put the right one back.",
			starting->catalog_path);
	if (store->life < last->store.life)
		error_set(out_why, ERROR_DAMAGED,
			"%s is older than this store: it was last used at start %" PRIu64
			", and the newest"
			" start was number %" PRIu64 ".",
			starting->catalog_path, store->life, last->store.life);
	else if (change < last->change)
		error_set(out_why, ERROR_DAMAGED,
			"%s ends with change %" PRId64 ", and change %" PRId64
			" was acknowledged: %" PRId64 " changes are lost.",
			starting->catalog_path, change, last->change, last->change - change);
	return 0;
}

static int read_names(struct starting *starting, struct error *err)
{
	if (pack_row_list(starting->out->db, &starting->records, &starting->record_count, err) != 0)
		return -1;
	return removal_row_list(
		starting->out->db, 0, &starting->removals, &starting->removal_count, err);
}

static int look_at_packs(struct starting *starting, struct error *err)
{
	ASSERT(starting->recovery == NULL);
	const struct pack_names names = {starting->records, starting->record_count,
		starting->removals, starting->removal_count};
	const struct pack_origin origin = origin_of(&starting->out->store);
	starting->recovery = pack_recovery_look(starting->params->packs, &names, &origin, err);
	return starting->recovery == NULL ? -1 : 0;
}

static struct pack_origin origin_of(const struct store_identity *store)
{
	struct pack_origin origin = {.life = (uint32_t)store->life};
	memcpy(origin.store, store->id, PACK_STORE_BYTES);
	return origin;
}

/* Compares the catalog with the headers of the packs. */
static int check_packs(struct starting *starting, struct error *err)
{
	const struct pack_facts *facts = pack_recovery_facts(starting->recovery);
	struct error why = {0};
	if (facts->foreign > 0 && starting->last.store.life == 0)
		return error_set(err, ERROR_DAMAGED,
			"%s and packs beside it (%s) are of different stores. Put a catalog and its own packs together.",
			starting->catalog_path, facts->foreign_name);
	if (facts->newest_life > starting->out->store.life)
		error_set(&why, ERROR_DAMAGED,
			"%s is older than the packs beside it: it was last used at start %" PRIu64
			", and pack %s was made"
			" at start %u.",
			starting->catalog_path, starting->out->store.life, facts->newest_name,
			facts->newest_life);
	else if (facts->missing > 0 && facts->missing == facts->named &&
		!starting->params->memory_packs)
		return refuse_without_packs(starting, facts, err);
	return why.kind == ERROR_NONE
		? 0
		: refuse_or_accept(starting, &why, db_change(starting->out->db), err);
}

/* The folder of packs is gone, emptied, not mounted, or another store's. */
static int refuse_without_packs(
	struct starting *starting, const struct pack_facts *facts, struct error *err)
{
	struct error why = {0};
	error_set(&why, ERROR_DAMAGED, "%s names %zu packs, and none of them is here.",
		starting->catalog_path, facts->named);
	if (facts->unnamed > 0)
		error_advise(&why, "%zu others are.", facts->unnamed);
	return judge_loss(starting, &why,
		" Put packs/ back, or mount what is missing; or read what this one knows with"
		" --after-damage read-only.",
		err);
}

/* Without a row that the disk has lost, a pack file would look like garbage. So the table packs is
 * compared with its sum. */
static int prove_rows(struct starting *starting, struct error *err)
{
	struct table_sums *stored = memory_new(sizeof(*stored));
	struct table_sum found;
	int result = db_sums_load(starting->out->db, stored, err);
	if (result == 0)
		result = db_sums_count(starting->out->db, "packs", &found, err);
	if (result == 0) {
		const struct table_sum *packs = &stored->tables[table_sums_place(stored, "packs")];
		starting->is_whole &= packs->rows == found.rows && packs->sum == found.sum;
	}
	free(stored);
	return result;
}

/* Repeats the steps on a copy, when the catalog lacks something and the policy is read-only. */
static int start_copy(struct starting *starting, struct error *err)
{
	bool ignored;
	ASSERT(!starting->reads_only);
	set_reads_only(starting,
		"the catalog lacks acknowledged changes or its packs, and --after-damage says read-only.");
	close_catalog(starting);
	forget_packs(starting);
	if (take_copy(starting, err) != 0 || prepare_log(starting, true, &ignored, err) != 0 ||
		open_catalog(starting, err) != 0)
		return -1;
	return judge(starting, err);
}

static void close_catalog(struct starting *starting)
{
	db_close(starting->out->db);
	starting->out->db = NULL;
}

static void forget_packs(struct starting *starting)
{
	pack_recovery_free(starting->recovery);
	free(starting->records);
	free(starting->removals);
	starting->recovery = NULL;
	starting->records = NULL;
	starting->removals = NULL;
}

static int accept(struct starting *starting, struct error *err)
{
	if (!starting->params->memory_packs)
		pack_recovery_tell_missing(starting->recovery, starting->params->health);
	if (starting->reads_only)
		pack_recovery_accept(starting->recovery);
	else if (begin_life(starting, err) != 0)
		return -1;
	const struct pack_origin origin = origin_of(&starting->out->store);
	pack_store_set_origin(starting->params->packs, &origin);
	return 0;
}

/* Makes the pack files match the catalog, and begins a new life for the packs to come. */
static int begin_life(struct starting *starting, struct error *err)
{
	struct pack_record *sealed = NULL;
	size_t count = 0;
	ASSERT(!starting->reads_only && starting->out->copy == NULL);
	const bool is_whole = starting->is_whole && !starting->params->keeps_strays;
	if (pack_recovery_settle(starting->recovery, is_whole, &sealed, &count, err) != 0)
		return -1;
	pack_staged_row_restore(starting->out->db, starting->params->packs, starting->records,
		starting->record_count, starting->params->log);
	starting->out->store.life = next_life(starting);
	if (begin_journal(starting, err) != 0) {
		free(sealed);
		return -1;
	}
	int result = record_life(starting, sealed, count, err);
	free(sealed);
	if (result != 0)
		return -1;
	db_keep_log(starting->out->db, false);
	return note_life(starting, err);
}

/* The new life is its first change. */
static int begin_journal(struct starting *starting, struct error *err)
{
	struct store_start *out = starting->out;
	char folder[PATH_BYTES + 16];
	int schema = 0;
	int application = 0;
	if (db_get_version(out->db, &schema, &application, err) != 0)
		return -1;
	snprintf(folder, sizeof(folder), "%s/journal", starting->params->folder);
	struct journal_options options = {.files = starting->params->files,
		.folder = folder,
		.life = out->store.life,
		.schema = (uint32_t)schema,
		.change = db_change(out->db),
		.log = starting->params->log};
	if (db_sums_total(out->db, &options.sums, err) != 0)
		return -1;
	memcpy(options.store, out->store.id, JOURNAL_STORE_BYTES);
	out->journal = journal_open(&options, err);
	if (out->journal == NULL)
		return -1;
	const struct db_recorder recorder = journal_recorder(out->journal);
	return db_set_recorder(out->db, &recorder, err);
}

static uint64_t next_life(const struct starting *starting)
{
	uint64_t life = starting->out->store.life;
	uint32_t packs = pack_recovery_facts(starting->recovery)->newest_life;
	life = life > starting->last.store.life ? life : starting->last.store.life;
	return (life > packs ? life : packs) + 1;
}

static int record_life(struct starting *starting, const struct pack_record *sealed, size_t count,
	struct error *err)
{
	struct db *db = starting->out->db;
	if (db_begin(db, err) != 0)
		return -1;
	int result = store_row_set_life(db, starting->out->store.life, err);
	for (size_t i = 0; i < count && result == 0; i++)
		result = pack_row_record(db, &sealed[i], err);
	if (result == 0)
		return db_commit(db, err);
	db_rollback(db);
	return -1;
}

static int note_life(struct starting *starting, struct error *err)
{
	ASSERT(starting->out->acknowledged != NULL);
	struct db *db = starting->out->db;
	const struct acknowledgement now = {.store = starting->out->store,
		.change = db_change(db),
		.log_salt = db_log_salt(db),
		.log_frames = db_log_frames(db)};
	if (acknowledged_note(starting->out->acknowledged, &now, err) != 0)
		return -1;
	return acknowledged_sync(starting->out->acknowledged, err);
}

static void release(struct starting *starting)
{
	struct store_start *out = starting->out;
	close_catalog(starting);
	journal_close(out->journal);
	acknowledged_close(out->acknowledged);
	catalog_copy_free(out->copy);
	free(out->catalog_path);
	*out = (struct store_start){0};
}
