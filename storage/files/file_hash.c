/* A request for hashes goes over two threads:
 *
 *   file_hash_start --> helper: hashes from pack indexes --> done
 *                                   |
 *                                   +--> worker: decodes derived versions --> done
 *
 * Each writes what it finds. The worker comes second because decoding may take long. The caller and
 * the work share the request: it may be given up early, and the last of the two frees it. */
#include "storage/files/file_hash.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/files/file_hash_find.h"
#include "storage/files/file_hash_worker.h"

struct file_hash_wait {
	struct helper_job job;
	struct helper_lane lane;
	struct file_hash_order order;
	struct store *store;
	int64_t *versions; /* after the helper: only those that must be decoded */
	size_t count;
	void (*done)(void *owner);
	void *owner;
	_Atomic bool is_told; /* done was called */
	_Atomic bool is_given_up;
	_Atomic int references; /* of the caller and the work */
	bool failed;
	struct error error; /* the first */
};

static void file_hash_look(struct helper_job *job);
static void write_from_indexes(struct file_hash_wait *wait);
static void fail(struct file_hash_wait *wait, const struct error *err);
static void write_found(
	struct file_hash_wait *wait, const struct file_hash_found *found, size_t *count);
static void end(struct file_hash_wait *wait);
static void tell(struct file_hash_wait *wait);
static void let_go(struct file_hash_wait *wait);
static void file_hash_decode(
	struct file_hash_order *order, struct file_hash_worker *worker, bool is_refused);

struct file_hash_wait *file_hash_start(struct store *store, const int64_t *versions, size_t count,
	void (*done)(void *owner), void *owner)
{
	ASSERT(versions != NULL || count == 0);
	ASSERT(done != NULL);
	struct file_hash_wait *const wait = memory_new(sizeof(*wait));
	wait->store = store;
	wait->versions = memory_new_array(count + 1, sizeof(*wait->versions));
	if (count > 0)
		memcpy(wait->versions, versions, count * sizeof(*versions));
	wait->count = count;
	wait->done = done;
	wait->owner = owner;
	wait->references = 2;
	wait->job.run = file_hash_look;
	helpers_submit(store_helpers(store), &wait->lane, &wait->job);
	return wait;
}

int file_hash_outcome(const struct file_hash_wait *wait, struct error *err)
{
	ASSERT(atomic_load(&wait->is_told));
	if (atomic_load(&wait->is_given_up))
		return error_set(err, ERROR_BUSY, "The request for the hashes was given up.");
	if (!wait->failed)
		return 0;
	*err = wait->error;
	return -1;
}

void file_hash_give_up(struct file_hash_wait *wait)
{
	if (atomic_exchange(&wait->is_told, true))
		return;
	atomic_store(&wait->is_given_up, true);
	wait->done(wait->owner);
}

void file_hash_free(struct file_hash_wait *wait)
{
	if (wait == NULL)
		return;
	ASSERT(atomic_load(&wait->is_told));
	let_go(wait);
}

static void file_hash_look(struct helper_job *job)
{
	struct file_hash_wait *const wait = (struct file_hash_wait *)job;
	write_from_indexes(wait);
	if (wait->count == 0) {
		end(wait);
		return;
	}
	wait->order.run = file_hash_decode;
	file_hash_worker_order(store_parts(wait->store)->file_hash_worker, &wait->order);
}

/* Writes the hashes that follow from indexes, and leaves the other versions in `versions`. */
static void write_from_indexes(struct file_hash_wait *wait)
{
	struct file_hash_found *const found = memory_new_array(FILE_HASHES_MAX, sizeof(*found));
	size_t used = 0;
	size_t left = 0;
	for (size_t i = 0; i < wait->count; i++) {
		struct file_hash_facts facts;
		struct error err = {0};
		if (file_hash_find(wait->store, wait->versions[i], NULL, &facts, &err) != 0)
			fail(wait, &err);
		else if (facts.state == FILE_HASH_DECODES)
			wait->versions[left++] = wait->versions[i];
		else if (facts.state == FILE_HASH_FOUND)
			found[used++] = facts.found;
		if (used == FILE_HASHES_MAX)
			write_found(wait, found, &used);
	}
	write_found(wait, found, &used);
	wait->count = left;
	free(found);
}

static void fail(struct file_hash_wait *wait, const struct error *err)
{
	if (wait->failed)
		return;
	wait->failed = true;
	wait->error = *err;
}

static void write_found(
	struct file_hash_wait *wait, const struct file_hash_found *found, size_t *count)
{
	struct error err = {0};
	if (file_hash_write(wait->store, found, *count, &err) != 0)
		fail(wait, &err);
	else
		metrics_add(store_metrics(wait->store), METRIC_FILE_HASHES, (int64_t)*count);
	*count = 0;
}

static void end(struct file_hash_wait *wait)
{
	tell(wait);
	let_go(wait);
}

static void tell(struct file_hash_wait *wait)
{
	if (!atomic_exchange(&wait->is_told, true))
		wait->done(wait->owner);
}

static void let_go(struct file_hash_wait *wait)
{
	const int before = atomic_fetch_sub(&wait->references, 1);
	ASSERT(before >= 1);
	if (before > 1)
		return;
	free(wait->versions);
	free(wait);
}

static void file_hash_decode(
	struct file_hash_order *order, struct file_hash_worker *worker, bool is_refused)
{
	struct file_hash_wait *const wait =
		(struct file_hash_wait *)((char *)order - offsetof(struct file_hash_wait, order));
	for (size_t i = 0; i < wait->count && !atomic_load(&wait->is_given_up); i++) {
		struct error err = {0};
		const int given = is_refused
			? error_set(&err, ERROR_BUSY, "The server is stopping.")
			: file_hash_worker_give(worker, wait->versions[i], &err);
		if (given != 0)
			fail(wait, &err);
	}
	end(wait);
}
