/* A queue of streams with blocks that no helper has taken, and a few batches: jobs that take from
 * the front of the queue while work is due. A stream is out of the queue while one of its blocks is
 * digested, which keeps its blocks in order. */
#include "base/thread/md5_pool.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/lock.h"

enum { BATCHES = 8 };

struct md5_batch {
	struct helper_job job;
	struct helper_lane lane;
	struct md5_pool *pool;
	struct helpers *helpers;
	bool is_running;
};

struct md5_pool {
	struct lock lock; /* guards everything below and the streams' queues */
	struct md5_pool_stream *first;
	struct md5_pool_stream *last;
	size_t open;    /* streams that have begun and not ended */
	size_t waiting; /* streams in the queue */
	size_t urgent;  /* urgent streams in the queue */
	size_t running; /* batches that run */
	size_t worth;   /* number of streams from which side by side is faster */
	struct md5_batch batches[BATCHES];
};

struct taken {
	size_t count;
	struct md5_pool_stream *streams[MD5_LANES];
	struct md5_pool_job *jobs[MD5_LANES];
};

static void md5_pool_batch_run(struct helper_job *job);
static void pool_take(struct md5_pool *pool, struct taken *taken);
static bool pool_is_quiet(const struct md5_pool *pool);
static struct md5_pool_stream *pool_dequeue(struct md5_pool *pool);
static void batch_digest(const struct taken *taken);
static void pool_give_back(struct md5_pool *pool, const struct taken *taken);
static void pool_enqueue(struct md5_pool *pool, struct md5_pool_stream *stream);
static bool pool_is_due(const struct md5_pool *pool);
static void pool_hurry(struct md5_pool *pool, struct md5_pool_stream *queued);
static void pool_changed(struct md5_pool *pool, struct helpers *helpers);
static struct md5_batch *pool_start_batch(struct md5_pool *pool, struct helpers *helpers);

struct md5_pool *md5_pool_new(void)
{
	struct md5_pool *const pool = memory_new(sizeof(*pool));
	lock_init(&pool->lock, LOCK_MD5_POOL);
	pool->worth = md5_lanes_worth();
	for (size_t i = 0; i < BATCHES; i++) {
		pool->batches[i].job.run = md5_pool_batch_run;
		pool->batches[i].pool = pool;
	}
	return pool;
}

void md5_pool_free(struct md5_pool *pool)
{
	if (pool == NULL)
		return;
	ASSERT(pool->first == NULL && pool->running == 0 && pool->open == 0);
	lock_release(&pool->lock);
	free(pool);
}

void md5_pool_submit(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream,
	struct md5_pool_job *job)
{
	ASSERT(job->done != NULL && stream->md5 != NULL);
	job->next = NULL;
	lock_enter(&pool->lock);
	const bool is_queued = stream->first != NULL && !stream->is_taken;
	if (stream->first != NULL)
		stream->last->next = job;
	else
		stream->first = job;
	stream->last = job;
	stream->jobs++;
	if (!stream->is_open && !stream->has_ended) {
		stream->is_open = true;
		pool->open++;
	}
	if (!is_queued && !stream->is_taken)
		pool_enqueue(pool, stream);
	else if (is_queued && stream->jobs >= MD5_POOL_PATIENCE)
		pool_hurry(pool, stream);
	pool_changed(pool, helpers);
}

void md5_pool_end(struct md5_pool *pool, struct helpers *helpers, struct md5_pool_stream *stream)
{
	lock_enter(&pool->lock);
	pool->open -= stream->is_open;
	stream->is_open = false;
	stream->has_ended = true;
	if (stream->first != NULL && !stream->is_taken)
		pool_hurry(pool, stream);
	pool_changed(pool, helpers);
}

/* Digests one round of blocks. Submits itself again when more is due, so that other jobs of the
 * helpers come in between. */
static void md5_pool_batch_run(struct helper_job *job)
{
	struct md5_batch *const batch = (struct md5_batch *)job;
	struct md5_pool *const pool = batch->pool;
	struct taken taken;
	pool_take(pool, &taken);
	batch_digest(&taken);
	pool_give_back(pool, &taken);
	lock_enter(&pool->lock);
	const bool goes_on = pool_is_due(pool);
	if (!goes_on) {
		batch->is_running = false;
		pool->running--;
	}
	lock_leave(&pool->lock);
	if (goes_on)
		helpers_submit(batch->helpers, &batch->lane, &batch->job);
}

