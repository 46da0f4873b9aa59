/* A version's hash is the root of a tree over its chunks (chunker/merkle.h). The ids and sizes of
 * the chunks stand in the indexes of packs, so a version with segments needs no content. A derived
 * version has no chunks of its own: it is decoded and chunked again, cut at the ends of its former
 * parts, as it was chunked at its upload. */
#include "storage/files/file_hash_find.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/merkle.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/file_hasher.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_view.h"
#include "storage/versions/part.h"

enum { FIND_ENTRIES = 256, FIND_PIECE_BYTES = 1024 * 1024 };

static const char SQL_LACKING[] =
	"SELECT sequence FROM versions WHERE state = 1 AND is_marker = 0 AND length(file_hash) = 0 AND sequence > ?1 ORDER BY sequence LIMIT ?2";

struct finding {
	struct store *store;
	const struct work_pace *pace;
	struct version version;
	struct part_range range; /* its segments */
	unsigned *turns;         /* of the hold on each segment's pack */
	struct part_ends ends;   /* of a derived version */
	struct body_source *source;
};

struct hash_change {
	struct change change; /* first */
	const struct file_hash_found *found;
	size_t count;
};

static int find(
	struct finding *finding, int64_t version, struct file_hash_facts *out, struct error *err);
static int load_snapshot(struct finding *finding, int64_t version, enum file_hash_state *out_state,
	struct error *err);
static int load(struct finding *finding, struct db *db, int64_t version,
	enum file_hash_state *out_state, struct error *err);
static int load_segments(struct finding *finding, struct db *db, struct error *err);
static int find_in_indexes(struct finding *finding, struct chunk_id *out, struct error *err);
static int add_segment(struct finding *finding, const struct segment *segment,
	struct merkle *merkle, struct error *err);
static int find_in_bytes(struct finding *finding, struct chunk_id *out, struct error *err);
static int open_bytes(struct finding *finding, struct error *err);
static int read_all(const struct finding *finding, struct file_hasher *hasher, uint8_t *piece,
	struct error *err);
static int file_hash_apply(struct change *change, struct db *db, struct error *err);

int file_hash_find(struct store *store, int64_t version, const struct work_pace *pace,
	struct file_hash_facts *out, struct error *err)
{
	struct finding finding = {.store = store, .pace = pace};
	const int result = find(&finding, version, out, err);
	for (size_t i = 0; i < finding.range.segment_count; i++)
		pack_store_unhold(
			store_packs(store), &finding.range.segments[i].pack, finding.turns[i]);
	if (finding.source != NULL)
		finding.source->close(finding.source);
	part_ends_release(&finding.ends);
	free(finding.turns);
	free(finding.range.segments);
	return result;
}

int file_hash_write(
	struct store *store, const struct file_hash_found *found, size_t count, struct error *err)
{
	struct hash_change hashes = {
		.change = {.apply = file_hash_apply}, .found = found, .count = count};
	ASSERT(count <= FILE_HASHES_MAX);
	return count == 0 ? 0 : committer_run(store_committer(store), &hashes.change, err);
}

int file_hash_lacking(struct store *store, int64_t after, int64_t *out, size_t capacity,
	size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	int got;
	ASSERT(capacity >= 1);
	*out_count = 0;
	if (db == NULL)
		return -1;
	struct db_statement *const rows =
		db_query(db, SQL_LACKING, err, db_i64(after), db_i64((int64_t)capacity));
	while ((got = db_step(rows, err)) == 1)
		out[(*out_count)++] = db_column_i64(rows, 0);
	db_reset(rows);
	store_reader_give(store, db);
	return got;
}

static int find(
	struct finding *finding, int64_t version, struct file_hash_facts *out, struct error *err)
{
	const struct version *const row = &finding->version;
	if (load_snapshot(finding, version, &out->state, err) != 0)
		return -1;
	out->modified_ms = row->modified_ms;
	out->has_hash = row->has_file_hash;
	out->hash = row->file_hash;
	if (out->state != FILE_HASH_FOUND)
		return 0;
	out->found = (struct file_hash_found){.version = version, .contents = row->contents};
	const bool has_segments = row->kind == VERSION_SEGMENTS || row->kind == VERSION_SINGLE;
	return (has_segments ? find_in_indexes : find_in_bytes)(finding, &out->found.hash, err);
}

static int load_snapshot(struct finding *finding, int64_t version, enum file_hash_state *out_state,
	struct error *err)
{
	struct db *const db = store_snapshot_take(finding->store, err);
	if (db == NULL)
		return -1;
	const int result = load(finding, db, version, out_state, err);
	store_snapshot_give(finding->store, db);
	return result;
}

