#include "storage/checkpointer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"

enum { INTERVAL_MS = 1000, LOG_KEPT_BYTES = 1024 * 1024, LOG_PATH_BYTES = 4096 };

struct checkpointer {
	struct db *db;
	char log_path[LOG_PATH_BYTES];
	int64_t seen; /* the data version of the last look */
	pthread_t thread;
	struct lock lock;
	struct lock_condition stop;
	bool stopping; /* guarded by lock */
};

/* A log that was moved keeps its size until it is cut, which waits for the writer: so only while there is none. */
static void cut_idle_log(struct checkpointer *const checkpointer, struct error *const err)
{
	int64_t version = 0;
	uint64_t size = 0;
	if (db_data_version(checkpointer->db, &version, err) != 0)
		return;
	const bool is_idle = version == checkpointer->seen;
	checkpointer->seen = version;
	if (is_idle && file_size(checkpointer->log_path, &size, err) == 0 && size > LOG_KEPT_BYTES)
		db_checkpoint_truncate(checkpointer->db, err);
}

static void *run(void *const argument)
{
	struct checkpointer *const checkpointer = argument;
	lock_enter(&checkpointer->lock);
	while (!checkpointer->stopping) {
		lock_wait_for(&checkpointer->lock, &checkpointer->stop, INTERVAL_MS);
		lock_leave(&checkpointer->lock);
		struct error ignored; /* the log keeps everything; a broken disk is reported by the next commit */
		db_checkpoint_passive(checkpointer->db, &ignored);
		cut_idle_log(checkpointer, &ignored);
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
	snprintf(checkpointer->log_path, sizeof(checkpointer->log_path), "%s-wal", catalog_path);
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
