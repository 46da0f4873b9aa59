/* Phases: begin (the form of the whole shard), files, xorbs, done. A step does one slice: up to
 * SLICE_CHUNKS chunks, or the first record that the disk must be read for, so that other jobs of
 * the helpers get their turns. Each xorb that the shard names is referred once and proven readable.
 * The chunks of a file's terms give its hash, its size and its segments; segments that adjoin are
 * joined. */
#include "storage/xet/shard_check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/merkle.h"
#include "chunker/shard.h"
#include "storage/core/store.h"
#include "storage/packs/chunk_map.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_format.h"

enum {
	SLICE_CHUNKS = 64 * 1024,
	/* In all files of a shard, about 8 TiB. A bound is needed because few terms may name many
	 * chunks, and each is hashed. */
	CHUNKS_MAX = 128 * 1024 * 1024,
	INDEX_ROWS = 512
};

struct shard_check {
	struct store *store;
	struct shard_reader reader;
	struct span bytes;
	enum { CHECK_BEGINS, CHECK_FILES, CHECK_XORBS, CHECK_DONE } phase;
	/* the file in progress */
	struct shard_file file;
	bool has_file;
	uint32_t term; /* the next one */
	uint64_t size;
	size_t first_segment;
	struct merkle merkle;
	uint64_t chunks;             /* of all files so far */
	bool has_read;               /* this slice has read a xorb, so it ends */
	struct chunk_entry *entries; /* XORB_MAX_CHUNKS, for the term or xorb in progress */
	/* the results */
	struct shard_check_file *files;
	size_t file_count;
	size_t file_capacity;
	struct segment *segments;
	size_t segment_count;
	size_t segment_capacity;
	struct xorb *xorbs; /* their packs are referred */
	size_t xorb_count;
	size_t xorb_capacity;
	struct chunk_map xorb_map;    /* from hashes to indexes in `xorbs` */
	struct chunk_index_row *rows; /* first chunks of files that the chunk index does not know */
	size_t row_count;
};

static int begin(struct shard_check *check, struct error *err);
static int step_files(struct shard_check *check, struct error *err);
static int begin_file(struct shard_check *check, struct error *err);
static int bad_file(const struct shard_check *check, const char *what, struct error *err);
static int check_term(struct shard_check *check, uint32_t index, struct error *err);
static const struct xorb *find_xorb(
	struct shard_check *check, const struct chunk_id *hash, struct error *err);
static int no_xorb(const struct shard_check *check, const struct chunk_id *hash, struct error *err);
static int prove_xorb(struct shard_check *check, const struct xorb *xorb, struct error *err);
static int load_entries(struct shard_check *check, const struct xorb *xorb, uint32_t first,
	uint32_t end, struct error *err);
static void note_first(struct shard_check *check, const struct segment *segment);
static void flush_rows(struct shard_check *check);
static void keep_segment(struct shard_check *check, const struct segment *segment);
static int end_file(struct shard_check *check, struct error *err);
static int step_xorbs(struct shard_check *check, struct error *err);
static int check_xorb(
	struct shard_check *check, const struct shard_xorb *listed, struct error *err);

struct shard_check *shard_check_new(struct store *store, struct span bytes)
{
	struct shard_check *const check = memory_new(sizeof(*check));
	check->store = store;
	check->bytes = bytes;
	check->entries = memory_new_array(XORB_MAX_CHUNKS, sizeof(*check->entries));
	check->rows = memory_new_array(INDEX_ROWS, sizeof(*check->rows));
	chunk_map_init(&check->xorb_map);
	return check;
}

void shard_check_free(struct shard_check *check, bool keeps_packs)
{
	if (check == NULL)
		return;
	for (size_t i = 0; i < check->xorb_count && !keeps_packs; i++)
		pack_store_unrefer(store_packs(check->store), &check->xorbs[i].pack);
	chunk_map_release(&check->xorb_map);
	free(check->entries);
	free(check->files);
	free(check->segments);
	free(check->xorbs);
	free(check->rows);
	free(check);
}

