/* Raw chunks go from the pack to the caller's buffer in scatter reads of several chunks. A chunk
 * that is encoded, cut by the range, or larger than the rest of the buffer is decoded into a spare
 * buffer, from which later calls take pieces. An error after some bytes of a call is kept for the
 * next call. In a far place the first chunk is sought by the first read, which may wait for the
 * index. */
#include "storage/packs/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/pack_wait.h"

/* Chunks that are read again by one check. When so many are right again, the disk is, and the rest
 * is left to the read. */
enum { AGAIN_MAX = 16 };

struct assemble {
	struct body_source source;
	struct pack_store *packs;
	struct segment *segments;
	uint8_t *turns; /* the turn of each segment's hold */
	size_t count;
	size_t segment;     /* the segment of the next chunk */
	uint32_t chunk;     /* its number in that segment */
	size_t skip;        /* bytes of the next chunk before the range */
	uint64_t unsought;  /* bytes from that chunk on to the one where the range begins */
	uint64_t remaining; /* bytes of the range */
	uint8_t *spare;     /* CHUNK_MAX_BYTES, once it is needed */
	size_t spare_at;
	size_t spare_len;
	bool failed;
	struct error error;
	struct pack_wait wait; /* once it may wait */
};

static struct pack_wait *assemble_wait(struct assemble *assemble)
{
	return assemble->wait.store != NULL ? &assemble->wait : NULL;
}

static void assemble_let_wait(struct body_source *source, source_wake_fn *wake, void *owner)
{
	struct assemble *const assemble = (struct assemble *)source;
	pack_wait_let(&assemble->wait, assemble->packs, wake, owner);
}

static bool same_pack_as_before(const struct assemble *assemble, size_t i)
{
	return i > 0 &&
		memcmp(&assemble->segments[i].pack, &assemble->segments[i - 1].pack,
			sizeof(struct pack_id)) == 0;
}

static void assemble_close(struct body_source *source)
{
	struct assemble *const assemble = (struct assemble *)source;
	pack_wait_release(&assemble->wait);
	for (size_t i = 0; i < assemble->count; i++)
		if (!same_pack_as_before(assemble, i))
			pack_store_unhold(
				assemble->packs, &assemble->segments[i].pack, assemble->turns[i]);
	free(assemble->segments);
	free(assemble->turns);
	free(assemble->spare);
	free(assemble);
}

static struct pack_run assemble_run(const struct assemble *assemble)
{
	ASSERT(assemble->segment < assemble->count);
	const struct segment *const segment = &assemble->segments[assemble->segment];
	return (struct pack_run){.pack = segment->pack,
		.first = segment->first + assemble->chunk,
		.chunks = segment->count - assemble->chunk};
}

static void assemble_advance(struct assemble *assemble, uint32_t chunks)
{
	assemble->chunk += chunks;
	if (assemble->chunk < assemble->segments[assemble->segment].count)
		return;
	ASSERT(assemble->chunk == assemble->segments[assemble->segment].count);
	assemble->chunk = 0;
	assemble->segment++;
}

static int assemble_out_of_chunks(struct error *err)
{
	return error_set(err, ERROR_CORRUPT,
		"The chunks of the object have fewer bytes than its segments say.");
}

/* Decodes the next chunk, and gives its length; SOURCE_WAIT; -1. */
static ptrdiff_t assemble_decode(struct assemble *assemble, uint8_t *into, struct error *err)
{
	const struct pack_run run = assemble_run(assemble);
	const struct chunk_place place = {.pack = run.pack, .chunk = run.first};
	size_t len;
	const int result = pack_store_read_chunk_soon(
		assemble->packs, &place, assemble_wait(assemble), into, &len, err);
	if (result != 0)
		return result == PACK_WAITS ? SOURCE_WAIT : -1;
	assemble_advance(assemble, 1);
	return (ptrdiff_t)len;
}

/* Decodes the next chunk into the spare buffer, and skips its bytes before the range. 0; as
 * above. */
static int assemble_fill_spare(struct assemble *assemble, struct error *err)
{
	if (assemble->spare == NULL)
		assemble->spare = memory_new(CHUNK_MAX_BYTES);
	const ptrdiff_t len = assemble_decode(assemble, assemble->spare, err);
	if (len < 0)
		return (int)len;
	if (assemble->skip >= (size_t)len)
		return assemble_out_of_chunks(err);
	assemble->spare_at = assemble->skip;
	assemble->spare_len = (size_t)len;
	assemble->skip = 0;
	return 0;
}

static size_t assemble_give_spare(struct assemble *assemble, uint8_t *into, size_t capacity)
{
	ASSERT(assemble->spare_at < assemble->spare_len);
	size_t len = assemble->spare_len - assemble->spare_at;
	len = len < capacity ? len : capacity;
	memcpy(into, assemble->spare + assemble->spare_at, len);
	assemble->spare_at += len;
	return len;
}

