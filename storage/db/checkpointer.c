#include "storage/db/checkpointer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/worker_thread.h"

enum { INTERVAL_MS = 1000, LOG_KEPT_BYTES = 1024 * 1024, LOG_PATH_BYTES = 4096 };

struct checkpointer {
	struct db *db;
	struct checkpointer_gate gate;
	char log_path[LOG_PATH_BYTES];
	int64_t seen; /* the data version at the last look */
	struct worker_thread thread;
};

static int64_t checkpointer_round(void *owner);
static void checkpointer_checkpoint(void *owner);
static void cut_idle_log(struct checkpointer *checkpointer, struct error *err);

struct checkpointer *checkpointer_start(
	const char *catalog_path, const struct checkpointer_gate *gate, struct error *err)
{
	static const struct worker_thread_plan plan = {.name = "checkpointer",
		.first_ms = INTERVAL_MS,
		.round = checkpointer_round,
		.last = checkpointer_checkpoint};
	struct db *const db = db_open(catalog_path, DB_WRITE, err);
	if (db == NULL)
		return NULL;
	struct checkpointer *const checkpointer = memory_new(sizeof(*checkpointer));
	checkpointer->db = db;
	checkpointer->gate = *gate;
	snprintf(checkpointer->log_path, sizeof(checkpointer->log_path), "%s-wal", catalog_path);
	worker_thread_start(&checkpointer->thread, &plan, checkpointer);
	return checkpointer;
}

void checkpointer_stop(struct checkpointer *checkpointer)
{
	if (checkpointer == NULL)
		return;
	worker_thread_stop(&checkpointer->thread);
	worker_thread_release(&checkpointer->thread);
	db_close(checkpointer->db);
	free(checkpointer);
}

static int64_t checkpointer_round(void *owner)
{
	checkpointer_checkpoint(owner);
	return INTERVAL_MS;
}

static void checkpointer_checkpoint(void *owner)
{
	struct checkpointer *const checkpointer = owner;
	/* nothing is lost: the log keeps everything, and the next commit reports a broken disk */
	struct error ignored;
	if (checkpointer->gate.pass != NULL &&
		checkpointer->gate.pass(checkpointer->gate.owner, &ignored) != 0)
		return;
	db_checkpoint_passive(checkpointer->db, &ignored);
	cut_idle_log(checkpointer, &ignored);
}

/* A log that was moved keeps its size until it is truncated. Truncating waits for the writer, so it
 * is done only while nobody writes. */
static void cut_idle_log(struct checkpointer *checkpointer, struct error *err)
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