int shard_check_step(struct shard_check *check, struct error *err)
{
	static int (*const steps[])(struct shard_check * check, struct error * err) = {
		begin, step_files, step_xorbs};
	ASSERT(check->phase < CHECK_DONE);
	check->has_read = false;
	return steps[check->phase](check, err);
}

size_t shard_check_at(const struct shard_check *check)
{
	return check->phase == CHECK_BEGINS ? 0 : shard_reader_at(&check->reader);
}

const struct shard_check_file *shard_check_files(const struct shard_check *check, size_t *out_count)
{
	ASSERT(check->phase == CHECK_DONE);
	*out_count = check->file_count;
	return check->files;
}

const struct segment *shard_check_segments(const struct shard_check *check)
{
	ASSERT(check->phase == CHECK_DONE);
	return check->segments;
}

const struct xorb *shard_check_xorbs(const struct shard_check *check, size_t *out_count)
{
	ASSERT(check->phase == CHECK_DONE);
	*out_count = check->xorb_count;
	return check->xorbs;
}

/* Checks the form of the whole shard before anything is looked up. */
static int begin(struct shard_check *check, struct error *err)
{
	struct shard_reader *const reader = &check->reader;
	if (shard_reader_open(reader, check->bytes, err) != 0 ||
		shard_reader_end(reader, err) != 0 ||
		shard_reader_open(reader, check->bytes, err) != 0)
		return -1;
	check->phase = CHECK_FILES;
	return 1;
}

static int step_files(struct shard_check *check, struct error *err)
{
	const uint64_t until = check->chunks + SLICE_CHUNKS;
	for (unsigned files = 0; check->chunks < until && files < SLICE_CHUNKS && !check->has_read;
		files++) {
		if (!check->has_file) {
			const int got = shard_reader_file(&check->reader, &check->file, err);
			if (got != 1) {
				check->phase = CHECK_XORBS;
				return got < 0 ? -1 : 1;
			}
			if (begin_file(check, err) != 0)
				return -1;
		}
		for (; check->term < check->file.term_count && check->chunks < until &&
			!check->has_read;
			check->term++)
			if (check_term(check, check->term, err) != 0)
				return -1;
		if (check->term == check->file.term_count && end_file(check, err) != 0)
			return -1;
	}
	return 1;
}

static int begin_file(struct shard_check *check, struct error *err)
{
	if (check->file.term_count > 0 && !check->file.has_ranges)
		return bad_file(check, "has no range hashes", err);
	check->has_file = true;
	check->term = 0;
	check->size = 0;
	check->first_segment = check->segment_count;
	merkle_init(&check->merkle);
	return 0;
}

static int bad_file(const struct shard_check *check, const char *what, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&check->file.hash, text);
	return error_set(err, ERROR_INVALID, "The shard's file %s %s.", text, what);
}

