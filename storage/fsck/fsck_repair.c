/* Most of it is what each start does: it mends the log, brings files back, sets strays aside, and
 * makes damaged indexes again. So the store is opened, without background work, and what is left is
 * done by changes of its own:
 *
 *   open --> await the proof of the catalog --> counts, packs, chunks, chunk index, journal --> close */
#include "storage/fsck/fsck_repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/pack_mend.h"
#include "storage/core/pack_row.h"
#include "storage/fsck/fsck_internal.h"
#include "storage/fsck/pack_return.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/pack_table.h"
#include "storage/packs/set_aside.h"
#include "storage/packs/store_health.h"
#include "storage/scrub/chunk_heal.h"
#include "storage/xet/xorb_row.h"

enum { PATH_BYTES = 4096, MEND_TRIES = 100, WAIT_MS = 100, JOURNAL_WAITS = 600 };
enum { PROOF_WAIT_MS = 24 * 60 * 60 * 1000 }; /* a large catalog is read whole */

struct repair_item {
	enum finding_kind kind;
	char subject[FINDING_SUBJECT_BYTES];
	int64_t number;
	uint32_t chunk;
	uint32_t chunks;
};
struct fsck_repair {
	const char *folder;
	const struct file_ops *files;
	struct log *log;
	struct backup_vault *vault; /* NULL: there is no backup */
	struct store *store;        /* while it is open */
	struct repair_item *items;
	size_t count;
	size_t capacity;
};

static const char SQL_COUNT[] =
	"UPDATE part_sets SET is_dead = 0 WHERE is_dead = 1 AND id IN (SELECT id FROM " FSCK_ALL_HOLDERS
	");"
	"UPDATE part_sets SET holders = h.holders FROM (SELECT id, count(*) AS holders FROM"
	" " FSCK_ALL_HOLDERS
	" GROUP BY id) h WHERE h.id = part_sets.id AND part_sets.holders <> h.holders;"
	"INSERT INTO part_sets (id, row_count, holders) SELECT h.id, (SELECT count(*) FROM segments s"
	" WHERE s.part_set = h.id), count(*) FROM " FSCK_ALL_HOLDERS
	" h WHERE h.id NOT IN (SELECT id FROM"
	" part_sets) GROUP BY h.id HAVING count(*) > 1;"
	/* The plus and the column `bytes` keep this from being read off the index segments_pack. */
	"UPDATE packs SET named = t.named FROM (SELECT p.number, coalesce(s.named, 0) AS named FROM"
	" packs p LEFT JOIN (SELECT pack, sum(3 * first + count) AS named FROM segments WHERE"
	" bytes >= 0 GROUP BY +pack) s ON s.pack = p.number) t WHERE t.number = packs.number AND"
	" packs.named <> t.named;"
	"INSERT INTO bucket_totals (bucket, files, bytes, updated_ms) SELECT id, 0, 0, created_ms FROM"
	" buckets WHERE id NOT IN (SELECT bucket FROM bucket_totals);"
	"UPDATE bucket_totals SET files = t.files, bytes = t.bytes FROM (SELECT b.id, count(v.sequence)"
	" AS files, coalesce(sum(v.size), 0) AS bytes FROM buckets b LEFT JOIN versions v ON v.bucket ="
	" b.id AND v.state = 1 AND v.is_marker = 0 GROUP BY b.id) t WHERE t.id = bucket_totals.bucket"
	" AND (bucket_totals.files <> t.files OR bucket_totals.bytes <> t.bytes);";
static const char SQL_KEEP_FILES[] =
	"DELETE FROM removals WHERE file IN (SELECT coalesce(file, id) FROM packs);";

static const char SQL_DROP_XORBS[] =
	"DELETE FROM xorbs WHERE NOT EXISTS (SELECT 1 FROM packs p WHERE p.number = xorbs.pack AND"
	" xorbs.first + xorbs.count <= p.chunks);";

struct repair_change {
	struct change change; /* first */
	const char *sql;      /* NULL: the xorbs of a pack */
	int64_t pack;
	uint32_t chunks;
	const uint8_t *live;
};

static int return_packs(struct fsck_repair *repair, struct error *err);
static bool is_lost(enum finding_kind kind);
static bool is_returned(const struct fsck_repair *repair, size_t at);
static bool has(const struct fsck_repair *repair, enum finding_kind kind);
static void set_snapshots_aside(const struct fsck_repair *repair);
static int await_proof(struct fsck_repair *repair, struct error *err);
static void repair_open_store(struct fsck_repair *repair);
static void tell_failure(const struct fsck_repair *repair, const char *event, struct error *err);
static void run_sql(struct fsck_repair *repair, const char *sql);
static int fsck_repair_apply_sql(struct change *change, struct db *db, struct error *err);
static void repair_packs(struct fsck_repair *repair);
static bool is_first_of_pack(const struct fsck_repair *repair, size_t at);
static int find_pack(
	struct fsck_repair *repair, int64_t number, struct pack_record *out, struct error *err);
