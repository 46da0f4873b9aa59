/* The order is what makes an interruption harmless:
 *
 *   1. the catalog is made under another name, and a snapshot of it in the journal; both are synced
 *   2. a catalog that is there is set aside
 *   3. `acknowledged` goes: a start must not hold the new catalog against the lost one
 *   4. the new catalog gets its name
 *
 * Between 2 and 4 a start finds no catalog and a journal, and refuses. */
#include "storage/rebuild/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/core/acknowledged.h"
#include "storage/journal/snapshot.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/place_note.h"
#include "storage/packs/set_aside.h"
#include "storage/rebuild/catalog_filler.h"

enum { PATH_BYTES = 4096 };

static const char *const suffixes[] = {"", "-wal", "-shm"};
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

struct rebuilding {
	const struct rebuild_params *params;
	struct rebuild_report *out;
	char catalog[PATH_BYTES];
	char scratch[PATH_BYTES];
	uint64_t life; /* the highest that anything in the folder knows */
	struct journal_history *history;
	struct db *db;
};

static void path_in(const struct rebuilding *rebuilding, const char *name, char out[PATH_BYTES]);
static int check_catalog(const struct rebuilding *rebuilding, struct error *err);
static int read_acknowledged(struct rebuilding *rebuilding, struct error *err);
static int remove_scratch(const struct rebuilding *rebuilding, struct error *err);
static int refuse_scratch(const char *path, struct error *err);
static int make_catalog(struct rebuilding *rebuilding, struct error *err);
static bool leads_there(
	const struct rebuilding *rebuilding, const struct journal_way *way, struct error *err);
static int no_snapshot(const struct rebuilding *rebuilding, struct error *err);
static struct backend *open_packs(const struct rebuilding *rebuilding, struct error *err);
static int rebuild_count(void *taker, const char *name, uint64_t size, struct error *err);
static void note_way(struct rebuilding *rebuilding, const struct journal_way *way);
static int complete_catalog(struct rebuilding *rebuilding, struct error *err);
static int adopt_packs(struct rebuilding *rebuilding, struct error *err);
static int set_life(
	struct rebuilding *rebuilding, const struct store_identity *store, struct error *err);
static int count_content(struct rebuilding *rebuilding, struct error *err);
static int make_snapshot(struct rebuilding *rebuilding, struct error *err);
static bool rebuild_goes_on(void *owner);
static int sync_catalog(struct rebuilding *rebuilding, struct error *err);
static int put_in_place(struct rebuilding *rebuilding, struct error *err);
static int set_aside(const struct rebuilding *rebuilding, const char *suffix, struct error *err);

int rebuild_run(const struct rebuild_params *params, struct rebuild_report *out, struct error *err)
{
	struct rebuilding rebuilding = {.params = params, .out = out};
	struct error ignored;
	*out = (struct rebuild_report){.acknowledged = 0};
	path_in(&rebuilding, "catalog.db", rebuilding.catalog);
	path_in(&rebuilding, "rebuilding.db", rebuilding.scratch);
	int result = -1;
	if (check_catalog(&rebuilding, err) == 0 && read_acknowledged(&rebuilding, err) == 0 &&
		remove_scratch(&rebuilding, err) == 0 && make_catalog(&rebuilding, err) == 0)
		result = complete_catalog(&rebuilding, err);
	if (result == 0 && !params->is_dry_run)
		result = make_snapshot(&rebuilding, err);
	db_close(rebuilding.db);
	if (result == 0 && !params->is_dry_run) {
		result = sync_catalog(&rebuilding, err);
		if (result == 0)
			result = put_in_place(&rebuilding, err);
	}
	(void)remove_scratch(&rebuilding, &ignored);
	out->way.snapshot = out->way.snapshot != NULL ? out->snapshot_name : NULL;
	journal_history_free(rebuilding.history);
	return result;
}

static void path_in(const struct rebuilding *rebuilding, const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/%s", rebuilding->params->folder, name);
}

/* An empty catalog, and a log without a catalog, hold nothing that a start would take. They are set
 * aside all the same. */
static int check_catalog(const struct rebuilding *rebuilding, struct error *err)
{
	bool is_there;
	uint64_t bytes = 0;
	if (rebuilding->params->replaces || rebuilding->params->is_dry_run)
		return 0;
	if (file_find(rebuilding->catalog, &is_there, err) != 0 ||
		(is_there && file_size(rebuilding->catalog, &bytes, err) != 0))
		return -1;
	return bytes == 0
		? 0
		: error_set(err, ERROR_EXISTS,
			  "%s is there. With --replace it is set aside, and the one made from the"
			  " journal takes its place.",
			  rebuilding->catalog);
}

