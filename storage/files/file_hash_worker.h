/* A thread that gives current versions their Xet file hashes, where they were committed without: at
 * start, when woken, and once a second if there are any. What asks waits for (file_hash.h) comes
 * first. Derived versions are decoded, at the rate of the derive worker, once they are a minute
 * old: made anchors often go again before. What fails is tried again after a while and holds up no
 * other. Any thread. Internal to storage, but for quiesce. */
#ifndef STORAGE_FILES_FILE_HASH_WORKER_H
#define STORAGE_FILES_FILE_HASH_WORKER_H

#include "storage/core/store.h"

struct file_hash_worker;

struct file_hash_worker *file_hash_worker_start(struct store *store);
/* Somebody waits for versions that must be decoded: `run` is called on the worker's thread with its
 * pace; at once, with `is_refused`, when the store is closing. */
struct file_hash_order {
	void (*run)(
		struct file_hash_order *order, struct file_hash_worker *worker, bool is_refused);
	struct file_hash_order *next; /* the queue's */
};
void file_hash_worker_order(struct file_hash_worker *worker, struct file_hash_order *order);
/* For orders: decodes as fast as it goes. */
int file_hash_worker_give(struct file_hash_worker *worker, int64_t version, struct error *err);
/* What it works on is given up, and nothing further begins. */
void file_hash_worker_quiesce(struct file_hash_worker *worker);
/* NULL is fine; before the committer stops */
void file_hash_worker_stop(struct file_hash_worker *worker);

#endif
