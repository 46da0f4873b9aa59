/* A thread that gives Xet file hashes to current versions that were committed without one: at the
 * start, when it is woken, and once a second. Versions that a client waits for (file_hash.h) come
 * first. Derived versions are decoded at the rate of the derive worker, once they are a minute old,
 * because made anchors are often deleted before that. A version that fails is tried again after 10
 * minutes and holds up no other. Any thread. Internal to storage, except for quiesce. */
#ifndef STORAGE_FILES_FILE_HASH_WORKER_H
#define STORAGE_FILES_FILE_HASH_WORKER_H

#include "storage/core/store.h"

struct file_hash_worker;

struct file_hash_worker *file_hash_worker_start(struct store *store);
/* Work that a client waits for. The worker's thread calls `run`; when the store is closing it is
 * called with `is_refused`, on either thread. `run` may free the order. */
struct file_hash_order {
	void (*run)(
		struct file_hash_order *order, struct file_hash_worker *worker, bool is_refused);
	struct file_hash_order *next; /* owned by the queue */
};
void file_hash_worker_order(struct file_hash_worker *worker, struct file_hash_order *order);
/* For orders, on the worker's thread: gives the version its hash without the limit on the rate. */
int file_hash_worker_give(struct file_hash_worker *worker, int64_t version, struct error *err);
/* Gives up the present work and begins no other. Returns at once. */
void file_hash_worker_quiesce(struct file_hash_worker *worker);
/* Must come before the committer stops. NULL is fine. */
void file_hash_worker_stop(struct file_hash_worker *worker);

#endif
