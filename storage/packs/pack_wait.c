/* A pin that a wait has begun with is kept for the read after it, so that what was loaded is not
 * dropped in between, and the file stays open while bytes are fetched. */
#include "storage/packs/pack_wait.h"

#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"

static int pin_soon(struct pack_wait *wait, const struct pack_id *pack, struct pack **out_pinned,
	struct error *err);
static void pack_wait_load(struct helper_job *job);
static void drop(struct pack_wait *wait);
static void begin_fetch(
	struct pack_wait *wait, struct pack *pinned, uint64_t offset, uint64_t length);

void pack_wait_let(
	struct pack_wait *wait, struct pack_store *store, source_wake_fn *wake, void *owner)
{
	ASSERT(wake != NULL);
	wait->job.run = pack_wait_load;
	wait->store = store;
	wait->wake = wake;
	wait->owner = owner;
}

void pack_wait_release(struct pack_wait *wait)
{
	drop(wait);
}

int pack_wait_pin(struct pack_wait *wait, struct pack_store *store, const struct pack_id *pack,
	struct pack **out_pinned, struct error *err)
{
	if (wait != NULL)
		return pin_soon(wait, pack, out_pinned, err);
	*out_pinned = pack_cache_pin(store->cache, pack, true, err);
	return *out_pinned != NULL ? 0 : -1;
}

void pack_wait_unpin(struct pack_wait *wait, struct pack_store *store, struct pack *pinned)
{
	if (wait == NULL || wait->pinned != pinned)
		pack_cache_unpin(store->cache, pinned);
}

int pack_wait_fetch(struct pack_wait *wait, struct pack *pinned, uint64_t offset, uint64_t length)
{
	struct backend_file *const file = pack_file(pinned);
	if (wait == NULL || file->backend->ops->is_near == NULL ||
		(offset >= wait->from && offset + length <= wait->to) ||
		file->backend->ops->is_near(file, offset, length))
		return 0;
	if (wait->may_begin)
		begin_fetch(wait, pinned, offset, length);
	return PACK_WAITS;
}

int pack_wait_retry(struct pack_wait *wait, struct pack *pinned, const struct pack_entry *entry,
	const struct error *err)
{
	struct backend_file *const file = pack_file(pinned);
	const uint64_t length = PACK_RECORD_HEADER_BYTES + (uint64_t)entry->stored;
	const bool is_repeated = wait != NULL && wait->again == entry->offset;
	if (file->backend->ops->forget == NULL || !pack_damage_is(err) || is_repeated)
		return -1;
	if (wait != NULL && !wait->may_begin)
		return PACK_WAITS;
	file->backend->ops->forget(file, entry->offset, length);
	if (wait == NULL)
		return 0;
	wait->again = entry->offset;
	begin_fetch(wait, pinned, entry->offset, length);
	return PACK_WAITS;
}

/* Gives the pin that was kept for this read, or one of what is in memory, or begins to wait. */
static int pin_soon(struct pack_wait *wait, const struct pack_id *pack, struct pack **out_pinned,
	struct error *err)
{
	const bool is_kept = wait->pinned != NULL && pack_id_equal(&wait->pack, pack);
	if (!is_kept) {
		drop(wait);
		wait->from = wait->to = wait->again = 0;
	}
	*out_pinned = is_kept ? wait->pinned : pack_cache_pin_near(wait->store->cache, pack, true);
	wait->pinned = NULL;
	if (*out_pinned != NULL)
		return 0;
	if (wait->error.kind != ERROR_NONE) {
		*err = wait->error;
		wait->error = (struct error){0};
		return -1;
	}
	if (wait->may_begin) {
		wait->pack = *pack;
		helpers_submit(wait->store->helpers, &wait->lane, &wait->job);
	}
	return PACK_WAITS;
}

static void pack_wait_load(struct helper_job *job)
{
	struct pack_wait *const wait = (struct pack_wait *)job;
	wait->pinned = pack_cache_pin(wait->store->cache, &wait->pack, true, &wait->error);
	wait->wake(wait->owner); /* from here on the wait may be gone */
}

static void drop(struct pack_wait *wait)
{
	if (wait->pinned != NULL)
		pack_cache_unpin(wait->store->cache, wait->pinned);
	wait->pinned = NULL;
}

static void begin_fetch(
	struct pack_wait *wait, struct pack *pinned, uint64_t offset, uint64_t length)
{
	struct backend_file *const file = pack_file(pinned);
	wait->pack = *pack_cache_id(pinned);
	wait->pinned = pinned;
	wait->from = offset;
	wait->to = offset + length;
	file->backend->ops->fetch(file, offset, length, wait->wake, wait->owner);
}