/* Moves to the chunk that holds byte `offset` of the present segment. */
static int assemble_seek_chunk(struct assemble *assemble, uint64_t offset, struct error *err)
{
	while (offset > 0) {
		const struct pack_run run = assemble_run(assemble);
		struct chunk_entry entries[PACK_RUN_CHUNKS];
		size_t count;
		if (run.chunks == 0)
			return assemble_out_of_chunks(err);
		if (pack_store_chunk_entries(
			    assemble->packs, &run, entries, PACK_RUN_CHUNKS, &count, err) != 0)
			return -1;
		for (size_t i = 0; i < count; i++) {
			if (offset < entries[i].size) {
				assemble->skip = (size_t)offset;
				return 0;
			}
			offset -= entries[i].size;
			assemble->chunk++;
		}
	}
	return 0;
}

/* Moves to the chunk where the range begins, with its pack pinned. 0, SOURCE_WAIT or -1. */
static int assemble_seek_late(struct assemble *assemble, struct error *err)
{
	const struct pack_run run = assemble_run(assemble);
	struct pack *pinned;
	int result =
		pack_wait_pin(assemble_wait(assemble), assemble->packs, &run.pack, &pinned, err);
	if (result == PACK_WAITS)
		return SOURCE_WAIT;
	if (result != 0)
		return pack_store_read_failed(assemble->packs, &run.pack, run.first, err);
	result = assemble_seek_chunk(assemble, assemble->unsought, err);
	assemble->unsought = 0;
	pack_wait_unpin(assemble_wait(assemble), assemble->packs, pinned);
	return result;
}

/* Reads whole raw chunks straight to the caller. Gives their bytes, 0 when the next chunk is not
 * such a one; SOURCE_WAIT; -1. */
static ptrdiff_t assemble_read_run(
	struct assemble *assemble, uint8_t *into, size_t capacity, struct error *err)
{
	const struct pack_run run = assemble_run(assemble);
	struct pack_read read = {
		.into = into, .capacity = capacity, .wait = assemble_wait(assemble)};
	const int result = pack_store_read_run(assemble->packs, &run, &read, err);
	if (result == PACK_WAITS)
		return SOURCE_WAIT;
	assemble_advance(assemble, read.chunks);
	if (read.len > 0 && result != 0) {
		assemble->failed = true; /* the bytes before the bad record are right */
		assemble->error = *err;
	}
	return read.len > 0 || result == 0 ? (ptrdiff_t)read.len : -1;
}

/* Gives 1 to `capacity` bytes (which are within the range); SOURCE_WAIT; -1 with the error set. */
static ptrdiff_t assemble_step(
	struct assemble *assemble, uint8_t *into, size_t capacity, struct error *err)
{
	int result = 0;
	if (assemble->spare_at < assemble->spare_len)
		return (ptrdiff_t)assemble_give_spare(assemble, into, capacity);
	if (assemble->segment == assemble->count)
		return assemble_out_of_chunks(err);
	if (assemble->unsought > 0 && (result = assemble_seek_late(assemble, err)) != 0)
		return result;
	if (assemble->skip == 0) {
		const ptrdiff_t len = assemble_read_run(assemble, into, capacity, err);
		if (len != 0)
			return len;
		if (capacity >= CHUNK_MAX_BYTES)
			return assemble_decode(assemble, into, err);
	}
	if ((result = assemble_fill_spare(assemble, err)) != 0)
		return result;
	return (ptrdiff_t)assemble_give_spare(assemble, into, capacity);
}

static ptrdiff_t assemble_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct assemble *const assemble = (struct assemble *)source;
	size_t used = 0;
	while (!assemble->failed && used < capacity && assemble->remaining > 0) {
		const size_t room = assemble->remaining < capacity - used
			? (size_t)assemble->remaining
			: capacity - used;
		if (used > 0 && room < CHUNK_MIN_BYTES && assemble->spare_at == assemble->spare_len)
			break; /* the next chunk hardly fits: leave it whole for the next call */
		assemble->wait.may_begin = used == 0;
		const ptrdiff_t len = assemble_step(assemble, into + used, room, &assemble->error);
		if (len == SOURCE_WAIT)
			return used > 0 ? (ptrdiff_t)used : SOURCE_WAIT;
		assemble->failed |= len < 0;
		used += len > 0 ? (size_t)len : 0;
		assemble->remaining -= len > 0 ? (uint64_t)len : 0;
	}
	if (used == 0 && assemble->failed) {
		*err = assemble->error;
		return -1;
	}
	return (ptrdiff_t)used;
}

static int assemble_seek(struct assemble *assemble, uint64_t offset, struct error *err)
{
	while (assemble->segment < assemble->count &&
		offset >= assemble->segments[assemble->segment].bytes)
		offset -= assemble->segments[assemble->segment++].bytes;
	if (assemble->remaining == 0)
		return 0;
	if (assemble->source.let_wait == NULL)
		return assemble_seek_chunk(assemble, offset, err);
	assemble->unsought = offset;
	return 0;
}

