/* Whole records are read straight into the caller's buffer, several at once. A record that the
 * range cuts, or that does not fit the buffer, is read into a spare buffer and given out in pieces.
 * A failure after some bytes of a read is kept for the next read, because those bytes are right. A
 * pack may be mended during the stream: its records then have other lengths than those that were
 * measured, and check_form ends the stream. */
#include "storage/xet/xorb_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/assemble.h"
#include "storage/packs/pack_record.h"
#include "storage/packs/pack_wait.h"
#include "storage/packs/xorb_view.h"

struct xorb_source {
	struct body_source source;
	struct pack_store *packs;
	struct xorb_run *runs;
	uint8_t *turns;  /* of the hold on each run's pack */
	unsigned *forms; /* of each run's pack when the run was measured */
	size_t count;
	bool as_stored;
	size_t run;         /* of the next record */
	uint32_t chunk;     /* the same, in that run */
	uint64_t skip;      /* bytes of the next record that lie before the range */
	uint64_t remaining; /* bytes of the range */
	uint8_t *spare;     /* of PACK_RECORD_MAX_BYTES; NULL until it is needed */
	size_t spare_at;
	size_t spare_len;
	bool failed;
	struct error error;
	struct pack_wait wait; /* once it may wait */
};

static ptrdiff_t source_read(
	struct body_source *base, uint8_t *into, size_t capacity, struct error *err);
static void xorb_source_let_wait(struct body_source *base, source_wake_fn *wake, void *owner);
static struct pack_wait *source_wait(struct xorb_source *source);
static ptrdiff_t source_step(struct xorb_source *source, uint8_t *into, size_t capacity,
	bool may_leave, struct error *err);
static size_t give_spare(struct xorb_source *source, uint8_t *into, size_t capacity);
static int read_records(struct xorb_source *source, uint8_t *into, size_t capacity, size_t *out_len,
	struct error *err);
static int check_form(const struct xorb_source *source, size_t run, struct error *err);
static int fill_spare(struct xorb_source *source, struct error *err);
static void source_close(struct body_source *base);
static int source_seek(struct xorb_source *source, bool is_soon, struct error *err);
static int source_gone(struct error *err);
static int source_unseen(const struct error *why, struct error *err);
static int check_run(
	struct xorb_view *view, const struct xorb_run *run, bool as_stored, struct error *err);
static void seek_record(struct xorb_source *source, struct xorb_view *view);

struct body_source *xorb_source_open(
	struct pack_store *packs, const struct xorb_source_params *params, struct error *err)
{
	const size_t count = params->count;
	ASSERT(params->runs != NULL && count >= 1);
	struct xorb_source *const source = memory_new(sizeof(*source));
	source->source = (struct body_source){.read = source_read,
		.let_wait = pack_store_is_far(packs) ? xorb_source_let_wait : NULL,
		.close = source_close};
	source->packs = packs;
	source->runs = memory_new_array(count + 1, sizeof(*source->runs));
	memcpy(source->runs, params->runs, count * sizeof(*source->runs));
	source->turns = memory_new(count + 1);
	source->forms = memory_new_array(count + 1, sizeof(*source->forms));
	source->count = count;
	source->as_stored = params->as_stored;
	source->skip = params->offset;
	source->remaining = params->length;
	for (size_t i = 0; i < count; i++) {
		source->turns[i] = (uint8_t)pack_store_hold(packs, &source->runs[i].pack);
		source->forms[i] = pack_store_form(packs, &source->runs[i].pack);
	}
	if (source_seek(source, params->is_soon && pack_store_is_far(packs), err) == 0)
		return &source->source;
	source_close(&source->source);
	return NULL;
}

struct body_source *xorb_source_open_inline(struct span content, uint64_t offset, uint64_t length)
{
	ASSERT(content.len <= INLINE_MAX_BYTES);
	uint8_t record[PACK_RECORD_HEADER_BYTES + INLINE_MAX_BYTES];
	const struct pack_entry entry = {
		.codec = CODEC_RAW, .stored = (uint32_t)content.len, .size = (uint32_t)content.len};
	pack_format_put_record_header(&entry, record);
	memcpy(record + PACK_RECORD_HEADER_BYTES, content.data, content.len);
	const struct span whole = span_of(record, PACK_RECORD_HEADER_BYTES + content.len);
	ASSERT(offset <= whole.len && length <= whole.len - offset);
	return assemble_open_inline(span_slice(whole, (size_t)offset, (size_t)length));
}

