#include "weights/tensor_changes.h"

#include "weights/element_scan.h"

enum { ELEMENT_BYTES = 2, BLOCK_BYTES = ELEMENT_SCAN_BLOCK * ELEMENT_BYTES };

uint64_t tensor_changes_blocks(const struct tensor_changes *const changes)
{
	return (changes->next.len + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

static size_t scan_block(const struct tensor_changes *const changes, const uint64_t block, uint16_t *const positions)
{
	const size_t from = (size_t)block * BLOCK_BYTES;
	const struct span base = span_slice(changes->base, from, BLOCK_BYTES);
	const struct span next = span_slice(changes->next, from, BLOCK_BYTES);
	return element_scan(base.data, next.data, next.len / ELEMENT_BYTES, positions);
}

static void hash_block(const struct tensor_changes *const changes, const uint64_t block, const struct tensor_hashes *const hashes)
{
	const size_t from = (size_t)block * BLOCK_BYTES;
	if (hashes->base != NULL)
		xxh3_stream_add(hashes->base, span_slice(changes->base, from, BLOCK_BYTES));
	if (hashes->next != NULL)
		xxh3_stream_add(hashes->next, span_slice(changes->next, from, BLOCK_BYTES));
}

/* Gives the smallest position that may follow. */
static uint64_t note_gaps(struct tensor_changes *const changes, const uint64_t block, const uint16_t *const positions, const size_t count,
	uint64_t next)
{
	uint64_t largest = changes->largest_gap;
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = block * ELEMENT_SCAN_BLOCK + positions[i];
		largest = position - next > largest ? position - next : largest;
		next = position + 1;
	}
	changes->largest_gap = largest;
	return next;
}

static void drop_kept(struct tensor_changes *const changes)
{
	buffer_release(&changes->positions);
	buffer_release(&changes->counts);
	changes->kept = false;
}

static void keep(struct tensor_changes *const changes, const uint16_t *const positions, const size_t count, _Atomic int64_t *const budget)
{
	const uint32_t block_count = (uint32_t)count;
	const size_t bytes = count * sizeof(positions[0]);
	if (!changes->kept)
		return;
	buffer_add(&changes->positions, positions, bytes);
	buffer_add(&changes->counts, &block_count, sizeof(block_count));
	const int64_t cost = (int64_t)(bytes + sizeof(block_count));
	if (atomic_fetch_sub(budget, cost) < cost || buffer_failed(&changes->positions) || buffer_failed(&changes->counts))
		drop_kept(changes);
}

void tensor_changes_find(struct tensor_changes *const changes, const struct span base, const struct span next,
	const struct tensor_hashes *const hashes, _Atomic int64_t *const budget, uint16_t *const scratch)
{
	ASSERT(base.len == next.len && next.len % ELEMENT_BYTES == 0);
	*changes = (struct tensor_changes){.base = base, .next = next, .kept = true};
	buffer_init(&changes->positions, next.len + 1);
	buffer_init(&changes->counts, (size_t)tensor_changes_blocks(changes) * sizeof(uint32_t) + 1);
	uint64_t follow = 0;
	for (uint64_t block = 0; block < tensor_changes_blocks(changes); block++) {
		const size_t count = scan_block(changes, block, scratch);
		hash_block(changes, block, hashes);
		follow = note_gaps(changes, block, scratch, count, follow);
		keep(changes, scratch, count, budget);
		changes->count += count;
	}
}

void tensor_changes_release(struct tensor_changes *const changes)
{
	drop_kept(changes);
}

const uint16_t *tensor_changes_next(const struct tensor_changes *const changes, struct tensor_changes_cursor *const cursor,
	uint16_t *const scratch, size_t *const out_count)
{
	ASSERT(cursor->block < tensor_changes_blocks(changes));
	const uint64_t block = cursor->block++;
	if (!changes->kept) {
		*out_count = scan_block(changes, block, scratch);
		return scratch;
	}
	const size_t at = cursor->kept_at;
	*out_count = ((const uint32_t *)changes->counts.data)[block];
	cursor->kept_at += *out_count;
	return *out_count > 0 ? (const uint16_t *)changes->positions.data + at : scratch;
}
