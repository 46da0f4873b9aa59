#include "storage/checkpointer.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/memory.h"

enum { INTERVAL_MS = 1000 };

struct checkpointer {
	struct db *db;
	pthread_t thread;
	struct lock lock;
	struct lock_condition stop;
	bool stopping; /* guarded by lock */
};

static void *run(void *const argument)
{
	struct checkpointer *const checkpointer = argument;
	lock_enter(&checkpointer->lock);
	while (!checkpointer->stopping) {
		lock_wait_for(&checkpointer->lock, &checkpointer->stop, INTERVAL_MS);
		lock_leave(&checkpointer->lock);
		struct error ignored; /* the log keeps everything; a broken disk is reported by the next commit */
		db_checkpoint_passive(checkpointer->db, &ignored);
		lock_enter(&checkpointer->lock);
	}
	lock_leave(&checkpointer->lock);
	return NULL;
}

struct checkpointer *checkpointer_start(const char *const catalog_path, struct error *const err)
{
	struct db *const db = db_open(catalog_path, DB_WRITE, err);
	if (db == NULL)
		return NULL;
	struct checkpointer *const checkpointer = memory_new(sizeof(*checkpointer));
	checkpointer->db = db;
	lock_init(&checkpointer->lock, LOCK_CONTROL);
	lock_condition_init(&checkpointer->stop);
	lock_thread_start(&checkpointer->thread, "checkpointer", run, checkpointer);
	return checkpointer;
}

void checkpointer_stop(struct checkpointer *const checkpointer)
{
	if (checkpointer == NULL)
		return;
	lock_enter(&checkpointer->lock);
	checkpointer->stopping = true;
	lock_signal(&checkpointer->stop);
	lock_leave(&checkpointer->lock);
	pthread_join(checkpointer->thread, NULL);
	lock_condition_release(&checkpointer->stop);
	lock_release(&checkpointer->lock);
	db_close(checkpointer->db);
	free(checkpointer);
}
