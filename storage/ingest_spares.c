#include "storage/ingest_spares.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/ingest_internal.h"

enum { SPARE_BLOCKS = 32, SPARE_DRAINS = 8 }; /* 8 MiB; 3.5 MiB, up to 16 when they held long footers */

struct ingest_spares {
	struct lock lock;
	struct ingest_block *blocks;
	struct ingest_drain *drains;
	unsigned block_count;
	unsigned drain_count;
};

struct ingest_spares *ingest_spares_new(void)
{
	struct ingest_spares *const spares = memory_new(sizeof *spares);
	lock_init(&spares->lock, LOCK_INGEST_SPARES);
	return spares;
}

static void drain_free(struct ingest_drain *const drain)
{
	buffer_release(&drain->bytes);
	free(drain);
}

void ingest_spares_free(struct ingest_spares *const spares)
{
	if (spares == NULL)
		return;
	while (spares->blocks != NULL)
		free(ingest_spares_take_block(spares));
	while (spares->drains != NULL)
		drain_free(ingest_spares_take_drain(spares));
	lock_release(&spares->lock);
	free(spares);
}

struct ingest_block *ingest_spares_take_block(struct ingest_spares *const spares)
{
	lock_enter(&spares->lock);
	struct ingest_block *const block = spares->blocks;
	if (block != NULL) {
		spares->blocks = block->next;
		spares->block_count--;
	}
	lock_leave(&spares->lock);
	return block != NULL ? block : memory_grow(NULL, 1, sizeof *block); /* not cleared: that would take as long as filling it */
}

struct ingest_drain *ingest_spares_take_drain(struct ingest_spares *const spares)
{
	lock_enter(&spares->lock);
	struct ingest_drain *drain = spares->drains;
	if (drain != NULL) {
		spares->drains = drain->next;
		spares->drain_count--;
	}
	lock_leave(&spares->lock);
	if (drain == NULL) {
		drain = memory_new(sizeof *drain);
		xorb_builder_init_bytes(&drain->bytes);
	}
	return drain;
}

void ingest_spares_give_block(struct ingest_spares *const spares, struct ingest_block *const block)
{
	if (block == NULL)
		return;
	lock_enter(&spares->lock);
	const bool keep = spares->block_count < SPARE_BLOCKS;
	if (keep) {
		block->next = spares->blocks;
		spares->blocks = block;
		spares->block_count++;
	}
	lock_leave(&spares->lock);
	if (!keep)
		free(block);
}

void ingest_spares_give_drain(struct ingest_spares *const spares, struct ingest_drain *const drain)
{
	if (drain == NULL)
		return;
	buffer_reset(&drain->bytes);
	lock_enter(&spares->lock);
	const bool keep = spares->drain_count < SPARE_DRAINS;
	if (keep) {
		drain->next = spares->drains;
		spares->drains = drain;
		spares->drain_count++;
	}
	lock_leave(&spares->lock);
	if (!keep)
		drain_free(drain);
}
