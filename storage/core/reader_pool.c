/* Each loan has a number that rises by one. A mark is the next number, and it is passed once no
 * loan has a lower one. */
#include "storage/core/reader_pool.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum { IDLE_MAX = 32 };

struct loan {
	struct db *db;
	uint64_t number;
};

struct reader_pool {
	struct lock lock; /* guards what follows */
	struct db *idle[IDLE_MAX];
	size_t idle_count;
	struct loan *loans;
	size_t loan_count;
	size_t loan_capacity;
	uint64_t next_number;
};

static void note_taken(struct reader_pool *pool, struct db *reader, uint64_t number);
static void note_given(struct reader_pool *pool, const struct db *reader);

struct reader_pool *reader_pool_new(void)
{
	struct reader_pool *const pool = memory_new(sizeof(*pool));
	lock_init(&pool->lock, LOCK_READERS);
	return pool;
}

void reader_pool_free(struct reader_pool *pool)
{
	ASSERT(pool->loan_count == 0);
	reader_pool_close_idle(pool);
	free(pool->loans);
	lock_release(&pool->lock);
	free(pool);
}

void reader_pool_close_idle(struct reader_pool *pool)
{
	while (pool->idle_count > 0)
		db_close(pool->idle[--pool->idle_count]);
}

struct db *reader_pool_take(struct reader_pool *pool, const char *path, struct error *err)
{
	ASSERT(path != NULL);
	lock_enter(&pool->lock);
	struct db *reader = pool->idle_count == 0 ? NULL : pool->idle[--pool->idle_count];
	const uint64_t number = pool->next_number++;
	if (reader != NULL)
		note_taken(pool, reader, number);
	lock_leave(&pool->lock);
	if (reader != NULL)
		return reader;
	reader = db_open(path, DB_READ, err);
	lock_enter(&pool->lock);
	if (reader != NULL)
		note_taken(pool, reader, pool->next_number++);
	lock_leave(&pool->lock);
	return reader;
}

void reader_pool_give(struct reader_pool *pool, struct db *reader)
{
	if (reader == NULL)
		return;
	ASSERT(!db_in_transaction(reader));
	lock_enter(&pool->lock);
	note_given(pool, reader);
	const bool kept = pool->idle_count < IDLE_MAX;
	if (kept)
		pool->idle[pool->idle_count++] = reader;
	lock_leave(&pool->lock);
	if (!kept)
		db_close(reader);
}

uint64_t reader_pool_mark(struct reader_pool *pool)
{
	lock_enter(&pool->lock);
	const uint64_t mark = pool->next_number;
	lock_leave(&pool->lock);
	return mark;
}

bool reader_pool_passed(struct reader_pool *pool, uint64_t mark)
{
	bool passed = true;
	lock_enter(&pool->lock);
	for (size_t i = 0; i < pool->loan_count && passed; i++)
		passed = pool->loans[i].number >= mark;
	lock_leave(&pool->lock);
	return passed;
}

static void note_taken(struct reader_pool *pool, struct db *reader, uint64_t number)
{
	lock_assert_held(&pool->lock);
	pool->loans = memory_make_room(
		pool->loans, pool->loan_count, &pool->loan_capacity, sizeof(*pool->loans));
	pool->loans[pool->loan_count++] = (struct loan){reader, number};
}

static void note_given(struct reader_pool *pool, const struct db *reader)
{
	lock_assert_held(&pool->lock);
	size_t at = 0;
	while (at < pool->loan_count && pool->loans[at].db != reader)
		at++;
	ASSERT(at < pool->loan_count);
	pool->loans[at] = pool->loans[--pool->loan_count];
}
