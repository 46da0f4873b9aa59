#include "storage/backup/backup_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/core/acknowledged.h"
#include "storage/core/damage_row.h"
#include "storage/core/pack_row.h"
#include "storage/core/store_row.h"
#include "storage/db/db_sums.h"
#include "storage/journal/journal_history.h"
#include "storage/journal/snapshot.h"
#include "storage/packs/pack_table.h"
#include "storage/packs/place_note.h"
#include "storage/start/catalog_copy.h"

enum { PATH_BYTES = 4096, MS_PER_SECOND = 1000, DAMAGE_ROWS = 65536 };
_Static_assert((int)BACKUP_STORE_BYTES == (int)STORE_ID_BYTES, "the id of a store");

struct journal_search { /* of the files that lead to the moment */
	const struct source_options *options;
	struct backup_source *out;
};

struct catalog_look {
	struct catalog_copy *copy; /* NULL: it is read where it lies */
	struct db *db;
	bool has_begun; /* its transaction */
};

struct damage_search { /* of the packs of damaged chunks */
	struct backup_source *source;
	size_t last; /* that one was found in */
};

static int open_catalog(struct catalog_look *out, const char *folder, struct error *err);
static void close_catalog(struct catalog_look *look);
static int read_catalog(
	struct db *db, struct backup_source *out, const char *folder, struct error *err);
static int read_moment(struct db *db, struct backup_moment *out, uint8_t store[BACKUP_STORE_BYTES],
	struct error *err);
static int read_sums(struct db *db, struct backup_source *out, struct error *err);
static int read_packs(
	struct db *db, struct backup_source *out, const char *folder, struct error *err);
static struct source_file *add_file(
	struct backup_source *source, const char *key, const char *path, uint64_t length);
static int read_journal(
	const struct source_options *options, struct backup_source *out, struct error *err);
static int find_way(
	const struct journal_history *history, struct journal_search *search, struct error *err);
static int backup_source_take_part(
	void *owner, const char *path, uint64_t bytes, struct error *err);
static int prove_snapshot(const struct journal_search *search, const char *path, struct error *err);
static void drop_files(struct backup_source *source, size_t from);
static void read_damage(struct db *db, struct backup_source *out);
static void backup_source_take_damage(void *taker, const struct chunk_place *place);
static struct backend *open_packs(const char *folder, struct error *err);
static int check_pack(struct backend *backend, const struct pack_record *record, struct error *err);
static int read_bytes(const struct source_file *file, int fd, uint64_t from, struct iovec into,
	struct error *err);

int backup_source_read(
	const struct source_options *options, struct backup_source *out, struct error *err)
{
	*out = (struct backup_source){.count = 0};
	struct catalog_look look;
	if (open_catalog(&look, options->folder, err) != 0)
		return -1;
	const int result = read_catalog(look.db, out, options->folder, err);
	close_catalog(&look);
	return result != 0 ? -1 : read_journal(options, out, err);
}

void backup_source_release(struct backup_source *source)
{
	drop_files(source, 0);
	free(source->files);
	*source = (struct backup_source){.count = 0};
}

int backup_source_read_packs(const char *folder, struct backup_source *out, struct error *err)
{
	*out = (struct backup_source){.count = 0};
	struct catalog_look look;
	if (open_catalog(&look, folder, err) != 0)
		return -1;
	const int result = read_packs(look.db, out, folder, err);
	close_catalog(&look);
	return result;
}

int backup_source_peek(const char *folder, struct backup_moment *out,
	uint8_t out_store[BACKUP_STORE_BYTES], struct error *err)
{
	struct catalog_look look;
	if (open_catalog(&look, folder, err) != 0)
		return -1;
	const int result = read_moment(look.db, out, out_store, err);
	close_catalog(&look);
	return result;
}

int backup_source_peek_whole(const char *folder, struct backup_moment *out,
	uint8_t out_store[BACKUP_STORE_BYTES], struct error *err)
{
	char path[PATH_BYTES];
	struct acknowledgement last;
	snprintf(path, sizeof(path), "%s/acknowledged", folder);
	if (backup_source_peek(folder, out, out_store, err) != 0 ||
		acknowledged_read(path, &last, err) != 0)
		return -1;
	return last.store.life > out->life ||
			(last.store.life == out->life && last.change > out->change)
		? error_set(err, ERROR_DAMAGED, "The catalog lacks acknowledged changes.")
		: 0;
}

bool backup_source_is_read_only(const char *folder)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	return access(path, W_OK) != 0 && errno == EROFS;
}

int source_file_read(
	const struct source_file *file, uint64_t from, uint8_t *into, size_t len, struct error *err)
{
	const struct iovec part = {.iov_base = into, .iov_len = len};
	if (file->fd >= 0)
		return read_bytes(file, file->fd, from, part, err);
	const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be opened", file->path);
	const int result = read_bytes(file, fd, from, part, err);
	close(fd);
	return result;
}