struct body_source *assemble_open(struct pack_store *packs, const struct segment *segments,
	size_t count, uint64_t offset, uint64_t length, struct error *err)
{
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += segments[i].bytes;
	if (offset > total || length > total - offset) {
		error_set(err, ERROR_RANGE,
			"The bytes %llu to %llu are outside the object's %llu bytes.",
			(unsigned long long)offset, (unsigned long long)(offset + length),
			(unsigned long long)total);
		return NULL;
	}
	struct assemble *const assemble = memory_new(sizeof(*assemble));
	assemble->source = (struct body_source){.read = assemble_read,
		.let_wait = pack_store_is_far(packs) ? assemble_let_wait : NULL,
		.close = assemble_close};
	assemble->packs = packs;
	assemble->segments = memory_new_array(count + 1, sizeof(*segments));
	memcpy(assemble->segments, segments, count * sizeof(*segments));
	assemble->turns = memory_new(count + 1);
	assemble->count = count;
	assemble->remaining = length;
	for (size_t i = 0; i < count; i++)
		if (!same_pack_as_before(assemble, i))
			assemble->turns[i] = (uint8_t)pack_store_hold(packs, &segments[i].pack);
	if (assemble_seek(assemble, offset, err) == 0)
		return &assemble->source;
	assemble_close(&assemble->source);
	return NULL;
}

/* Moves `run` to the chunks that hold bytes [from, to) of it. */
static int assemble_narrow(struct pack_store *packs, struct pack_run *run, uint64_t from,
	uint64_t to, struct error *err)
{
	struct chunk_entry entries[PACK_RUN_CHUNKS];
	struct pack_run rest = *run;
	uint64_t at = 0;
	run->chunks = 0;
	while (at < to && rest.chunks > 0) {
		size_t count;
		if (pack_store_chunk_entries(packs, &rest, entries, PACK_RUN_CHUNKS, &count, err) !=
			0)
			return -1;
		for (size_t i = 0; i < count && at < to; i++) {
			at += entries[i].size;
			run->first += at <= from;
			run->chunks += at > from;
		}
		rest.first += (uint32_t)count;
		rest.chunks -= (uint32_t)count;
	}
	return 0;
}

/* Reads those chunks of the run again that were seen damaged. */
static int assemble_check_run(
	struct pack_store *packs, const struct pack_run *run, unsigned *again, struct error *err)
{
	for (uint32_t i = 0; i < run->chunks && *again < AGAIN_MAX; i++) {
		const struct pack_run one = {
			.pack = run->pack, .first = run->first + i, .chunks = 1};
		if (!pack_store_is_damaged(packs, &one))
			continue;
		if (pack_store_check_records(packs, &one, err) != 0)
			return -1;
		(*again)++;
	}
	return 0;
}

/* The same as assemble_check_damaged for bytes [from, to) of one segment. */
static int assemble_check_segment(struct pack_store *packs, const struct segment *segment,
	uint64_t from, uint64_t to, unsigned *again, struct error *err)
{
	struct pack_run run = {
		.pack = segment->pack, .first = segment->first, .chunks = segment->count};
	if (!pack_store_is_damaged(packs, &run))
		return 0;
	if (assemble_narrow(packs, &run, from, to, err) == 0 &&
		assemble_check_run(packs, &run, again, err) == 0)
		return 0;
	return pack_damage_is(err) ? 1 : -1;
}

int assemble_check_damaged(struct pack_store *packs, const struct segment *segments, size_t count,
	uint64_t offset, uint64_t length, struct error *err)
{
	uint64_t start = 0;
	unsigned again = 0;
	int result = 0;
	if (length == 0 || !pack_damage_is_known(packs->damage))
		return 0;
	for (size_t i = 0; result == 0 && i < count && start < offset + length; i++) {
		const uint64_t bytes = segments[i].bytes;
		const uint64_t from = offset > start ? offset - start : 0;
		const uint64_t to =
			offset + length - start < bytes ? offset + length - start : bytes;
		if (from < bytes)
			result = assemble_check_segment(packs, &segments[i], from, to, &again, err);
		start += bytes;
	}
	return result;
}

struct assemble_inline {
	struct body_source source;
	size_t at;
	size_t len;
	uint8_t bytes[];
};

static ptrdiff_t assemble_inline_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	(void)err;
	struct assemble_inline *const whole = (struct assemble_inline *)source;
	const size_t rest = whole->len - whole->at;
	const size_t len = rest < capacity ? rest : capacity;
	memcpy(into, whole->bytes + whole->at, len);
	whole->at += len;
	return (ptrdiff_t)len;
}

static void assemble_inline_close(struct body_source *source)
{
	free(source);
}

struct body_source *assemble_open_inline(struct span bytes)
{
	struct assemble_inline *const whole = memory_new(sizeof(*whole) + bytes.len);
	whole->source =
		(struct body_source){.read = assemble_inline_read, .close = assemble_inline_close};
	whole->len = bytes.len;
	if (bytes.len > 0)
		memcpy(whole->bytes, bytes.data, bytes.len);
	return &whole->source;
}