static ptrdiff_t source_read(
	struct body_source *base, uint8_t *into, size_t capacity, struct error *err)
{
	struct xorb_source *const source = (struct xorb_source *)base;
	size_t used = 0;
	while (!source->failed && used < capacity && source->remaining > 0) {
		const bool is_last = source->remaining <= capacity - used;
		const size_t room = is_last ? (size_t)source->remaining : capacity - used;
		source->wait.may_begin = used == 0;
		/* A record that does not fit after others is left for the next read, unless the
		 * range ends in it. */
		const ptrdiff_t len = source_step(
			source, into + used, room, used > 0 && !is_last, &source->error);
		if (len == SOURCE_WAIT)
			return used > 0 ? (ptrdiff_t)used : SOURCE_WAIT;
		if (len == 0)
			break;
		source->failed |= len < 0;
		used += len > 0 ? (size_t)len : 0;
		source->remaining -= len > 0 ? (uint64_t)len : 0;
	}
	if (used == 0 && source->failed) {
		*err = source->error;
		return -1;
	}
	return (ptrdiff_t)used;
}

static void xorb_source_let_wait(struct body_source *base, source_wake_fn *wake, void *owner)
{
	struct xorb_source *const source = (struct xorb_source *)base;
	pack_wait_let(&source->wait, source->packs, wake, owner);
}

static struct pack_wait *source_wait(struct xorb_source *source)
{
	return source->wait.store != NULL ? &source->wait : NULL;
}

/* Gives 1 to capacity bytes (capacity must not exceed the range), SOURCE_WAIT or -1. 0: no whole
 * record fits, and `may_leave` allows to leave it for the next read. */
static ptrdiff_t source_step(struct xorb_source *source, uint8_t *into, size_t capacity,
	bool may_leave, struct error *err)
{
	if (source->spare_at < source->spare_len)
		return (ptrdiff_t)give_spare(source, into, capacity);
	if (source->run == source->count)
		return error_set(err, ERROR_CORRUPT,
			"The records of a xorb have fewer bytes than were announced.");
	size_t len = 0;
	int result = source->skip == 0 ? read_records(source, into, capacity, &len, err) : 0;
	if (result == 0 && (len > 0 || may_leave))
		return (ptrdiff_t)len;
	if (result == 0)
		result = fill_spare(source, err);
	if (result != 0)
		return result == PACK_WAITS ? SOURCE_WAIT : -1;
	return (ptrdiff_t)give_spare(source, into, capacity);
}

static size_t give_spare(struct xorb_source *source, uint8_t *into, size_t capacity)
{
	const size_t rest = source->spare_len - source->spare_at;
	const size_t len = rest < capacity ? rest : capacity;
	memcpy(into, source->spare + source->spare_at, len);
	source->spare_at += len;
	return len;
}

/* Reads records straight into the caller's buffer. Gives 0 and *out_len 0 when the first one does
 * not fit; PACK_WAITS; -1. */
static int read_records(struct xorb_source *source, uint8_t *into, size_t capacity, size_t *out_len,
	struct error *err)
{
	const struct xorb_run *const run = &source->runs[source->run];
	ASSERT(source->run < source->count && source->chunk < run->count);
	const struct pack_run records = {.pack = run->pack,
		.first = run->first + source->chunk,
		.chunks = run->count - source->chunk};
	struct pack_read read = {.into = into, .capacity = capacity, .wait = source_wait(source)};
	const int result =
		pack_store_read_records(source->packs, &records, source->as_stored, &read, err);
	if (result == PACK_WAITS)
		return PACK_WAITS;
	*out_len = read.len;
	if (check_form(source, source->run, err) != 0)
		return -1;
	source->chunk += read.chunks;
	if (source->chunk == run->count) {
		source->chunk = 0;
		source->run++;
	}
	if (result == 0 || *out_len == 0)
		return result;
	source->failed = true; /* what came before the bad record is right */
	source->error = *err;
	return 0;
}