int source_file_check(const struct source_file *file, const char *folder, struct error *err)
{
	if (file->pack.length == 0 || file->pack.state == PACK_OPEN)
		return 0;
	struct backend *backend = open_packs(folder, err);
	if (backend == NULL)
		return -1;
	const int result = check_pack(backend, &file->pack, err);
	backend->ops->free(backend);
	return result;
}

int source_file_index(
	const struct source_file *file, const char *folder, struct buffer *out, struct error *err)
{
	const struct pack_record *record = &file->pack;
	const struct pack_id *name = pack_record_file(record);
	const bool is_compacted = !pack_id_equal(&record->id, name);
	bool ignored;
	struct backend *backend = open_packs(folder, err);
	if (backend == NULL)
		return -1;
	struct pack_index *index = is_compacted
		? pack_table_load(backend, &record->id, name, record->length, err)
		: pack_index_load(backend, &record->id, record->length, &ignored, err);
	if (index != NULL)
		(is_compacted ? pack_table_encode : pack_index_encode)(index, out);
	const bool is_there = index != NULL;
	pack_index_free(index);
	backend->ops->free(backend);
	return is_there ? buffer_check(out, "the index", err) : -1;
}

static struct backend *open_packs(const char *folder, struct error *err)
{
	char packs[PATH_BYTES];
	char aside[PATH_BYTES];
	snprintf(packs, sizeof(packs), "%s/packs", folder);
	snprintf(aside, sizeof(aside), "%s/set-aside", folder);
	return place_note_check(folder, err) != 0 ? NULL
						  : backend_folder_open(packs, aside, NULL, err);
}

static int check_pack(struct backend *backend, const struct pack_record *record, struct error *err)
{
	const struct pack_id *name = pack_record_file(record);
	struct backend_file *file;
	char text[PACK_NAME_BYTES];
	pack_format_name(name, PACK_FILE_PACK, text);
	if (backend->ops->open(backend, text, &file, err) != 0)
		return -1;
	struct pack_index *index = pack_own_index(file, &record->id, name, record->length, err);
	backend->ops->close(file);
	const bool is_right = index != NULL;
	pack_index_free(index);
	return is_right ? 0 : error_wrap(err, "%s describes itself wrongly", text);
}

/* SQLite would make a missing one. It cannot read a catalog where it can make no file beside it,
 * and the last one to close a log would move it into the catalog. */
static int open_catalog(struct catalog_look *out, const char *folder, struct error *err)
{
	char path[PATH_BYTES];
	*out = (struct catalog_look){.copy = NULL};
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	if (!file_exists(path))
		return error_set(err, ERROR_NOT_FOUND,
			"There is no store in %s: catalog.db is missing.", folder);
	if (backup_source_is_read_only(folder)) {
		out->copy = catalog_copy_make(file_system(), path, err);
		if (out->copy == NULL)
			return -1;
	}
	out->db = db_open(out->copy != NULL ? catalog_copy_path(out->copy) : path, DB_LOOK, err);
	if (out->db != NULL) {
		db_keep_log(out->db, true);
		out->has_begun = db_snapshot_begin(out->db, err) == 0;
	}
	if (out->has_begun)
		return 0;
	close_catalog(out);
	return -1;
}

static void close_catalog(struct catalog_look *look)
{
	if (look->has_begun)
		db_snapshot_end(look->db);
	db_close(look->db);
	catalog_copy_free(look->copy);
}

static int read_catalog(
	struct db *db, struct backup_source *out, const char *folder, struct error *err)
{
	if (read_moment(db, &out->moment, out->store, err) != 0 || read_sums(db, out, err) != 0)
		return -1;
	return read_packs(db, out, folder, err);
}

static int read_moment(struct db *db, struct backup_moment *out, uint8_t store[BACKUP_STORE_BYTES],
	struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	struct store_identity identity;
	const int found = db_find_i64(db, SQL_CHANGE, &out->change, err);
	if (found == 0)
		error_set(err, ERROR_BUSY, "The catalog has not been started yet.");
	if (found != 1 || store_row_read(db, &identity, err) != 0)
		return -1;
	memcpy(store, identity.id, BACKUP_STORE_BYTES);
	out->life = identity.life;
	out->made_ms = clock_wall_ms() / MS_PER_SECOND * MS_PER_SECOND;
	return 0;
}

static int read_sums(struct db *db, struct backup_source *out, struct error *err)
{
	int schema = 0;
	int application = 0;
	int result = db_sums_total(db, &out->sums, err);
	if (result == 0)
		result = db_get_version(db, &schema, &application, err);
	out->schema = (uint32_t)schema;
	return result;
}

