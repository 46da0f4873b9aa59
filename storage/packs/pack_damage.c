#include "storage/packs/pack_damage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_format.h"

struct damaged_chunk {
	struct pack_id pack;
	uint32_t chunk;
};

struct pack_damage {
	struct pack_damage_listener listener;
	_Atomic size_t count; /* changed under the lock */
	struct lock lock;
	size_t capacity;
	struct damaged_chunk *chunks; /* in order */
};

static size_t count_in(const struct pack_damage *damage, const struct pack_id *pack, uint32_t first,
	uint32_t count);
static size_t find(const struct pack_damage *damage, const struct pack_id *pack, uint64_t chunk);
static bool is_before(
	const struct damaged_chunk *noted, const struct pack_id *pack, uint64_t chunk);
static void insert(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk);

bool pack_damage_is(const struct error *err)
{
	return err->kind == ERROR_CORRUPT || err->os_errno == EIO;
}

struct pack_damage *pack_damage_new(void)
{
	struct pack_damage *const damage = memory_new(sizeof *damage);
	lock_init(&damage->lock, LOCK_PACK_DAMAGE);
	return damage;
}

void pack_damage_free(struct pack_damage *damage)
{
	if (damage == NULL)
		return;
	lock_release(&damage->lock);
	free(damage->chunks);
	free(damage);
}

void pack_damage_listen(struct pack_damage *damage, const struct pack_damage_listener *listener)
{
	damage->listener = *listener;
}

void pack_damage_note(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk)
{
	lock_enter(&damage->lock);
	const bool is_new =
		damage->count < PACK_DAMAGE_MAX && count_in(damage, pack, chunk, 1) == 0;
	if (is_new)
		insert(damage, pack, chunk);
	lock_leave(&damage->lock);
	if (is_new && damage->listener.noted != NULL)
		damage->listener.noted(damage->listener.owner, pack, chunk);
}

bool pack_damage_is_known(const struct pack_damage *damage)
{
	return atomic_load(&damage->count) > 0;
}

bool pack_damage_has(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count)
{
	if (atomic_load(&damage->count) == 0)
		return false;
	lock_enter(&damage->lock);
	const bool has = count_in(damage, pack, first, count) > 0;
	lock_leave(&damage->lock);
	return has;
}

void pack_damage_forget(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count)
{
	if (atomic_load(&damage->count) == 0)
		return;
	lock_enter(&damage->lock);
	const size_t at = find(damage, pack, first);
	const size_t gone = count_in(damage, pack, first, count);
	const size_t behind = damage->count - at - gone;
	if (gone > 0)
		memmove(damage->chunks + at, damage->chunks + at + gone,
			behind * sizeof *damage->chunks);
	atomic_fetch_sub(&damage->count, gone);
	lock_leave(&damage->lock);
	if (gone > 0 && damage->listener.forgotten != NULL)
		damage->listener.forgotten(damage->listener.owner, pack, first, count);
}

void pack_damage_offer(struct pack_damage *damage, const struct chunk_repair *repairs, size_t count)
{
	if (damage->listener.offered != NULL)
		damage->listener.offered(damage->listener.owner, repairs, count);
}

static size_t count_in(const struct pack_damage *damage, const struct pack_id *pack, uint32_t first,
	uint32_t count)
{
	return find(damage, pack, (uint64_t)first + count) - find(damage, pack, first);
}

/* The place of the first that is this chunk or comes behind it. */
static size_t find(const struct pack_damage *damage, const struct pack_id *pack, uint64_t chunk)
{
	size_t from = 0;
	size_t to = damage->count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (is_before(&damage->chunks[middle], pack, chunk))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_before(const struct damaged_chunk *noted, const struct pack_id *pack, uint64_t chunk)
{
	int order = memcmp(noted->pack.bytes, pack->bytes, PACK_ID_BYTES);
	return order < 0 || (order == 0 && noted->chunk < chunk);
}

static void insert(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk)
{
	size_t count = damage->count;
	size_t at = find(damage, pack, chunk);
	if (count == damage->capacity) {
		damage->capacity = damage->capacity == 0 ? 16 : 2 * damage->capacity;
		damage->chunks =
			memory_grow(damage->chunks, damage->capacity, sizeof *damage->chunks);
	}
	memmove(damage->chunks + at + 1, damage->chunks + at,
		(count - at) * sizeof *damage->chunks);
	damage->chunks[at] = (struct damaged_chunk){.pack = *pack, .chunk = chunk};
	atomic_store(&damage->count, count + 1);
}
