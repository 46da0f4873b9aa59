/* Two stacks of fixed depth, so that the memory that was used last, whose pages are mapped, is used
 * next. A new block of 256 KiB costs a page fault for each page. */
#include "storage/ingest/ingest_spares.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/ingest/ingest_internal.h"

/* 8 MiB of blocks; 3.5 MiB of drains, up to 16 MiB when they had long footers */
enum { SPARE_BLOCKS = 32, SPARE_DRAINS = 8 };

struct ingest_spares {
	struct lock lock;
	struct ingest_block *blocks;
	struct ingest_drain *drains;
	unsigned block_count;
	unsigned drain_count;
};

static void drain_free(struct ingest_drain *drain);
static struct ingest_block *spare_block(struct ingest_spares *spares);
static struct ingest_drain *spare_drain(struct ingest_spares *spares);
static bool keep_block(struct ingest_spares *spares, struct ingest_block *block);
static bool keep_drain(struct ingest_spares *spares, struct ingest_drain *drain);

struct ingest_spares *ingest_spares_new(void)
{
	struct ingest_spares *const spares = memory_new(sizeof(*spares));
	lock_init(&spares->lock, LOCK_INGEST_SPARES);
	return spares;
}

void ingest_spares_free(struct ingest_spares *spares)
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

struct ingest_block *ingest_spares_take_block(struct ingest_spares *spares)
{
	struct ingest_block *const block = spares == NULL ? NULL : spare_block(spares);
	/* not zeroed, which would take as long as filling it */
	return block != NULL ? block : memory_grow(NULL, 1, sizeof(*block));
}

struct ingest_drain *ingest_spares_take_drain(struct ingest_spares *spares)
{
	struct ingest_drain *drain = spares == NULL ? NULL : spare_drain(spares);
	if (drain == NULL) {
		drain = memory_new(sizeof(*drain));
		xorb_builder_init_bytes(&drain->bytes);
	}
	return drain;
}

void ingest_spares_give_block(struct ingest_spares *spares, struct ingest_block *block)
{
	if (block != NULL && (spares == NULL || !keep_block(spares, block)))
		free(block);
}

void ingest_spares_give_drain(struct ingest_spares *spares, struct ingest_drain *drain)
{
	if (drain != NULL && (spares == NULL || !keep_drain(spares, drain)))
		drain_free(drain);
}

static void drain_free(struct ingest_drain *drain)
{
	buffer_release(&drain->bytes);
	free(drain);
}

static struct ingest_block *spare_block(struct ingest_spares *spares)
{
	lock_enter(&spares->lock);
	struct ingest_block *const block = spares->blocks;
	if (block != NULL) {
		ASSERT(spares->block_count > 0);
		spares->blocks = block->next;
		spares->block_count--;
	}
	lock_leave(&spares->lock);
	return block;
}

static struct ingest_drain *spare_drain(struct ingest_spares *spares)
{
	lock_enter(&spares->lock);
	struct ingest_drain *const drain = spares->drains;
	if (drain != NULL) {
		ASSERT(spares->drain_count > 0);
		spares->drains = drain->next;
		spares->drain_count--;
	}
	lock_leave(&spares->lock);
	return drain;
}

static bool keep_block(struct ingest_spares *spares, struct ingest_block *block)
{
	lock_enter(&spares->lock);
	const bool keeps = spares->block_count < SPARE_BLOCKS;
	if (keeps) {
		block->next = spares->blocks;
		spares->blocks = block;
		spares->block_count++;
	}
	lock_leave(&spares->lock);
	return keeps;
}

static bool keep_drain(struct ingest_spares *spares, struct ingest_drain *drain)
{
	buffer_reset(&drain->bytes);
	lock_enter(&spares->lock);
	const bool keeps = spares->drain_count < SPARE_DRAINS;
	if (keeps) {
		drain->next = spares->drains;
		spares->drains = drain;
		spares->drain_count++;
	}
	lock_leave(&spares->lock);
	return keeps;
}
