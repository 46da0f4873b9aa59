/* Two connections to one WAL file: helpers add through one, and all lookups go through the other,
 * so that a lookup never waits for an insert. Ids are cut to 16 bytes: a result is a hint that the
 * caller compares with the pack's own index. The file is derived data of this machine, so its
 * schema need not suit a second engine.
 *
 * Damage fails no call. A thread that meets an unreadable page moves the file aside; from then on
 * nothing is found and nothing added. The next start finds no file and makes it again. */
#include "storage/packs/chunk_index.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/db/db.h"

enum {
	INDEX_TRIM_PAGES = 256,
	INDEX_VERSION = 1,
	INDEX_APPLICATION = 0x44424b43, /* "DBKC" */
	INDEX_ID_BYTES = 16,
	INDEX_SAMPLE = 16,
	INDEX_WAL_BYTES = 8 * 1024 * 1024
};

struct chunk_index {
	const struct file_ops *files;
	char *path;
	struct log *log;
	_Atomic bool is_given_up;
	struct lock write_lock;
	struct db *writer;
	struct lock read_lock;
	/* in memory it is the writer, because a second connection would see another database */
	struct db *reader;
};

static const char SQL_SCHEMA[] =
	"CREATE TABLE pack (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE);"
	"CREATE TABLE chunk (id BLOB PRIMARY KEY, pack INTEGER NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE INDEX chunk_pack ON chunk (pack);";
static const char SQL_LAZY[] = "PRAGMA synchronous=NORMAL;";
static const char SQL_FIND[] =
	"SELECT p.id, c.number FROM chunk c JOIN pack p ON p.number = c.pack WHERE c.id = ?1";
static const char SQL_PACK_NUMBER[] = "SELECT number FROM pack WHERE id = ?1";
static const char SQL_PACK_LIST[] = "SELECT id FROM pack ORDER BY number";
static const char SQL_PACK_ADD[] = "INSERT INTO pack (id) VALUES (?1)";
static const char SQL_PACK_DELETE[] = "DELETE FROM pack WHERE number = ?1";
static const char SQL_CHUNK_ADD[] =
	"INSERT INTO chunk (id, pack, number) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET pack = excluded.pack, number = excluded.number";
static const char SQL_CHUNK_DELETE[] = "DELETE FROM chunk WHERE pack = ?1";

typedef int index_work_fn(struct db *db, struct error *err);

static int index_connect(struct chunk_index *index, bool *out_new, struct error *err);
static struct db *index_open_writer(const char *path, bool *out_new, struct error *err);
static int index_prepare_file(struct db *db, bool *out_new, struct error *err);
static bool is_in_memory(const char *path);
static int index_look(struct db *db, struct error *err);
static int index_list(struct db *db, struct pack_id **packs, size_t *count, struct error *err);
static bool is_damage(const struct error *err);
static int index_move_aside(const struct file_ops *files, const char *path, struct error *err);
static int index_tell(struct chunk_index *index, int result, const struct error *err);
static int index_find_row(
	struct db *db, const struct chunk_id *id, struct chunk_place *out, struct error *err);
static int index_begin(struct chunk_index *index, struct error *err);
static int index_settle(struct db *db, int result, struct error *err);
static int index_add_rows(
	struct db *db, const struct chunk_index_row *rows, size_t count, struct error *err);
static int index_add_pack(
	struct db *db, const struct pack_id *pack, int64_t *out_number, struct error *err);
static int index_find_pack(
	struct db *db, const struct pack_id *pack, int64_t *out_number, struct error *err);
static int index_end(struct chunk_index *index, int result, const struct error *err);
static int index_remove_pack(struct db *db, const struct pack_id *pack, struct error *err);
static int index_run(struct chunk_index *index, index_work_fn *work, struct error *err);
static int chunk_index_trim_some(struct db *db, struct error *err);