static void pool_take(struct md5_pool *pool, struct taken *taken)
{
	lock_enter(&pool->lock);
	/* when it is quiet, another helper takes the next stream */
	const size_t most = pool_is_quiet(pool) ? 1 : MD5_LANES;
	for (taken->count = 0; taken->count < most && pool->first != NULL; taken->count++) {
		struct md5_pool_stream *const stream = pool_dequeue(pool);
		struct md5_pool_job *const job = stream->first;
		stream->first = job->next;
		if (stream->first == NULL)
			stream->last = NULL;
		stream->jobs--;
		stream->is_taken = true;
		taken->streams[taken->count] = stream;
		taken->jobs[taken->count] = job;
	}
	lock_leave(&pool->lock);
}

/* True when there are so few streams that each has a helper of its own. */
static bool pool_is_quiet(const struct md5_pool *pool)
{
	return pool->open < pool->worth && pool->waiting < pool->worth;
}

static struct md5_pool_stream *pool_dequeue(struct md5_pool *pool)
{
	lock_assert_held(&pool->lock);
	struct md5_pool_stream *const stream = pool->first;
	ASSERT(stream != NULL && stream->first != NULL && pool->waiting > 0);
	pool->first = stream->next;
	if (pool->first == NULL)
		pool->last = NULL;
	pool->waiting--;
	pool->urgent -= stream->is_urgent;
	stream->is_urgent = false;
	return stream;
}

static void batch_digest(const struct taken *taken)
{
	struct md5_stream *streams[MD5_LANES];
	struct span bytes[MD5_LANES];
	for (size_t i = 0; i < taken->count; i++) {
		streams[i] = taken->streams[i]->md5;
		bytes[i] = taken->jobs[i]->bytes;
	}
	md5_streams_add(streams, bytes, taken->count);
}

/* Puts streams with more blocks back into the queue. Does not touch a stream after its job is done,
 * because that job may free it. */
static void pool_give_back(struct md5_pool *pool, const struct taken *taken)
{
	lock_enter(&pool->lock);
	for (size_t i = 0; i < taken->count; i++) {
		struct md5_pool_stream *const stream = taken->streams[i];
		stream->is_taken = false;
		if (stream->first != NULL)
			pool_enqueue(pool, stream);
	}
	lock_leave(&pool->lock);
	for (size_t i = 0; i < taken->count; i++)
		taken->jobs[i]->done(taken->jobs[i]);
}

static void pool_enqueue(struct md5_pool *pool, struct md5_pool_stream *stream)
{
	lock_assert_held(&pool->lock);
	ASSERT(stream->first != NULL && !stream->is_taken);
	stream->next = NULL;
	if (pool->last != NULL)
		pool->last->next = stream;
	else
		pool->first = stream;
	pool->last = stream;
	pool->waiting++;
	stream->is_urgent = stream->has_ended || stream->jobs >= MD5_POOL_PATIENCE;
	pool->urgent += stream->is_urgent;
}

static bool pool_is_due(const struct md5_pool *pool)
{
	return pool->waiting > 0 &&
		(pool_is_quiet(pool) || pool->urgent > 0 || pool->waiting >= MD5_LANES ||
			4 * pool->waiting >= 3 * pool->open);
}

static void pool_hurry(struct md5_pool *pool, struct md5_pool_stream *queued)
{
	pool->urgent += !queued->is_urgent;
	queued->is_urgent = true;
}

/* Leaves the lock, then submits a batch when one is due. */
static void pool_changed(struct md5_pool *pool, struct helpers *helpers)
{
	struct md5_batch *const batch = pool_start_batch(pool, helpers);
	lock_leave(&pool->lock);
	if (batch != NULL)
		helpers_submit(helpers, &batch->lane, &batch->job);
}

/* Returns a batch that must be submitted now, or NULL. */
static struct md5_batch *pool_start_batch(struct md5_pool *pool, struct helpers *helpers)
{
	lock_assert_held(&pool->lock);
	const bool may_join =
		pool->waiting >= MD5_LANES || (pool_is_quiet(pool) && pool->running < pool->worth);
	if (!pool_is_due(pool) || pool->running == BATCHES || (pool->running > 0 && !may_join))
		return NULL;
	struct md5_batch *batch = pool->batches;
	while (batch->is_running)
		batch++;
	ASSERT(batch < pool->batches + BATCHES);
	batch->is_running = true;
	batch->helpers = helpers;
	pool->running++;
	return batch;
}