static int check_term(struct shard_check *check, uint32_t index, struct error *err)
{
	const struct shard_term term = shard_file_term(&check->file, index);
	const struct chunk_id range = shard_file_range(&check->file, index);
	const struct xorb *const xorb = find_xorb(check, &term.xorb, err);
	if (xorb == NULL)
		return -1;
	if (term.first >= term.end || term.end > xorb->count)
		return bad_file(check, "has a term of chunks that its xorb does not have", err);
	const uint32_t count = term.end - term.first;
	struct segment segment = {
		.pack = xorb->pack, .first = xorb->first + term.first, .count = count};
	check->chunks += count;
	if (check->chunks > CHUNKS_MAX)
		return error_set(err, ERROR_TOO_LARGE,
			"The files of a shard may have at most %d chunks in all.", CHUNKS_MAX);
	if (load_entries(check, xorb, term.first, term.end, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		segment.bytes += check->entries[i].size;
		merkle_add(&check->merkle, &check->entries[i]);
	}
	const struct chunk_id actual = chunk_hash_range(check->entries, count);
	if (segment.bytes != term.bytes)
		return bad_file(check, "has a term whose length is not that of its chunks", err);
	if (!chunk_id_equal(&actual, &range))
		return bad_file(check, "has a term whose range hash is wrong", err);
	check->size += segment.bytes;
	if (index == 0)
		note_first(check, &segment);
	keep_segment(check, &segment);
	return 0;
}

/* Finds the xorb and refers its pack, at the first time only: gc deletes nothing of a pack that is
 * referred. The pointer is valid until the next call. */
static const struct xorb *find_xorb(
	struct shard_check *check, const struct chunk_id *hash, struct error *err)
{
	uint32_t at;
	struct xorb found;
	if (chunk_map_find(&check->xorb_map, hash, &at) &&
		chunk_id_equal(&check->xorbs[at].hash, hash))
		return &check->xorbs[at];
	if (xorb_refer(check->store, hash, &found, err) != 0) {
		if (err->kind == ERROR_NOT_FOUND)
			no_xorb(check, hash, err);
		return NULL;
	}
	if (prove_xorb(check, &found, err) != 0) {
		pack_store_unrefer(store_packs(check->store), &found.pack);
		return NULL;
	}
	check->xorbs = memory_make_room(
		check->xorbs, check->xorb_count, &check->xorb_capacity, sizeof(*check->xorbs));
	check->xorbs[check->xorb_count] = found;
	chunk_map_add(&check->xorb_map, hash, (uint32_t)check->xorb_count);
	return &check->xorbs[check->xorb_count++];
}

/* A client sends the shard even if a xorb of it was refused because the disk was full, and it shows
 * the user only the answer to the shard. So a full disk must be named here. */
static int no_xorb(const struct shard_check *check, const struct chunk_id *hash, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	struct error why = {0};
	chunk_id_format(hash, text);
	if (store_check_room(check->store, XORB_MAX_BYTES, &why) != 0 && why.kind == ERROR_NO_SPACE)
		return error_set(err, ERROR_NO_SPACE,
			"The shard names the xorb %s, which is not stored here, and the disk has no room for a xorb: %s",
			text, why.text);
	return error_set(err, ERROR_INVALID,
		"The shard names the xorb %s, which is not stored here. If the client's cache lists it, "
		"clear the cache ($HF_HOME/xet, ~/.cache/huggingface/xet) and send again.",
		text);
}

/* A client that names a xorb did not send it just now, so its records may be unreadable: no file
 * may be registered over them. A client that has its URL from a new token sends all again
 * (api/hub/hub_token.c). */
static int prove_xorb(struct shard_check *check, const struct xorb *xorb, struct error *err)
{
	struct pack_store *packs = store_packs(check->store);
	const struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
	char text[CHUNK_ID_TEXT_BYTES];
	check->has_read |= !pack_store_is_checked(packs, &run);
	if (pack_store_prove_records(packs, &run, err) == 0)
		return 0;
	chunk_id_format(&xorb->hash, text);
	return !pack_damage_is(err)
		? -1
		: error_set(err, ERROR_INVALID,
			  "The shard names the xorb %s, whose stored bytes are damaged. Send the same "
			  "files again: this repairs them. If that is refused too, clear the "
			  "client's cache ($HF_HOME/xet, ~/.cache/huggingface/xet) and send again.",
			  text);
}

/* Loads chunks [first, end) of the xorb into check->entries. */
static int load_entries(struct shard_check *check, const struct xorb *xorb, uint32_t first,
	uint32_t end, struct error *err)
{
	struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first + first, .chunks = end - first};
	ASSERT(first < end && end <= xorb->count && end - first <= XORB_MAX_CHUNKS);
	for (size_t at = 0; at < end - first;) {
		size_t count = 0;
		if (pack_store_chunk_entries(store_packs(check->store), &run, check->entries + at,
			    run.chunks, &count, err) != 0)
			return -1;
		ASSERT(count >= 1 && count <= run.chunks);
		at += count;
		run.first += (uint32_t)count;
		run.chunks -= (uint32_t)count;
	}
	return 0;
}

/* Clients ask for the first chunk of each file. The index must know it even when it is not one of
 * the sampled chunks. */