struct chunk_index *chunk_index_open(
	const struct chunk_index_options *options, bool *out_rebuild, struct error *err)
{
	struct chunk_index *index = memory_new(sizeof(*index));
	struct error first = {0};
	index->files = options->files;
	index->path = memory_copy_text(options->path);
	index->log = options->log;
	lock_init(&index->write_lock, LOCK_CHUNK_INDEX);
	lock_init(&index->read_lock, LOCK_CHUNK_INDEX);
	if (index_connect(index, out_rebuild, &first) == 0)
		return index;
	if (is_damage(&first) && !is_in_memory(options->path)) {
		log_failure(index->log, LOG_WARNING, NULL, "chunk_index_damaged", &first);
		if (index_move_aside(index->files, index->path, err) == 0 &&
			index_connect(index, out_rebuild, err) == 0)
			return index;
	} else {
		*err = first;
	}
	chunk_index_close(index);
	return NULL;
}

void chunk_index_close(struct chunk_index *index)
{
	if (index == NULL)
		return;
	if (index->reader != index->writer)
		db_close(index->reader);
	db_close(index->writer);
	lock_release(&index->read_lock);
	lock_release(&index->write_lock);
	free(index->path);
	free(index);
}

/* Its connections still have the file that was moved, and are not used any more. */
void chunk_index_give_up(struct chunk_index *index, const struct error *why)
{
	struct error err = {0};
	if (atomic_exchange(&index->is_given_up, true))
		return;
	log_failure(index->log, LOG_WARNING, NULL, "chunk_index_damaged", why);
	if (!is_in_memory(index->path) && index_move_aside(index->files, index->path, &err) != 0)
		log_failure(index->log, LOG_WARNING, NULL, "chunk_index_damaged", &err);
}

bool chunk_index_sampled(const struct chunk_id *id)
{
	return chunk_id_modulo_word(id) % INDEX_SAMPLE == 0;
}

bool chunk_index_find(
	struct chunk_index *index, const struct chunk_id *id, struct chunk_place *out_place)
{
	struct lock *lock = index->reader == index->writer ? &index->write_lock : &index->read_lock;
	struct error err = {0}; /* "unknown" is always a right answer */
	int found = 0;
	if (atomic_load(&index->is_given_up))
		return false;
	lock_enter(lock);
	if (!atomic_load(&index->is_given_up))
		found = index_tell(index, index_find_row(index->reader, id, out_place, &err), &err);
	lock_leave(lock);
	return found == 1;
}

int chunk_index_add(struct chunk_index *index, const struct chunk_index_row *rows, size_t count,
	struct error *err)
{
	int result = index_begin(index, err);
	if (result == 1)
		result = index_settle(
			index->writer, index_add_rows(index->writer, rows, count, err), err);
	return index_end(index, result, err);
}

int chunk_index_forget_pack(
	struct chunk_index *index, const struct pack_id *pack, struct error *err)
{
	int result = index_begin(index, err);
	if (result == 1)
		result = index_settle(
			index->writer, index_remove_pack(index->writer, pack, err), err);
	return index_end(index, result, err);
}

int chunk_index_packs(
	struct chunk_index *index, struct pack_id **out_packs, size_t *out_count, struct error *err)
{
	int result = 0;
	*out_packs = NULL;
	*out_count = 0;
	lock_enter(&index->write_lock);
	if (!atomic_load(&index->is_given_up))
		result = index_tell(
			index, index_list(index->writer, out_packs, out_count, err), err);
	lock_leave(&index->write_lock);
	if (result == 0)
		return 0;
	free(*out_packs);
	*out_packs = NULL;
	return -1;
}

int chunk_index_trim(struct chunk_index *index, struct error *err)
{
	int result;
	do
		result = index_run(index, chunk_index_trim_some, err);
	while (result == 1);
	return result != 0 ? -1 : index_run(index, db_checkpoint_truncate, err);
}

static int index_connect(struct chunk_index *index, bool *out_new, struct error *err)
{
	bool is_new = false;
	struct db *writer = index_open_writer(index->path, &is_new, err);
	struct db *reader = writer == NULL || is_in_memory(index->path)
		? writer
		: db_open(index->path, DB_READ, err);
	if (reader == NULL || index_look(reader, err) != 0) {
		if (reader != writer)
			db_close(reader);
		db_close(writer);
		return -1;
	}
	index->writer = writer;
	index->reader = reader;
	*out_new = is_new;
	return 0;
}