static int read_packs(
	struct db *db, struct backup_source *out, const char *folder, struct error *err)
{
	struct pack_record *records;
	size_t count;
	if (pack_row_list(db, &records, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		char key[BACKUP_KEY_BYTES];
		char name[BACKUP_NAME_BYTES];
		char path[PATH_BYTES];
		backup_key_of_pack(pack_record_file(&records[i]), key);
		backup_key_path(key, name);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		add_file(out, key, path, records[i].length)->pack = records[i];
	}
	free(records);
	read_damage(db, out);
	return 0;
}

/* A backup is made also where the rows cannot be read. */
static void read_damage(struct db *db, struct backup_source *out)
{
	struct damage_search search = {.source = out};
	struct error ignored;
	(void)damage_row_each(db, DAMAGE_ROWS, backup_source_take_damage, &search, &ignored);
}

/* The rows of one pack follow one another. */
static void backup_source_take_damage(void *taker, const struct chunk_place *place)
{
	struct damage_search *search = taker;
	struct backup_source *source = search->source;
	for (size_t i = 0; i < source->count; i++) {
		struct source_file *file = &source->files[(search->last + i) % source->count];
		if (!pack_id_equal(&file->pack.id, &place->pack))
			continue;
		file->damaged++;
		search->last = (size_t)(file - source->files);
		return;
	}
}

static struct source_file *add_file(
	struct backup_source *source, const char *key, const char *path, uint64_t length)
{
	source->files = memory_make_room(
		source->files, source->count, &source->capacity, sizeof(*source->files));
	struct source_file *file = &source->files[source->count++];
	*file = (struct source_file){.path = memory_copy_text(path), .length = length, .fd = -1};
	snprintf(file->key, sizeof(file->key), "%s", key);
	return file;
}

static int read_journal(
	const struct source_options *options, struct backup_source *out, struct error *err)
{
	char folder[PATH_BYTES];
	struct journal_search search = {.options = options, .out = out};
	snprintf(folder, sizeof(folder), "%s/journal", options->folder);
	struct journal_history *history = journal_history_read(folder, err);
	if (history == NULL)
		return -1;
	const int result = find_way(history, &search, err);
	journal_history_free(history);
	return result;
}

/* The first snapshot that leads there and is sound. */
static int find_way(
	const struct journal_history *history, struct journal_search *search, struct error *err)
{
	struct backup_source *out = search->out;
	struct error why = {0};
	const struct journal_goal goal = {.change = out->moment.change, .sums = out->sums};
	const size_t before = out->count;
	for (size_t i = 0; i < journal_history_snapshots(history); i++) {
		const int found = journal_history_lead(
			history, i, &goal, backup_source_take_part, search, &why);
		if (found == 1)
			return 0;
		drop_files(out, before);
	}
	return error_set(err, ERROR_BUSY,
		"The journal does not lead to change %lld of the catalog: its next snapshot is not made"
		" yet, or cannot be made (the log of the server tells, as snapshot_failed). %.300s",
		(long long)goal.change, why.text);
}

static int backup_source_take_part(void *owner, const char *path, uint64_t bytes, struct error *err)
{
	struct journal_search *search = owner;
	char key[BACKUP_KEY_BYTES];
	uint8_t head[JOURNAL_HEADER_BYTES];
	struct source_file *file = add_file(search->out, "", path, bytes);
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return error_set_errno(err, "%s cannot be opened", path);
	if (source_file_read(file, 0, head, sizeof(head), err) != 0)
		return -1;
	backup_key_of_journal(strrchr(path, '/') + 1, span_of(head, sizeof(head)), key);
	memcpy(file->key, key, sizeof(key));
	return prove_snapshot(search, path, err);
}

/* A snapshot that is not proven yet must be sound, and add up to what the catalog has if it is of
 * the same change. */
static int prove_snapshot(const struct journal_search *search, const char *path, struct error *err)
{
	const struct source_options *options = search->options;
	const struct backup_source *out = search->out;
	struct journal_header header;
	enum journal_kind kind;
	uint64_t number;
	uint64_t sums = 0;
	if (!journal_name_parse(strrchr(path, '/') + 1, &kind, &number) ||
		kind != JOURNAL_SNAPSHOT ||
		options->knows(options->owner, out->files[out->count - 1].key))
		return 0;
	if (snapshot_read_header(path, &header, err) != 0 ||
		snapshot_read(path, &sums, NULL, NULL, err) != 0)
		return -1;
	return header.point.change != out->moment.change || sums == out->sums
		? 0
		: error_set(err, ERROR_CORRUPT, "%s is of another history.", path);
}

static void drop_files(struct backup_source *source, size_t from)
{
	for (size_t i = from; i < source->count; i++) {
		free(source->files[i].path);
		if (source->files[i].fd >= 0)
			close(source->files[i].fd);
	}
	source->count = from;
}

static int read_bytes(
	const struct source_file *file, int fd, uint64_t from, struct iovec into, struct error *err)
{
	return file_read_at(file_system(), fd, into, (off_t)from, file->path, err);
}