static void note_first(struct shard_check *check, const struct segment *segment)
{
	struct chunk_place known;
	const struct chunk_id *const id = &check->entries[0].id;
	if (chunk_index_sampled(id) ||
		chunk_index_find(store_chunk_index(check->store), id, &known))
		return;
	ASSERT(check->row_count <= INDEX_ROWS);
	if (check->row_count == INDEX_ROWS)
		flush_rows(check);
	check->rows[check->row_count++] = (struct chunk_index_row){
		.id = *id, .place = {.pack = segment->pack, .chunk = segment->first}};
}

/* A failure is ignored: a missing row only makes a client send bytes that are stored already. */
static void flush_rows(struct shard_check *check)
{
	struct error ignored = {0};
	if (check->row_count > 0)
		(void)chunk_index_add(
			store_chunk_index(check->store), check->rows, check->row_count, &ignored);
	check->row_count = 0;
}

/* Adds the segment, or extends the last one of the file when they adjoin. */
static void keep_segment(struct shard_check *check, const struct segment *segment)
{
	if (check->segment_count > check->first_segment) {
		struct segment *const last = &check->segments[check->segment_count - 1];
		if (pack_id_equal(&last->pack, &segment->pack) &&
			last->first + last->count == segment->first) {
			last->count += segment->count;
			last->bytes += segment->bytes;
			return;
		}
	}
	check->segments = memory_make_room(check->segments, check->segment_count,
		&check->segment_capacity, sizeof(*check->segments));
	check->segments[check->segment_count++] = *segment;
}

static int end_file(struct shard_check *check, struct error *err)
{
	const struct chunk_id actual = merkle_file(&check->merkle);
	check->has_file = false;
	if (!chunk_id_equal(&actual, &check->file.hash))
		return bad_file(check, "has chunks that do not give its hash", err);
	if (check->file.term_count == 0)
		return 0; /* the empty file needs no row */
	check->files = memory_make_room(
		check->files, check->file_count, &check->file_capacity, sizeof(*check->files));
	check->files[check->file_count++] = (struct shard_check_file){
		.hash = actual,
		.size = check->size,
		.first_segment = check->first_segment,
		.segment_count = check->segment_count - check->first_segment,
	};
	return 0;
}

static int step_xorbs(struct shard_check *check, struct error *err)
{
	struct shard_xorb listed;
	for (uint32_t chunks = 0; chunks < SLICE_CHUNKS && !check->has_read;
		chunks += listed.chunk_count + 1) {
		const int got = shard_reader_xorb(&check->reader, &listed, err);
		if (got == 1) {
			if (check_xorb(check, &listed, err) != 0)
				return -1;
			continue;
		}
		check->phase = CHECK_DONE;
		if (got == 0)
			flush_rows(check);
		return got;
	}
	return 1;
}

static int check_xorb(struct shard_check *check, const struct shard_xorb *listed, struct error *err)
{
	const struct xorb *const xorb = find_xorb(check, &listed->hash, err);
	uint64_t offset = 0;
	if (xorb == NULL)
		return -1;
	if (listed->chunk_count != xorb->count)
		return error_set(err, ERROR_INVALID,
			"The shard lists %" PRIu32 " chunks of a xorb that has %" PRIu32 ".",
			listed->chunk_count, xorb->count);
	if (load_entries(check, xorb, 0, xorb->count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < xorb->count; i++) {
		const struct shard_chunk chunk = shard_xorb_chunk(listed, i);
		const struct chunk_entry *const entry = &check->entries[i];
		if (!chunk_id_equal(&chunk.id, &entry->id) || chunk.size != entry->size ||
			chunk.offset != offset)
			return error_set(err, ERROR_INVALID,
				"The shard lists a chunk %" PRIu32
				" of a xorb that differs from the stored one.",
				i);
		offset += entry->size;
	}
	return listed->bytes == offset
		? 0
		: error_set(err, ERROR_INVALID,
			  "The shard gives a xorb a length that is not that of its chunks.");
}
