#include "client/transfer/pool.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"

struct pool {
	const struct pool_params *params;
	atomic_bool failed;
	struct lock lock;
	struct error first; /* the first failure, guarded by lock; kind none: there is none */
};

static void *pool_work(void *argument);
static void pool_fail(struct pool *pool, const struct error *err);
static void work_with(struct pool *pool, struct remote *remote);

int pool_run(const struct pool_params *params, struct error *err)
{
	ASSERT(params->piece != NULL && params->remote != NULL);
	struct pool pool = {.params = params};
	lock_init(&pool.lock, LOCK_TRANSFER);
	const unsigned others = params->threads > 1 ? params->threads - 1 : 0;
	pthread_t *const started = memory_new_array(others + 1, sizeof(*started));
	for (unsigned i = 0; i < others; i++)
		lock_thread_start(&started[i], "transfer", pool_work, &pool);
	if (params->own != NULL)
		work_with(&pool, params->own);
	else
		pool_work(&pool);
	for (unsigned i = 0; i < others; i++)
		pthread_join(started[i], NULL);
	free(started);
	lock_release(&pool.lock);
	if (pool.first.kind == ERROR_NONE)
		return 0;
	*err = pool.first;
	return -1;
}

static void *pool_work(void *argument)
{
	struct pool *const pool = argument;
	struct error err = {0};
	struct remote *const remote = remote_new(pool->params->remote, &err);
	if (remote == NULL)
		pool_fail(pool, &err);
	else
		work_with(pool, remote);
	remote_free(remote);
	return NULL;
}

static void pool_fail(struct pool *pool, const struct error *err)
{
	ASSERT(err->kind != ERROR_NONE); /* pool_run would report success */
	lock_enter(&pool->lock);
	if (pool->first.kind == ERROR_NONE)
		pool->first = *err;
	lock_leave(&pool->lock);
	atomic_store(&pool->failed, true);
}

static void work_with(struct pool *pool, struct remote *remote)
{
	struct error err = {0};
	int result = 1;
	while (result > 0 && !atomic_load(&pool->failed))
		result = pool->params->piece(pool->params->job, remote, &err);
	if (result < 0)
		pool_fail(pool, &err);
}