static struct db *index_open_writer(const char *path, bool *out_new, struct error *err)
{
	struct db *const db = db_open(path, DB_WRITE, err);
	if (db == NULL || index_prepare_file(db, out_new, err) == 0)
		return db;
	db_close(db);
	return NULL;
}

static int index_prepare_file(struct db *db, bool *out_new, struct error *err)
{
	int version;
	int application;
	if (db_get_version(db, &version, &application, err) != 0 ||
		db_run_script(db, SQL_LAZY, err) != 0)
		return -1;
	if (version == INDEX_VERSION && application == INDEX_APPLICATION)
		return 0;
	if (version != 0 || application != 0)
		return error_set(err, ERROR_CORRUPT, "%s is not a chunk index of this version.",
			db_path(db));
	*out_new = true;
	if (db_begin(db, err) != 0)
		return -1;
	if (db_run_script(db, SQL_SCHEMA, err) == 0 &&
		db_set_version(db, INDEX_VERSION, INDEX_APPLICATION, err) == 0)
		return db_commit(db, err);
	db_rollback(db);
	return -1;
}

static bool is_in_memory(const char *path)
{
	return strcmp(path, ":memory:") == 0;
}

/* Reads what every start needs: the header, the schema, the packs. */
static int index_look(struct db *db, struct error *err)
{
	struct pack_id *packs = NULL;
	size_t count = 0;
	int result = index_list(db, &packs, &count, err);
	free(packs);
	return result;
}

static int index_list(struct db *db, struct pack_id **packs, size_t *count, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PACK_LIST, err);
	size_t capacity = 0;
	int got;
	ASSERT(*packs == NULL && *count == 0);
	while ((got = db_step(statement, err)) == 1) {
		const struct span id = db_column_blob(statement, 0);
		if (id.len != PACK_ID_BYTES)
			continue;
		*packs = memory_make_room(*packs, *count, &capacity, sizeof(**packs));
		memcpy((*packs)[(*count)++].bytes, id.data, PACK_ID_BYTES);
	}
	db_reset(statement);
	return got;
}

static bool is_damage(const struct error *err)
{
	return err->kind == ERROR_DAMAGED || err->kind == ERROR_CORRUPT;
}

/* Keeps the damaged file, once, for people who want to look at it. */
static int index_move_aside(const struct file_ops *files, const char *path, struct error *err)
{
	static const char *const suffixes[] = {"-wal", "-shm"};
	char aside[4096];
	if (snprintf(aside, sizeof(aside), "%s.damaged", path) >= (int)sizeof(aside))
		return error_set(err, ERROR_INVALID, "The path %.100s... is over %zu bytes.", path,
			sizeof(aside) - sizeof(".damaged"));
	if (files->rename(files, path, aside) != 0)
		return error_set_errno(err, "cannot rename %s to %s", path, aside);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		snprintf(aside, sizeof(aside), "%s%s", path, suffixes[i]);
		files->unlink(files, aside);
	}
	return 0;
}

/* Turns the result of a statement into the result of a call: damage does not fail the call. */
static int index_tell(struct chunk_index *index, int result, const struct error *err)
{
	if (result >= 0 || !is_damage(err))
		return result;
	chunk_index_give_up(index, err);
	return 0;
}

/* Returns 1 and the place, 0 when it is not known, -1 on error. */
static int index_find_row(
	struct db *db, const struct chunk_id *id, struct chunk_place *out, struct error *err)
{
	struct db_statement *statement =
		db_query(db, SQL_FIND, err, db_blob(span_of(id->bytes, INDEX_ID_BYTES)));
	int got = db_step(statement, err);
	if (got == 1) {
		struct span pack = db_column_blob(statement, 0);
		int64_t chunk = db_column_i64(statement, 1);
		got = pack.len == PACK_ID_BYTES && chunk >= 0 && chunk <= UINT32_MAX;
		if (got == 1) {
			memcpy(out->pack.bytes, pack.data, PACK_ID_BYTES);
			out->chunk = (uint32_t)chunk;
		}
	}
	db_reset(statement);
	return got;
}

