/* How much of a pack counts stands in the catalog alone, so its end is looked for from the front:
 * records, and the footers that end xorbs. What follows the last footer was never committed. */
#include "storage/rebuild/pack_adoption.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/core/removal_row.h"
#include "storage/packs/pack_table.h"
#include "storage/xet/xorb_row.h"

struct pack_file { /* one that lies in packs/ */
	struct pack_id name;
	uint64_t size;
	bool is_named;
};
struct adopting {
	struct db *db;
	struct backend *backend;
	const struct store_identity *store;
	int64_t promised_ms;
	struct pack_adoption *out;
	struct pack_file *files;
	size_t file_count;
	size_t file_capacity;
	struct pack_record *records;
	size_t record_count;
	struct pack_id *removals;
	size_t removal_count;
};

static int pack_adoption_take_name(void *taker, const char *name, uint64_t size, struct error *err);
static int pack_adoption_compare(const void *a, const void *b);
static int look_at_records(struct adopting *adopting, struct error *err);
static struct pack_file *find_file(const struct adopting *adopting, const struct pack_id *name);
static int adopt_growth(struct adopting *adopting, const struct pack_record *record, uint64_t size,
	struct error *err);
static int adopt_files(struct adopting *adopting, struct error *err);
static bool is_removal(const struct adopting *adopting, const struct pack_id *name);
static int adopt_file(struct adopting *adopting, const struct pack_file *file, struct error *err);
static bool read_header(
	struct adopting *adopting, struct backend_file *opened, uint8_t out[PACK_HEADER_BYTES]);
static int adopt_grown(struct adopting *adopting, const struct pack_file *file,
	struct backend_file *opened, struct error *err);
static int adopt_compacted(struct adopting *adopting, const struct pack_file *file,
	const struct pack_id *pack, struct error *err);
static struct pack_record *find_record(const struct adopting *adopting, const struct pack_id *pack);
static struct backend_file *open_file(struct adopting *adopting, const struct pack_id *name);
static uint64_t find_end(
	struct adopting *adopting, struct backend_file *file, uint64_t from, uint64_t size);
static int record_pack(struct adopting *adopting, const struct pack_index *index,
	uint32_t from_chunk, struct error *err);

int pack_adoption_run(struct db *db, struct backend *backend, const struct store_identity *store,
	int64_t promised_ms, struct pack_adoption *out, struct error *err)
{
	struct adopting adopting = {.db = db,
		.backend = backend,
		.store = store,
		.promised_ms = promised_ms,
		.out = out};
	*out = (struct pack_adoption){0};
	int result = backend->ops->list(backend, pack_adoption_take_name, &adopting, err);
	if (adopting.file_count > 0)
		qsort(adopting.files, adopting.file_count, sizeof(*adopting.files),
			pack_adoption_compare);
	if (result == 0)
		result = pack_row_list(db, &adopting.records, &adopting.record_count, err);
	if (result == 0)
		result = removal_row_list(db, 0, &adopting.removals, &adopting.removal_count, err);
	if (result == 0)
		result = look_at_records(&adopting, err);
	if (result == 0)
		result = adopt_files(&adopting, err);
	free(adopting.files);
	free(adopting.records);
	free(adopting.removals);
	return result;
}

static int pack_adoption_take_name(void *taker, const char *name, uint64_t size, struct error *err)
{
	struct adopting *adopting = taker;
	struct pack_file file = {.size = size};
	enum pack_file_kind kind;
	(void)err;
	if (!pack_format_parse_name(name, &file.name, &kind) || kind != PACK_FILE_PACK)
		return 0;
	adopting->files = memory_make_room(adopting->files, adopting->file_count,
		&adopting->file_capacity, sizeof(*adopting->files));
	adopting->files[adopting->file_count++] = file;
	return 0;
}

static int pack_adoption_compare(const void *a, const void *b)
{
	return memcmp(&((const struct pack_file *)a)->name, &((const struct pack_file *)b)->name,
		sizeof(struct pack_id));
}

