/* An item of work is a whole tensor, or one block of a split tensor. Items are given out in rising
 * order, and each item that was given out ends or fails. So a thread that waits for its turn at a
 * tensor's digest always waits for work that another thread is doing, and no deadlock is
 * possible. */
#include "weights/model/tensor_pass.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "weights/model/parallel.h"

enum { SPLIT_LEAST_BLOCKS = 4, SHARES_PER_WORKER = 4, SIDES = 2 };

struct item {
	size_t tensor;
	uint64_t block;
	uint64_t count;
};

/* The turns at the digests of one split tensor. */
struct turn {
	uint64_t failed_at; /* the first block that failed, counted from 1; 0: none */
	uint64_t blocks;
	uint64_t at[SIDES]; /* the block that is hashed next */
	struct xxh3_stream *streams[SIDES];
};

struct worker {
	struct tensor_cursor *cursors[SIDES];
	struct xxh3_stream *streams[SIDES];
};

struct run {
	const struct tensor_pass *pass;
	struct tensor_source *sources[SIDES];
	struct digest128 *digests[SIDES]; /* NULL: not hashed */
	struct item *items;
	size_t item_count;
	struct turn *turns; /* one for each tensor; its `blocks` is 0 unless the tensor is split */
	struct worker *workers;
	struct lock lock;
	struct lock_condition turned;
};

static uint64_t all_blocks(const struct tensor_pass *pass);
static void list_items(struct run *run, unsigned workers);
static bool is_split(const struct tensor_pass *pass, size_t tensor, uint64_t fair_share);
static void make_workers(struct run *run, unsigned count);
static int tensor_pass_run_item(
	void *state, size_t number, unsigned worker_number, struct error *err);
static int begin_item(
	struct run *run, const struct item *item, struct worker *worker, struct error *err);
static int run_blocks(struct run *run, const struct item *item, unsigned number, struct error *err);
static int take_block(struct run *run, const struct worker *worker, struct tensor_block *block,
	struct error *err);
static int use_block(
	struct run *run, unsigned number, const struct tensor_block *block, struct error *err);
static int hash_block(struct run *run, const struct worker *worker,
	const struct tensor_block *block, struct error *err);
static bool is_hashed(const struct run *run, size_t tensor, unsigned side);
static int hash_in_turn(struct run *run, size_t tensor, unsigned side, uint64_t number,
	struct span bytes, struct error *err);
static void fail_turn(struct run *run, const struct item *item);
static void release(struct run *run, unsigned workers);
static void copy_same(const struct tensor_pass *pass);

unsigned tensor_pass_workers(const struct tensor_pass *pass)
{
	const size_t most =
		pass->keeps_tensors ? schema_count(pass->next->schema) : (size_t)all_blocks(pass);
	return parallel_workers(pass->threads, most);
}

int tensor_pass_run(const struct tensor_pass *pass, struct error *err)
{
	ASSERT(pass->next != NULL);
	ASSERT(pass->same == NULL || pass->known_base != NULL || pass->base_digests != NULL);
	ASSERT(pass->base != NULL || pass->base_digests == NULL);
	const unsigned workers = tensor_pass_workers(pass);
	struct run run = {
		.pass = pass,
		.sources = {pass->base, pass->next},
		.digests = {pass->known_base == NULL ? pass->base_digests : NULL,
			pass->next_digests},
	};
	lock_init(&run.lock, LOCK_TENSOR_PASS);
	lock_condition_init(&run.turned);
	list_items(&run, workers);
	make_workers(&run, workers);
	const int result = parallel_run(workers, run.item_count, tensor_pass_run_item, &run, err);
	release(&run, workers);
	if (result == 0)
		copy_same(pass);
	return result;
}

static uint64_t all_blocks(const struct tensor_pass *pass)
{
	uint64_t blocks = 0;
	for (size_t i = 0; i < schema_count(pass->next->schema); i++)
		blocks += tensor_source_blocks(pass->next, i);
	return blocks;
}