static int rewrite_pack(
	struct fsck_repair *repair, const struct repair_item *item, struct error *err);
static int note_chunks(
	struct fsck_repair *repair, const struct repair_item *item, struct error *err);
static void heal_chunks(struct fsck_repair *repair);
static bool fsck_repair_spend(void *owner, size_t bytes);
static int drop_xorbs(
	struct fsck_repair *repair, const struct repair_item *item, struct error *err);
static int mark_present(struct fsck_repair *repair, const struct pack_record *record,
	uint8_t live[PACK_MAX_CHUNKS / 8], struct error *err);
static int fsck_repair_apply_xorbs(struct change *change, struct db *db, struct error *err);
static void renew_journal(struct fsck_repair *repair);

/* Each for one finding, in the opened store. */
static const struct {
	enum finding_kind kind;
	int (*run)(struct fsck_repair *repair, const struct repair_item *item, struct error *err);
	bool once; /* for a pack, however many findings name it */
} pack_repairs[] = {{FINDING_PACK_COPY, rewrite_pack, true}, {FINDING_CHUNK, note_chunks, false},
	{FINDING_XORB, drop_xorbs, true}};

struct fsck_repair *fsck_repair_new(
	const char *folder, const struct file_ops *files, struct log *log)
{
	struct fsck_repair *repair = memory_new(sizeof(*repair));
	repair->folder = folder;
	repair->files = files;
	repair->log = log;
	return repair;
}

void fsck_repair_free(struct fsck_repair *repair)
{
	if (repair == NULL)
		return;
	free(repair->items);
	free(repair);
}

void fsck_repair_use(struct fsck_repair *repair, struct backup_vault *vault)
{
	repair->vault = vault;
}

void fsck_repair_add(struct fsck_repair *repair, const struct finding *finding)
{
	repair->items = memory_make_room(
		repair->items, repair->count, &repair->capacity, sizeof(*repair->items));
	struct repair_item *item = &repair->items[repair->count++];
	*item = (struct repair_item){.kind = finding->kind,
		.number = finding->number,
		.chunk = finding->chunk,
		.chunks = finding->chunks};
	memcpy(item->subject, finding->subject, sizeof(item->subject));
}

int fsck_repair_preview(struct fsck_repair *repair, fsck_repair_return_fn *take, void *owner,
	struct error *err)
{
	ASSERT(repair->vault != NULL);
	int result = 0;
	struct pack_return *back =
		pack_return_open(repair->folder, repair->files, repair->vault, err);
	if (back == NULL)
		return -1;
	for (size_t i = 0; i < repair->count && result == 0; i++) {
		const struct repair_item *item = &repair->items[i];
		bool has = false;
		if (!is_lost(item->kind) || is_returned(repair, i))
			continue;
		result = pack_return_has(back, item->number, &has, err);
		if (result == 0)
			take(owner, item->subject, has);
	}
	pack_return_close(back);
	return result;
}

int fsck_repair_run(struct fsck_repair *repair, struct error *err)
{
	const struct store_options options = {.folder = repair->folder,
		.files = repair->files,
		.log = repair->log,
		.is_quiet = true};
	if (repair->vault != NULL && return_packs(repair, err) != 0)
		return -1;
	repair->store = store_open(&options, err);
	if (repair->store == NULL)
		return -1;
	const int result = await_proof(repair, err);
	if (result == 0)
		repair_open_store(repair);
	store_close(repair->store);
	repair->store = NULL;
	return result;
}

/* Fails when the backup cannot be read. */
static int return_packs(struct fsck_repair *repair, struct error *err)
{
	struct error why = {0};
	struct pack_return *back =
		pack_return_open(repair->folder, repair->files, repair->vault, err);
	if (back == NULL)
		return error_wrap(err, "Nothing was changed");
	for (size_t i = 0; i < repair->count; i++)
		if (is_lost(repair->items[i].kind) && !is_returned(repair, i) &&
			pack_return_run(back, repair->items[i].number, &why) != 0)
			tell_failure(repair, "backup", &why);
	pack_return_close(back);
	return 0;
}