/* Marks the files that the catalog names, and takes what they have grown since. */
static int look_at_records(struct adopting *adopting, struct error *err)
{
	for (size_t i = 0; i < adopting->record_count; i++) {
		const struct pack_record *record = &adopting->records[i];
		struct pack_file *file = find_file(adopting, pack_record_file(record));
		adopting->out->named++;
		if (file == NULL) {
			adopting->out->missing++;
			continue;
		}
		file->is_named = true;
		if (record->state == PACK_OPEN && file->size > record->length &&
			adopt_growth(adopting, record, file->size, err) != 0)
			return -1;
	}
	return 0;
}

static struct pack_file *find_file(const struct adopting *adopting, const struct pack_id *name)
{
	const struct pack_file wanted = {.name = *name};
	return adopting->file_count == 0 ? NULL
					 : bsearch(&wanted, adopting->files, adopting->file_count,
						   sizeof(*adopting->files), pack_adoption_compare);
}

/* Xorbs behind the committed length of a pack that was open. */
static int adopt_growth(struct adopting *adopting, const struct pack_record *record, uint64_t size,
	struct error *err)
{
	struct error ignored;
	int result = 0;
	struct backend_file *opened = open_file(adopting, &record->id);
	if (opened == NULL)
		return 0;
	const uint64_t end = find_end(adopting, opened, record->length, size);
	struct pack_index *index =
		end > record->length ? pack_index_walk(opened, &record->id, end, &ignored) : NULL;
	opened->backend->ops->close(opened);
	if (index != NULL && index->count > record->chunks) {
		result = record_pack(adopting, index, record->chunks, err);
		adopting->out->grown++;
	}
	pack_index_free(index);
	return result;
}

static int adopt_files(struct adopting *adopting, struct error *err)
{
	for (size_t i = 0; i < adopting->file_count; i++) {
		const struct pack_file *file = &adopting->files[i];
		if (!file->is_named && !is_removal(adopting, &file->name) &&
			adopt_file(adopting, file, err) != 0)
			return -1;
	}
	return 0;
}

static bool is_removal(const struct adopting *adopting, const struct pack_id *name)
{
	for (size_t i = 0; i < adopting->removal_count; i++)
		if (pack_id_equal(&adopting->removals[i], name))
			return true;
	return false;
}

static int adopt_file(struct adopting *adopting, const struct pack_file *file, struct error *err)
{
	struct pack_origin origin = {{0}, 0};
	uint8_t header[PACK_HEADER_BYTES];
	struct pack_id pack;
	int result = 0;
	struct backend_file *opened = open_file(adopting, &file->name);
	if (opened == NULL || !read_header(adopting, opened, header) ||
		!pack_format_read_origin(header, &origin) ||
		memcmp(origin.store, adopting->store->id, PACK_STORE_BYTES) != 0) {
		adopting->out->left++;
	} else {
		pack = pack_format_read_pack(header);
		adopting->out->life =
			origin.life > adopting->out->life ? origin.life : adopting->out->life;
		result = pack_id_equal(&pack, &file->name)
			? adopt_grown(adopting, file, opened, err)
			: adopt_compacted(adopting, file, &pack, err);
	}
	if (opened != NULL)
		opened->backend->ops->close(opened);
	return result;
}

static bool read_header(
	struct adopting *adopting, struct backend_file *opened, uint8_t out[PACK_HEADER_BYTES])
{
	const struct iovec part = {.iov_base = out, .iov_len = PACK_HEADER_BYTES};
	struct error ignored;
	return adopting->backend->ops->read(opened, &part, 1, 0, &ignored) == 0;
}

/* A file as it was first written. A pack that has a row has another file now: this one is what gc
 * left of it. */
static int adopt_grown(struct adopting *adopting, const struct pack_file *file,
	struct backend_file *opened, struct error *err)
{
	struct error ignored;
	const uint64_t end = find_end(adopting, opened, PACK_HEADER_BYTES, file->size);
	struct pack_index *index =
		find_record(adopting, &file->name) == NULL && end > PACK_HEADER_BYTES
		? pack_index_walk(opened, &file->name, end, &ignored)
		: NULL;
	if (index == NULL) {
		adopting->out->left++;
		return 0;
	}
	adopting->out->found++;
	const int result = record_pack(adopting, index, 0, err);
	pack_index_free(index);
	return result;
}