static int load(struct finding *finding, struct db *db, int64_t version,
	enum file_hash_state *out_state, struct error *err)
{
	const int got = version_find_sequence(db, version, NULL, &finding->version, err);
	if (got < 0)
		return -1;
	*out_state = FILE_HASH_SETTLED;
	if (got == 0 || finding->version.is_marker || finding->version.has_file_hash)
		return 0;
	const enum version_kind kind = finding->version.kind;
	const bool is_derived = kind == VERSION_DERIVED;
	*out_state = is_derived && finding->pace == NULL ? FILE_HASH_DECODES : FILE_HASH_FOUND;
	if (kind == VERSION_SEGMENTS || kind == VERSION_SINGLE)
		return load_segments(finding, db, err);
	return is_derived && finding->pace != NULL
		? part_ends_load(db, &finding->version, &finding->ends, err)
		: 0;
}

/* Holds the packs within the snapshot (invariant 5). */
static int load_segments(struct finding *finding, struct db *db, struct error *err)
{
	const struct version *const version = &finding->version;
	finding->range = (struct part_range){.length = version->size};
	if (part_set_load(db, version->part_set, version->size, version->contents, &finding->range,
		    err) != 0) {
		finding->range.segment_count = 0;
		return -1;
	}
	finding->turns =
		memory_new_array(finding->range.segment_count + 1, sizeof(*finding->turns));
	for (size_t i = 0; i < finding->range.segment_count; i++)
		finding->turns[i] = pack_store_hold(
			store_packs(finding->store), &finding->range.segments[i].pack);
	return 0;
}

static int find_in_indexes(struct finding *finding, struct chunk_id *out, struct error *err)
{
	struct merkle merkle;
	int result = 0;
	merkle_init(&merkle);
	for (size_t i = 0; result == 0 && i < finding->range.segment_count; i++)
		result = add_segment(finding, &finding->range.segments[i], &merkle, err);
	if (result == 0)
		*out = merkle_file(&merkle);
	return result;
}

static int add_segment(struct finding *finding, const struct segment *segment,
	struct merkle *merkle, struct error *err)
{
	struct chunk_entry entries[FIND_ENTRIES];
	uint64_t bytes = 0;
	for (uint32_t at = 0; at < segment->count;) {
		const struct pack_run run = {
			segment->pack, segment->first + at, segment->count - at};
		size_t got = 0;
		if (pack_store_chunk_entries(store_packs(finding->store), &run, entries,
			    FIND_ENTRIES, &got, err) != 0)
			return -1;
		ASSERT(got >= 1 && got <= run.chunks);
		for (size_t i = 0; i < got; i++) {
			merkle_add(merkle, &entries[i]);
			bytes += entries[i].size;
		}
		at += (uint32_t)got;
	}
	if (bytes == segment->bytes)
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"Version %lld: the sizes of its chunks in a pack index differ from the catalog.",
		(long long)finding->version.sequence);
}

static int find_in_bytes(struct finding *finding, struct chunk_id *out, struct error *err)
{
	if (open_bytes(finding, err) != 0)
		return -1;
	uint8_t *const piece = memory_new(FIND_PIECE_BYTES);
	struct file_hasher *const hasher = file_hasher_new(&finding->ends);
	const int result = read_all(finding, hasher, piece, err);
	if (result == 0)
		*out = file_hasher_result(hasher);
	file_hasher_free(hasher);
	free(piece);
	return result;
}

static int open_bytes(struct finding *finding, struct error *err)
{
	const struct object object = {
		.sequence = finding->version.sequence, .size = finding->version.size};
	finding->source = object_open(finding->store, &object, 0, object.size, err);
	return finding->source == NULL ? -1 : 0;
}

static int read_all(const struct finding *finding, struct file_hasher *hasher, uint8_t *piece,
	struct error *err)
{
	ptrdiff_t got;
	while ((got = finding->source->read(finding->source, piece, FIND_PIECE_BYTES, err)) > 0) {
		file_hasher_add(hasher, span_of(piece, (size_t)got));
		if (finding->pace != NULL &&
			!finding->pace->spend(finding->pace->owner, (size_t)got))
			return error_set(err, ERROR_BUSY, "The server is stopping.");
	}
	return got < 0 ? -1 : 0;
}

static int file_hash_apply(struct change *change, struct db *db, struct error *err)
{
	const struct hash_change *const hashes = (const struct hash_change *)change;
	for (size_t i = 0; i < hashes->count; i++)
		if (version_set_file_hash(db, hashes->found[i].version, hashes->found[i].contents,
			    &hashes->found[i].hash, err) != 0)
			return -1;
	return 0;
}