static bool is_lost(enum finding_kind kind)
{
	return kind == FINDING_PACK || kind == FINDING_CHUNK;
}

/* Whether an earlier item is of the same pack. */
static bool is_returned(const struct fsck_repair *repair, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_lost(repair->items[i].kind) &&
			repair->items[i].number == repair->items[at].number)
			return true;
	return false;
}

static bool has(const struct fsck_repair *repair, enum finding_kind kind)
{
	for (size_t i = 0; i < repair->count; i++)
		if (repair->items[i].kind == kind)
			return true;
	return false;
}

static void set_snapshots_aside(const struct fsck_repair *repair)
{
	char path[PATH_BYTES];
	struct error err = {0};
	for (size_t i = 0; i < repair->count; i++) {
		if (repair->items[i].kind != FINDING_SNAPSHOT)
			continue;
		snprintf(path, sizeof(path), "%s/journal/%s", repair->folder,
			repair->items[i].subject);
		if (set_aside_take(repair->files, repair->folder, path, &err) != 0)
			tell_failure(repair, "snapshot", &err);
	}
}

/* The check after the start makes indexes again. */
static int await_proof(struct fsck_repair *repair, struct error *err)
{
	struct store_health *health = store_health(repair->store);
	if (!store_health_wait(health, PROOF_WAIT_MS))
		return error_set(err, ERROR_BUSY, "The check of the catalog did not end.");
	if (store_health_proof(health) == STORE_DAMAGED)
		return error_set(err, ERROR_DAMAGED,
			"The catalog has damage that no repair mends, so the rest was left as it is. Make"
			" it again with deltabucketd rebuild --replace (docs/OPERATIONS.md, \"A lost"
			" catalog\"), and check again.");
	return store_health_check_delete(health, err);
}

static void repair_open_store(struct fsck_repair *repair)
{
	if (has(repair, FINDING_COUNT))
		run_sql(repair, SQL_COUNT);
	if (has(repair, FINDING_REMOVAL))
		run_sql(repair, SQL_KEEP_FILES);
	repair_packs(repair);
	if (has(repair, FINDING_CHUNK))
		heal_chunks(repair);
	if (has(repair, FINDING_CHUNK_INDEX)) {
		const struct error why = {.kind = ERROR_CORRUPT, .text = "fsck found damage."};
		chunk_index_give_up(store_chunk_index(repair->store), &why);
	}
	set_snapshots_aside(repair);
	if (has(repair, FINDING_JOURNAL) || has(repair, FINDING_SNAPSHOT))
		renew_journal(repair);
}

static void tell_failure(const struct fsck_repair *repair, const char *event, struct error *err)
{
	log_failure(repair->log, LOG_ERROR, NULL, event, err);
	*err = (struct error){0};
}

static void run_sql(struct fsck_repair *repair, const char *sql)
{
	struct repair_change change = {.change = {.apply = fsck_repair_apply_sql}, .sql = sql};
	struct error err = {0};
	if (committer_run(store_committer(repair->store), &change.change, &err) != 0)
		tell_failure(repair, "count", &err);
}

static int fsck_repair_apply_sql(struct change *change, struct db *db, struct error *err)
{
	return db_run_script(db, ((struct repair_change *)change)->sql, err);
}

static void repair_packs(struct fsck_repair *repair)
{
	struct error err = {0};
	for (size_t kind = 0; kind < sizeof(pack_repairs) / sizeof(pack_repairs[0]); kind++)
		for (size_t i = 0; i < repair->count; i++) {
			const struct repair_item *item = &repair->items[i];
			if (item->kind != pack_repairs[kind].kind ||
				(pack_repairs[kind].once && !is_first_of_pack(repair, i)))
				continue;
			if (pack_repairs[kind].run(repair, item, &err) != 0)
				tell_failure(repair, finding_kind_name(item->kind), &err);
		}
}

static bool is_first_of_pack(const struct fsck_repair *repair, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (repair->items[i].kind == repair->items[at].kind &&
			repair->items[i].number == repair->items[at].number)
			return false;
	return true;
}

/* not_found when the pack is gone by now. */
static int find_pack(
	struct fsck_repair *repair, int64_t number, struct pack_record *out, struct error *err)
{
	struct db *db = store_reader_take(repair->store, err);
	if (db == NULL)
		return -1;
	const int found = pack_row_find(db, number, out, err);
	store_reader_give(repair->store, db);
	return found == 0
		? error_set(err, ERROR_NOT_FOUND, "pack row %lld is gone", (long long)number)
		: found - 1;
}