static void list_items(struct run *run, unsigned workers)
{
	const struct tensor_pass *const pass = run->pass;
	const size_t count = schema_count(pass->next->schema);
	const uint64_t total = all_blocks(pass);
	const uint64_t fair_share =
		workers > 1 ? total / (workers * SHARES_PER_WORKER) : UINT64_MAX;
	run->items = memory_new_array((size_t)total + count, sizeof(run->items[0]));
	run->turns = memory_new_array(count, sizeof(run->turns[0]));
	for (size_t i = 0; i < count; i++) {
		const uint64_t blocks = tensor_source_blocks(pass->next, i);
		if (!is_split(pass, i, fair_share)) {
			run->items[run->item_count++] = (struct item){.tensor = i, .count = blocks};
			continue;
		}
		run->turns[i].blocks = blocks;
		for (uint64_t block = 0; block < blocks; block++)
			run->items[run->item_count++] =
				(struct item){.tensor = i, .block = block, .count = 1};
	}
}

static bool is_split(const struct tensor_pass *pass, size_t tensor, uint64_t fair_share)
{
	const uint64_t blocks = tensor_source_blocks(pass->next, tensor);
	return !pass->keeps_tensors && blocks >= SPLIT_LEAST_BLOCKS && blocks > fair_share &&
		tensor_source_splits(pass->next, tensor) &&
		(pass->base == NULL || tensor_source_splits(pass->base, tensor));
}

static void make_workers(struct run *run, unsigned count)
{
	run->workers = memory_new_array(count, sizeof(run->workers[0]));
	for (unsigned i = 0; i < count; i++)
		for (unsigned side = 0; side < SIDES; side++)
			run->workers[i].streams[side] =
				run->digests[side] != NULL ? xxh3_stream_new() : NULL;
}

static int tensor_pass_run_item(
	void *state, size_t number, unsigned worker_number, struct error *err)
{
	struct run *const run = state;
	ASSERT(number < run->item_count);
	const struct item *const item = &run->items[number];
	struct worker *const worker = &run->workers[worker_number];
	if (begin_item(run, item, worker, err) != 0 ||
		run_blocks(run, item, worker_number, err) != 0) {
		fail_turn(run, item);
		return -1;
	}
	for (unsigned side = 0; side < SIDES && run->turns[item->tensor].blocks == 0; side++)
		if (is_hashed(run, item->tensor, side))
			run->digests[side][item->tensor] =
				xxh3_stream_result(worker->streams[side]);
	return 0;
}

static int begin_item(
	struct run *run, const struct item *item, struct worker *worker, struct error *err)
{
	for (unsigned side = 0; side < SIDES; side++) {
		if (run->sources[side] != NULL &&
			tensor_source_move(run->sources[side], &worker->cursors[side], item->tensor,
				item->block, err) != 0)
			return -1;
		if (worker->streams[side] != NULL)
			xxh3_stream_reset(worker->streams[side]);
	}
	return 0;
}

static int run_blocks(struct run *run, const struct item *item, unsigned number, struct error *err)
{
	const struct worker *const worker = &run->workers[number];
	const uint64_t block_bytes = tensor_source_block_bytes(run->pass->next, item->tensor);
	for (uint64_t i = 0; i < item->count; i++) {
		struct tensor_block block = {.tensor = item->tensor,
			.number = item->block + i,
			.at = (item->block + i) * block_bytes};
		if (take_block(run, worker, &block, err) != 0 ||
			use_block(run, number, &block, err) != 0 ||
			work_watch_step(run->pass->watch, block.next.len, err) != 0)
			return -1;
	}
	return 0;
}

static int take_block(
	struct run *run, const struct worker *worker, struct tensor_block *block, struct error *err)
{
	struct span *const sides[SIDES] = {&block->base, &block->next};
	for (unsigned side = 0; side < SIDES; side++) {
		if (run->sources[side] == NULL)
			continue;
		const int taken = tensor_cursor_next(worker->cursors[side], sides[side], err);
		if (taken < 0)
			return -1;
		/* The schema gives the count of blocks. A source must not end early, whatever its
		 * bytes are. */
		ASSERT(taken == 1);
	}
	ASSERT(run->sources[0] == NULL || block->base.len == block->next.len);
	return 0;
}

