/* The tail is cut first. When it begins before the head's end, both cuts lie in one chunk, and the
 * whole range is head. The sizes of chunks come from the indexes of packs, so they are compared
 * with the segments: an index that does not match is corrupt. */
#include "storage/uploads/upload_cut.h"

struct position {       /* of the chunk in which a byte of a segment lies */
	uint32_t chunk; /* counted from the segment's first */
	uint64_t start; /* byte of the segment at which it begins */
	uint64_t size;  /* in bytes; 0 behind the last chunk */
};

static int cut_tail(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err);
static uint64_t sum_bytes(const struct segment *segments, size_t count);
static int find_chunk(struct pack_store *packs, const struct segment *segment, uint64_t offset,
	struct position *out, struct error *err);
static int bad_chunks(uint64_t bytes, const struct segment *segment, struct error *err);
static int cut_head(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err);

int upload_cut_range(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err)
{
	*out = (struct upload_cut){0};
	if (range->segment_count == 0)
		return 0;
	if (cut_tail(packs, range, out, err) != 0 || cut_head(packs, range, out, err) != 0)
		return -1;
	size_t from = 0;
	size_t count = range->segment_count;
	if (count > 0 && range->segments[count - 1].count == 0)
		count--;
	if (count > 0 && range->segments[0].count == 0)
		from++;
	out->segments = range->segments + from;
	out->segment_count = count - from;
	const uint64_t sum = out->head + out->tail + sum_bytes(out->segments, out->segment_count);
	if (sum != range->length)
		return error_set(err, ERROR_CORRUPT,
			"The chunks of a range have %llu bytes, not %llu as the catalog says.",
			(unsigned long long)sum, (unsigned long long)range->length);
	return 0;
}

/* Lets the last segment end with the last whole chunk. */
static int cut_tail(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err)
{
	struct segment *const last = &range->segments[range->segment_count - 1];
	const uint64_t excess =
		sum_bytes(range->segments, range->segment_count) - range->skip - range->length;
	struct position at;
	if (excess == 0)
		return 0;
	if (find_chunk(packs, last, last->bytes - excess, &at, err) != 0)
		return -1;
	out->tail = last->bytes - excess - at.start;
	last->count = at.chunk;
	last->bytes = at.start;
	return 0;
}

static uint64_t sum_bytes(const struct segment *segments, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += segments[i].bytes;
	return sum;
}

/* Finds the chunk in which byte `offset` of the segment lies. */
static int find_chunk(struct pack_store *packs, const struct segment *segment, uint64_t offset,
	struct position *out, struct error *err)
{
	struct chunk_entry entries[PACK_RUN_CHUNKS];
	*out = (struct position){0};
	while (out->chunk < segment->count) {
		const struct pack_run run = {.pack = segment->pack,
			.first = segment->first + out->chunk,
			.chunks = segment->count - out->chunk};
		size_t count = 0;
		if (pack_store_chunk_entries(packs, &run, entries, PACK_RUN_CHUNKS, &count, err) !=
			0)
			return -1;
		for (size_t i = 0; i < count; i++) {
			out->size = entries[i].size;
			if (offset < out->start + out->size)
				return 0;
			out->start += out->size;
			out->chunk++;
		}
	}
	out->size = 0;
	if (offset == out->start)
		return 0;
	return bad_chunks(out->start, segment, err);
}

static int bad_chunks(uint64_t bytes, const struct segment *segment, struct error *err)
{
	return error_set(err, ERROR_CORRUPT,
		"A segment's chunks have %llu bytes, not %llu as the catalog says.",
		(unsigned long long)bytes, (unsigned long long)segment->bytes);
}

/* Lets the first segment begin with the first whole chunk. */
static int cut_head(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err)
{
	struct segment *const first = &range->segments[0];
	struct position at;
	if (range->skip == 0)
		return 0;
	if (range->skip > first->bytes) { /* the range lies within one chunk */
		*out = (struct upload_cut){.head = range->length};
		range->segment_count = 0;
		return 0;
	}
	if (find_chunk(packs, first, range->skip, &at, err) != 0)
		return -1;
	const bool is_cut = at.start < range->skip;
	const uint64_t dropped = is_cut ? at.start + at.size : at.start;
	if (dropped > first->bytes)
		return bad_chunks(dropped, first, err);
	out->head = dropped - range->skip;
	first->first += at.chunk + is_cut;
	first->count -= at.chunk + is_cut;
	first->bytes -= dropped;
	return 0;
}