static int read_acknowledged(struct rebuilding *rebuilding, struct error *err)
{
	char path[PATH_BYTES];
	struct acknowledgement last = {.change = 0};
	path_in(rebuilding, "acknowledged", path);
	if (acknowledged_read(path, &last, err) != 0)
		return -1;
	rebuilding->out->acknowledged = last.change;
	rebuilding->out->is_exact = last.change > 0 && acknowledged_is_exact(&last);
	rebuilding->life = last.store.life;
	return 0;
}

static int remove_scratch(const struct rebuilding *rebuilding, struct error *err)
{
	const struct file_ops *files = rebuilding->params->files;
	for (size_t i = 0; i < SUFFIXES; i++) {
		char path[PATH_BYTES + 8];
		snprintf(path, sizeof(path), "%s%s", rebuilding->scratch, suffixes[i]);
		if (files->unlink(files, path) != 0 && errno != ENOENT)
			return refuse_scratch(path, err);
	}
	return 0;
}

/* Also where there is none: a disk that takes no writes refuses the call. */
static int refuse_scratch(const char *path, struct error *err)
{
	error_set_errno(err, "%s cannot be removed", path);
	if (err->kind == ERROR_READ_ONLY)
		error_advise(err,
			"rebuild makes a catalog in the data folder, also with --dry-run: copy the"
			" folder to a disk that takes writes");
	return -1;
}

/* Takes the way that leads furthest and can be read. */
static int make_catalog(struct rebuilding *rebuilding, struct error *err)
{
	char folder[PATH_BYTES];
	path_in(rebuilding, "journal", folder);
	rebuilding->history = journal_history_read(folder, err);
	if (rebuilding->history == NULL)
		return -1;
	const size_t ways = journal_history_snapshots(rebuilding->history);
	rebuilding->out->damaged_snapshots = journal_history_damaged(rebuilding->history);
	for (size_t i = 0; i < ways; i++) {
		struct journal_way way;
		journal_history_way(rebuilding->history, i, &way);
		rebuilding->db = leads_there(rebuilding, &way, err)
			? catalog_filler_make(rebuilding->scratch, rebuilding->history, &way, err)
			: NULL;
		if (rebuilding->db != NULL) {
			note_way(rebuilding, &way);
			return 0;
		}
		struct error ignored;
		if (err->kind != ERROR_CORRUPT || remove_scratch(rebuilding, &ignored) != 0)
			return -1;
		rebuilding->out->damaged_snapshots++;
	}
	return ways > 0 ? -1 : no_snapshot(rebuilding, err);
}

static bool leads_there(
	const struct rebuilding *rebuilding, const struct journal_way *way, struct error *err)
{
	const int64_t expected = rebuilding->params->expects_change;
	if (expected == 0 || way->end.change == expected)
		return true;
	error_set(err, ERROR_CORRUPT, "The journal leads to change %lld and not to change %lld.",
		(long long)way->end.change, (long long)expected);
	return false;
}

static int no_snapshot(const struct rebuilding *rebuilding, struct error *err)
{
	struct backend *backend = open_packs(rebuilding, err);
	if (backend == NULL)
		return -1;
	const int listed = backend->ops->list(backend, rebuild_count, rebuilding->out, err);
	backend->ops->free(backend);
	if (listed != 0)
		return -1;
	if (journal_history_damaged(rebuilding->history) > 0)
		return error_set(err, ERROR_CORRUPT,
			"The journal has no other snapshot than a damaged one, so no catalog can be made: %s",
			journal_history_damage(rebuilding->history));
	return error_set(err, ERROR_NOT_FOUND,
		"%s/journal has no snapshot, so nothing says what the packs are: no catalog can be made.",
		rebuilding->params->folder);
}

static struct backend *open_packs(const struct rebuilding *rebuilding, struct error *err)
{
	char packs[PATH_BYTES];
	char aside[PATH_BYTES];
	path_in(rebuilding, "packs", packs);
	path_in(rebuilding, "set-aside", aside);
	return place_note_check(rebuilding->params->folder, err) != 0
		? NULL
		: backend_folder_open(packs, aside, rebuilding->params->files, err);
}

static int rebuild_count(void *taker, const char *name, uint64_t size, struct error *err)
{
	struct rebuild_report *out = taker;
	struct pack_id file;
	enum pack_file_kind kind;
	(void)err;
	if (pack_format_parse_name(name, &file, &kind) && kind == PACK_FILE_PACK) {
		out->nameless_packs++;
		out->nameless_bytes += size;
	}
	return 0;
}

static void note_way(struct rebuilding *rebuilding, const struct journal_way *way)
{
	struct rebuild_report *out = rebuilding->out;
	const uint64_t life = journal_history_life(rebuilding->history);
	out->way = *way;
	snprintf(out->snapshot_name, sizeof(out->snapshot_name), "%s",
		strrchr(way->snapshot, '/') + 1);
	rebuilding->life = life > rebuilding->life ? life : rebuilding->life;
}