static int use_block(
	struct run *run, unsigned number, const struct tensor_block *block, struct error *err)
{
	const struct tensor_pass *const pass = run->pass;
	const struct worker *const worker = &run->workers[number];
	if (pass->hashes_first && hash_block(run, worker, block, err) != 0)
		return -1;
	if (pass->block != NULL && pass->block(pass->state, number, block, err) != 0)
		return -1;
	return pass->hashes_first ? 0 : hash_block(run, worker, block, err);
}

static int hash_block(struct run *run, const struct worker *worker,
	const struct tensor_block *block, struct error *err)
{
	const struct span sides[SIDES] = {block->base, block->next};
	const bool split = run->turns[block->tensor].blocks > 0;
	for (unsigned side = 0; side < SIDES; side++) {
		if (!is_hashed(run, block->tensor, side))
			continue;
		if (!split)
			xxh3_stream_add(worker->streams[side], sides[side]);
		else if (hash_in_turn(run, block->tensor, side, block->number, sides[side], err) !=
			0)
			return -1;
	}
	return 0;
}

static bool is_hashed(const struct run *run, size_t tensor, unsigned side)
{
	return run->digests[side] != NULL &&
		(side == 0 || run->pass->same == NULL || !run->pass->same[tensor]);
}

/* Waits until all blocks before `number` are hashed, then hashes this one. Fails when an earlier
 * block failed. */
static int hash_in_turn(struct run *run, size_t tensor, unsigned side, uint64_t number,
	struct span bytes, struct error *err)
{
	struct turn *const turn = &run->turns[tensor];
	ASSERT(number < turn->blocks);
	lock_enter(&run->lock);
	/* The failure of a later block does not end this one, because the first failure counts. */
	while (turn->at[side] != number && (turn->failed_at == 0 || turn->failed_at > number + 1))
		lock_wait(&run->lock, &run->turned);
	const bool failed = turn->at[side] != number;
	if (!failed && number == 0)
		turn->streams[side] = xxh3_stream_new();
	lock_leave(&run->lock);
	if (failed)
		return error_set(err, ERROR_IO, "an earlier part of the tensor failed");
	xxh3_stream_add(turn->streams[side], bytes);
	if (number + 1 == turn->blocks) {
		run->digests[side][tensor] = xxh3_stream_result(turn->streams[side]);
		xxh3_stream_free(turn->streams[side]);
		turn->streams[side] = NULL;
	}
	lock_enter(&run->lock);
	turn->at[side]++;
	lock_broadcast(&run->turned);
	lock_leave(&run->lock);
	return 0;
}

static void fail_turn(struct run *run, const struct item *item)
{
	struct turn *const turn = &run->turns[item->tensor];
	lock_enter(&run->lock);
	if (turn->failed_at == 0 || item->block + 1 < turn->failed_at)
		turn->failed_at = item->block + 1;
	lock_broadcast(&run->turned);
	lock_leave(&run->lock);
}

static void release(struct run *run, unsigned workers)
{
	for (unsigned side = 0; side < SIDES; side++) {
		for (unsigned i = 0; i < workers; i++) {
			tensor_cursor_close(run->workers[i].cursors[side]);
			if (run->workers[i].streams[side] != NULL)
				xxh3_stream_free(run->workers[i].streams[side]);
		}
		for (size_t i = 0; i < schema_count(run->pass->next->schema); i++)
			if (run->turns[i].streams[side] != NULL)
				xxh3_stream_free(run->turns[i].streams[side]);
	}
	free(run->workers);
	free(run->items);
	free(run->turns);
	lock_release(&run->lock);
	lock_condition_release(&run->turned);
}

static void copy_same(const struct tensor_pass *pass)
{
	const struct digest128 *const base =
		pass->known_base != NULL ? pass->known_base : pass->base_digests;
	for (size_t i = 0; pass->same != NULL && pass->next_digests != NULL &&
		i < schema_count(pass->next->schema);
		i++)
		if (pass->same[i])
			pass->next_digests[i] = base[i];
}