/* Enters the lock. Returns 1 in a transaction, 0 when nothing is to be written any more, -1 on
 * error. */
static int index_begin(struct chunk_index *index, struct error *err)
{
	lock_enter(&index->write_lock);
	ASSERT(index->writer != NULL);
	if (atomic_load(&index->is_given_up))
		return 0;
	return db_begin(index->writer, err) == 0 ? 1 : -1;
}

/* Ends the transaction that `result` was made in, and keeps the log short. */
static int index_settle(struct db *db, int result, struct error *err)
{
	if (result != 0) {
		db_rollback(db);
		return -1;
	}
	if (db_commit(db, err) != 0)
		return -1;
	struct error ignored = {0}; /* the log is truncated another time */
	if (db_wal_bytes(db) > INDEX_WAL_BYTES)
		db_checkpoint_restart(db, &ignored);
	return 0;
}

static int index_add_rows(
	struct db *db, const struct chunk_index_row *rows, size_t count, struct error *err)
{
	int64_t number = 0;
	for (size_t i = 0; i < count; i++) {
		const bool same_pack = i > 0 &&
			memcmp(rows[i].place.pack.bytes, rows[i - 1].place.pack.bytes,
				PACK_ID_BYTES) == 0;
		if (!same_pack && index_add_pack(db, &rows[i].place.pack, &number, err) != 0)
			return -1;
		if (db_run(db, SQL_CHUNK_ADD, err,
			    db_blob(span_of(rows[i].id.bytes, INDEX_ID_BYTES)), db_i64(number),
			    db_i64(rows[i].place.chunk)) != 0)
			return -1;
	}
	return 0;
}

static int index_add_pack(
	struct db *db, const struct pack_id *pack, int64_t *out_number, struct error *err)
{
	const int known = index_find_pack(db, pack, out_number, err);
	if (known != 0)
		return known == 1 ? 0 : -1;
	return db_insert(
		db, SQL_PACK_ADD, out_number, err, db_blob(span_of(pack->bytes, PACK_ID_BYTES)));
}

/* Returns 1 and the number, 0 when the pack has none, -1 on error. */
static int index_find_pack(
	struct db *db, const struct pack_id *pack, int64_t *out_number, struct error *err)
{
	return db_find_i64(
		db, SQL_PACK_NUMBER, out_number, err, db_blob(span_of(pack->bytes, PACK_ID_BYTES)));
}

static int index_end(struct chunk_index *index, int result, const struct error *err)
{
	result = index_tell(index, result, err);
	lock_leave(&index->write_lock);
	return result;
}

static int index_remove_pack(struct db *db, const struct pack_id *pack, struct error *err)
{
	int64_t number;
	const int known = index_find_pack(db, pack, &number, err);
	if (known != 1)
		return known;
	if (db_run(db, SQL_CHUNK_DELETE, err, db_i64(number)) != 0)
		return -1;
	return db_run(db, SQL_PACK_DELETE, err, db_i64(number));
}

static int index_run(struct chunk_index *index, index_work_fn *work, struct error *err)
{
	int result = 0;
	lock_enter(&index->write_lock);
	if (!atomic_load(&index->is_given_up))
		result = work(index->writer, err);
	return index_end(index, result, err);
}

/* Frees some pages. Returns 1 when there are more, 0 when there are none, -1 on error. */
static int chunk_index_trim_some(struct db *db, struct error *err)
{
	int64_t pages = 0;
	if (db_free_pages(db, &pages, err) != 0)
		return -1;
	if (pages == 0)
		return 0;
	return db_vacuum_some(db, INDEX_TRIM_PAGES, err) != 0 ? -1 : pages > INDEX_TRIM_PAGES;
}