static int complete_catalog(struct rebuilding *rebuilding, struct error *err)
{
	struct db *db = rebuilding->db;
	if (db_begin(db, err) != 0)
		return -1;
	if (adopt_packs(rebuilding, err) != 0) {
		db_rollback(db);
		return -1;
	}
	return db_commit(db, err) != 0 ? -1 : count_content(rebuilding, err);
}

static int adopt_packs(struct rebuilding *rebuilding, struct error *err)
{
	struct store_identity store;
	if (store_row_read(rebuilding->db, &store, err) != 0)
		return -1;
	struct backend *backend = open_packs(rebuilding, err);
	if (backend == NULL)
		return -1;
	const int result = pack_adoption_run(rebuilding->db, backend, &store,
		clock_wall_ms() + rebuilding->params->promise_ms, &rebuilding->out->packs, err);
	backend->ops->free(backend);
	return result != 0 ? -1 : set_life(rebuilding, &store, err);
}

/* A catalog must not be older than a pack, or than what was acknowledged. */
static int set_life(
	struct rebuilding *rebuilding, const struct store_identity *store, struct error *err)
{
	const uint64_t packs = rebuilding->out->packs.life;
	uint64_t life = store->life;
	life = life > rebuilding->life ? life : rebuilding->life;
	life = (life > packs ? life : packs) + rebuilding->params->lives;
	return life == store->life ? 0 : store_row_set_life(rebuilding->db, life, err);
}

static int count_content(struct rebuilding *rebuilding, struct error *err)
{
	struct rebuild_report *out = rebuilding->out;
	struct db *db = rebuilding->db;
	if (db_find_i64(db, "SELECT count(*) FROM buckets", &out->buckets, err) < 0 ||
		db_find_i64(db, "SELECT count(*) FROM versions WHERE state = 1", &out->objects,
			err) < 0 ||
		db_find_i64(db, "SELECT count(*) FROM steps WHERE state = 0", &out->steps, err) < 0)
		return -1;
	return db_checkpoint_truncate(db, err);
}

/* So that the journal leads to this catalog from the start on. */
static int make_snapshot(struct rebuilding *rebuilding, struct error *err)
{
	struct db *db = rebuilding->db;
	struct store_identity store;
	struct journal_header header = {.number = journal_history_next_number(rebuilding->history),
		.schema = rebuilding->out->way.header.schema,
		.made_ms = clock_wall_ms(),
		.point = {.change = db_change(db)}};
	char path[PATH_BYTES];
	char name[JOURNAL_NAME_BYTES + 8];
	uint64_t bytes;
	if (store_row_read(db, &store, err) != 0 || db_snapshot_begin(db, err) != 0)
		return -1;
	header.life = store.life;
	memcpy(header.store, store.id, JOURNAL_STORE_BYTES);
	random_bytes(header.point.digest.bytes, sizeof(header.point.digest.bytes));
	snprintf(name, sizeof(name), "journal/");
	journal_name_print(JOURNAL_SNAPSHOT, header.number, name + strlen(name));
	path_in(rebuilding, name, path);
	const struct snapshot_plan plan = {.files = rebuilding->params->files,
		.path = path,
		.header = &header,
		.goes_on = rebuild_goes_on};
	const int result = snapshot_make(db, &plan, &bytes, err);
	db_snapshot_end(db);
	return result;
}

static bool rebuild_goes_on(void *owner)
{
	(void)owner;
	return true;
}

static int sync_catalog(struct rebuilding *rebuilding, struct error *err)
{
	const struct file_ops *files = rebuilding->params->files;
	const int fd = files->open(files, rebuilding->scratch, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be opened", rebuilding->scratch);
	const int result = file_sync(files, fd, rebuilding->scratch, err);
	close(fd);
	return result;
}

static int put_in_place(struct rebuilding *rebuilding, struct error *err)
{
	const struct file_ops *files = rebuilding->params->files;
	char acknowledged[PATH_BYTES];
	path_in(rebuilding, "acknowledged", acknowledged);
	for (size_t i = SUFFIXES; i-- > 0;) /* the catalog itself last */
		if (set_aside(rebuilding, suffixes[i], err) != 0)
			return -1;
	if (files->unlink(files, acknowledged) != 0 && errno != ENOENT)
		return error_set_errno(err, "%s cannot be removed", acknowledged);
	if (file_sync_name(files, acknowledged, err) != 0)
		return -1;
	if (files->rename(files, rebuilding->scratch, rebuilding->catalog) != 0)
		return error_set_errno(err, "%s cannot be renamed", rebuilding->scratch);
	return file_sync_name(files, rebuilding->catalog, err);
}

static int set_aside(const struct rebuilding *rebuilding, const char *suffix, struct error *err)
{
	char path[PATH_BYTES + 8];
	snprintf(path, sizeof(path), "%s%s", rebuilding->catalog, suffix);
	bool is_there;
	if (file_find(path, &is_there, err) != 0)
		return -1;
	return is_there
		? set_aside_take(rebuilding->params->files, rebuilding->params->folder, path, err)
		: 0;
}