/* Whether the bytes that were just read have the form that was measured. */
static int check_form(const struct xorb_source *source, size_t run, struct error *err)
{
	return pack_store_form(source->packs, &source->runs[run].pack) == source->forms[run]
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "The records of a xorb were replaced during the download: ask again.");
}

static int fill_spare(struct xorb_source *source, struct error *err)
{
	if (source->spare == NULL)
		source->spare = memory_new(PACK_RECORD_MAX_BYTES);
	const struct pack_run record = {.pack = source->runs[source->run].pack,
		.first = source->runs[source->run].first + source->chunk,
		.chunks = 1};
	struct pack_read read = {.into = source->spare,
		.capacity = PACK_RECORD_MAX_BYTES,
		.wait = source_wait(source)};
	const int result =
		pack_store_read_records(source->packs, &record, source->as_stored, &read, err);
	if (result != 0 || check_form(source, source->run, err) != 0)
		return result == PACK_WAITS ? PACK_WAITS : -1;
	/* seek_record has measured a record of the same form */
	ASSERT(read.len > source->skip && read.len <= PACK_RECORD_MAX_BYTES);
	source->spare_at = (size_t)source->skip;
	source->spare_len = read.len;
	source->skip = 0;
	if (++source->chunk == source->runs[source->run].count) {
		source->chunk = 0;
		source->run++;
	}
	return 0;
}

static void source_close(struct body_source *base)
{
	struct xorb_source *const source = (struct xorb_source *)base;
	pack_wait_release(&source->wait);
	for (size_t i = 0; i < source->count; i++)
		pack_store_unhold(source->packs, &source->runs[i].pack, source->turns[i]);
	free(source->runs);
	free(source->turns);
	free(source->forms);
	free(source->spare);
	free(source);
}

/* Checks all runs and finds the first record of the range. */
static int source_seek(struct xorb_source *source, bool is_soon, struct error *err)
{
	bool is_there = false;
	for (size_t i = 0; i < source->count; i++) {
		const struct xorb_run *const run = &source->runs[i];
		struct error ignored = {0};
		struct xorb_view *const view = is_soon
			? xorb_view_open_near(source->packs, &run->pack, &ignored)
			: xorb_view_open(source->packs, &run->pack, &ignored);
		if (view == NULL)
			return source_unseen(&ignored, err);
		const int result = check_run(view, run, source->as_stored, err);
		if (result == 0 && !is_there) {
			is_there = source->skip < run->length;
			if (is_there)
				seek_record(source, view);
			else
				source->skip -= run->length;
			source->run += !is_there;
		}
		xorb_view_close(view);
		if (result != 0)
			return -1;
	}
	ASSERT(source->remaining == 0 || is_there);
	return 0;
}

static int source_gone(struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The chunks were moved or deleted.");
}

/* A pack that cannot be seen now may be there all the same. */
static int source_unseen(const struct error *why, struct error *err)
{
	if (why->kind != ERROR_NOT_READY && why->kind != ERROR_UPSTREAM && why->kind != ERROR_BUSY)
		return source_gone(err);
	*err = *why;
	return -1;
}

/* Whether every chunk of the run is present, and their records have the stated length. */
static int check_run(
	struct xorb_view *view, const struct xorb_run *run, bool as_stored, struct error *err)
{
	uint32_t present;
	const uint64_t end = (uint64_t)run->first + run->count;
	if (run->count == 0 || end > PACK_MAX_CHUNKS)
		return source_gone(err);
	return xorb_view_shown(view, run->first, (uint32_t)end, as_stored, &present) ==
				run->length &&
			present == run->count
		? 0
		: source_gone(err);
}

/* Moves to the record with byte source->skip of the run. */
static void seek_record(struct xorb_source *source, struct xorb_view *view)
{
	const struct xorb_run *const run = &source->runs[source->run];
	while (source->skip > 0) {
		const uint32_t chunk = run->first + source->chunk;
		const uint64_t len =
			xorb_view_shown(view, chunk, chunk + 1, source->as_stored, NULL);
		if (source->skip < len)
			return;
		source->skip -= len;
		source->chunk++;
	}
}