/* Writes the pack again from its records and from the description that is right. */
static int rewrite_pack(
	struct fsck_repair *repair, const struct repair_item *item, struct error *err)
{
	static const struct pack_patch nothing = {.count = 0};
	struct pack_record record;
	if (find_pack(repair, item->number, &record, err) != 0)
		return -1;
	if (!pack_store_refer(store_packs(repair->store), &record.id))
		return error_set(err, ERROR_BUSY, "the pack is being removed");
	int result = -1;
	for (int i = 0; i < MEND_TRIES && result != 0; i++) {
		*err = (struct error){0};
		result = pack_mend(repair->store, &record.id, &nothing, err);
		if (result != 0 && err->kind != ERROR_BUSY)
			break;
		if (result != 0)
			nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000 * 1000}, NULL);
	}
	pack_store_unrefer(store_packs(repair->store), &record.id);
	return result;
}

/* Reads the chunks once more. From here on nothing new leads to those that are damaged, and an
 * upload of the same bytes mends them; those that came back from a backup are forgotten. */
static int note_chunks(
	struct fsck_repair *repair, const struct repair_item *item, struct error *err)
{
	struct pack_store *packs = store_packs(repair->store);
	struct pack_record record;
	if (find_pack(repair, item->number, &record, err) != 0)
		return -1;
	for (uint32_t i = 0; i < item->chunks; i++) {
		const struct pack_run run = {
			.pack = record.id, .first = item->chunk + i, .chunks = 1};
		struct error damaged;
		(void)pack_store_check_records(packs, &run, &damaged);
	}
	return 0;
}

/* Mends the chunks that were noted, where another pack has the same bytes. */
static void heal_chunks(struct fsck_repair *repair)
{
	const struct work_pace pace = {.spend = fsck_repair_spend};
	struct chunk_wants *wants = chunk_wants_new();
	struct chunk_heal_report report = {.waiting = 1};
	struct error err = {0};
	for (int i = 0; i < MEND_TRIES && report.waiting > 0; i++) {
		if (chunk_heal_run(repair->store, wants, &pace, &report, &err) != 0) {
			tell_failure(repair, "heal", &err);
			break;
		}
		if (report.waiting > 0)
			nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000 * 1000}, NULL);
	}
	chunk_wants_free(wants);
}

static bool fsck_repair_spend(void *owner, size_t bytes)
{
	(void)owner, (void)bytes;
	return true;
}

/* Removes the rows of xorbs that are not whole any more. */
static int drop_xorbs(struct fsck_repair *repair, const struct repair_item *item, struct error *err)
{
	struct pack_record record;
	uint8_t live[PACK_MAX_CHUNKS / 8] = {0};
	run_sql(repair, SQL_DROP_XORBS);
	if (find_pack(repair, item->number, &record, err) != 0)
		return err->kind == ERROR_NOT_FOUND ? 0 : -1; /* its rows have just gone */
	if (mark_present(repair, &record, live, err) != 0)
		return -1;
	struct repair_change change = {.change = {.apply = fsck_repair_apply_xorbs},
		.pack = item->number,
		.chunks = record.chunks,
		.live = live};
	return committer_run(store_committer(repair->store), &change.change, err);
}

static int mark_present(struct fsck_repair *repair, const struct pack_record *record,
	uint8_t live[PACK_MAX_CHUNKS / 8], struct error *err)
{
	struct pack_cache *cache = store_packs(repair->store)->cache;
	struct pack *pinned = pack_cache_pin(cache, &record->id, false, err);
	if (pinned == NULL)
		return -1;
	const struct pack_index *index = pack_cache_sealed_index(cache, pinned);
	for (uint32_t i = 0; index != NULL && i < index->count; i++) {
		const uint32_t number = pack_index_number(index, i);
		live[number / 8] |= (uint8_t)(1 << (number % 8));
	}
	pack_cache_unpin(cache, pinned);
	return index != NULL ? 0 : error_set(err, ERROR_BUSY, "the pack is not sealed");
}

static int fsck_repair_apply_xorbs(struct change *change, struct db *db, struct error *err)
{
	const struct repair_change *xorbs = (const struct repair_change *)change;
	return xorb_row_drop_broken(db, xorbs->pack, xorbs->chunks, xorbs->live, err);
}

/* Its keeper makes another snapshot at once. */
static void renew_journal(struct fsck_repair *repair)
{
	struct journal *journal = store_journal(repair->store);
	if (journal == NULL)
		return;
	journal_doubt(journal);
	for (int i = 0; i < JOURNAL_WAITS && journal_is_incomplete(journal); i++)
		nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000 * 1000}, NULL);
}