/* A pack that was compacted after the last change of the catalog, and perhaps sealed for that: its
 * row leads to the file that is gone since. */
static int adopt_compacted(struct adopting *adopting, const struct pack_file *file,
	const struct pack_id *pack, struct error *err)
{
	struct error ignored;
	int64_t number = 0;
	const struct pack_record *record = find_record(adopting, pack);
	struct pack_index *index = record == NULL || record->state == PACK_CONDEMNED ||
			find_file(adopting, pack_record_file(record)) != NULL
		? NULL
		: pack_table_load(adopting->backend, pack, &file->name, file->size, &ignored);
	if (index == NULL) {
		adopting->out->left++;
		return 0;
	}
	struct pack_record sealed = *record;
	const uint32_t chunks = pack_index_number(index, index->count - 1) + 1;
	sealed.state = PACK_SEALED;
	sealed.chunks = chunks > sealed.chunks ? chunks : sealed.chunks;
	pack_index_free(index);
	adopting->out->found++;
	adopting->out->missing--;
	if (pack_row_record(adopting->db, &sealed, err) != 0 ||
		pack_row_number(adopting->db, pack, &number, err) != 1)
		return -1;
	return pack_row_move(adopting->db, number, &file->name, file->size, err);
}

static struct pack_record *find_record(const struct adopting *adopting, const struct pack_id *pack)
{
	for (size_t i = 0; i < adopting->record_count; i++)
		if (pack_id_equal(&adopting->records[i].id, pack))
			return &adopting->records[i];
	return NULL;
}

/* NULL when it cannot be opened. */
static struct backend_file *open_file(struct adopting *adopting, const struct pack_id *name)
{
	char text[PACK_NAME_BYTES];
	struct backend_file *opened;
	struct error ignored;
	pack_format_name(name, PACK_FILE_PACK, text);
	return adopting->backend->ops->open(adopting->backend, text, &opened, &ignored) == 0
		? opened
		: NULL;
}

/* Where the last footer ends that follows on `from` without a break; `from` when there is none. The
 * index that is then read from the footers proves them. */
static uint64_t find_end(
	struct adopting *adopting, struct backend_file *file, uint64_t from, uint64_t size)
{
	uint8_t peek[PACK_PIECE_BYTES];
	const struct iovec part = {.iov_base = peek, .iov_len = sizeof(peek)};
	struct error ignored;
	uint64_t end = from;
	uint64_t at = from;
	while (at + sizeof(peek) <= size &&
		adopting->backend->ops->read(file, &part, 1, at, &ignored) == 0) {
		bool ends_xorb;
		const uint64_t length = pack_format_piece_length(peek, &ends_xorb);
		if (length == 0 || length > size - at)
			break;
		at += length;
		end = ends_xorb ? at : end;
	}
	return end;
}

/* The row of the pack, and promises for its xorbs from that chunk on. */
static int record_pack(struct adopting *adopting, const struct pack_index *index,
	uint32_t from_chunk, struct error *err)
{
	const struct pack_record record = {.id = index->pack,
		.state = PACK_SEALED,
		.length = index->length,
		.chunks = index->count};
	if (pack_row_record(adopting->db, &record, err) != 0)
		return -1;
	for (uint32_t i = 0; i < index->xorb_count; i++) {
		const struct xorb xorb = {.hash = index->xorbs[i].hash,
			.pack = index->pack,
			.first = index->xorbs[i].first,
			.count = index->xorbs[i].count,
			.promised_ms = adopting->promised_ms};
		if (xorb.first < from_chunk)
			continue;
		if (xorb_row_put(adopting->db, &xorb, err) != 0)
			return -1;
		adopting->out->promised_xorbs++;
	}
	return 0;
}
