/* A sorted list of (pack, chunk), searched by halves. The count is atomic, so that readers need no
 * lock while nothing is damaged. Listeners are called after the lock is left. */
#include "storage/packs/pack_damage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/search.h"
#include "storage/packs/pack_format.h"

struct pack_damage {
	struct pack_damage_listener listener;
	_Atomic size_t count;     /* changed under the lock */
	_Atomic uint64_t changes; /* the same; it never falls */
	_Atomic uint64_t mark;    /* the same: as of the last note */
	uint64_t first_mark;      /* of no other process */
	struct lock lock;
	size_t capacity;
	struct chunk_place *chunks; /* sorted */
};

struct damage_key {
	const struct pack_id *pack;
	uint64_t chunk; /* may be one more than the highest number */
};

static size_t count_in(const struct pack_damage *damage, const struct pack_id *pack, uint32_t first,
	uint32_t count);
static size_t find(const struct pack_damage *damage, const struct pack_id *pack, uint64_t chunk);
static bool damage_is_before(const void *element, const void *wanted);
static void insert(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk);

bool pack_damage_is(const struct error *err)
{
	return err->kind == ERROR_CORRUPT || err->os_errno == EIO;
}

struct pack_damage *pack_damage_new(void)
{
	struct pack_damage *const damage = memory_new(sizeof(*damage));
	random_bytes(&damage->first_mark, sizeof(damage->first_mark));
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

struct chunk_place *pack_damage_list(struct pack_damage *damage, size_t *out_count)
{
	struct chunk_place *list = NULL;
	lock_enter(&damage->lock);
	*out_count = damage->count;
	if (damage->count > 0)
		list = memory_copy(damage->chunks, damage->count * sizeof(*list));
	lock_leave(&damage->lock);
	return list;
}

size_t pack_damage_count(const struct pack_damage *damage)
{
	return atomic_load(&damage->count);
}

uint64_t pack_damage_changes(const struct pack_damage *damage)
{
	return atomic_load(&damage->changes);
}

uint64_t pack_damage_mark(const struct pack_damage *damage)
{
	return atomic_load(&damage->count) == 0 ? 0 : atomic_load(&damage->mark);
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
			behind * sizeof(*damage->chunks));
	atomic_fetch_sub(&damage->count, gone);
	atomic_fetch_add(&damage->changes, gone > 0);
	lock_leave(&damage->lock);
	if (gone > 0 && damage->listener.forgotten != NULL)
		damage->listener.forgotten(damage->listener.owner, pack, first, count);
}

void pack_damage_offer(struct pack_damage *damage, const struct chunk_repair *repairs, size_t count)
{
	if (damage->listener.offered != NULL)
		damage->listener.offered(damage->listener.owner, repairs, count);
}

int pack_damage_mend(struct pack_damage *damage, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err)
{
	if (damage->listener.mend == NULL)
		return error_set(err, ERROR_BUSY, "Nothing can be mended now.");
	return damage->listener.mend(damage->listener.owner, pack, patch, err);
}

static size_t count_in(const struct pack_damage *damage, const struct pack_id *pack, uint32_t first,
	uint32_t count)
{
	return find(damage, pack, (uint64_t)first + count) - find(damage, pack, first);
}

/* The place of the first entry that is this chunk or a later one. */
static size_t find(const struct pack_damage *damage, const struct pack_id *pack, uint64_t chunk)
{
	const struct damage_key key = {pack, chunk};
	lock_assert_held(&damage->lock);
	return search_lower_bound(
		damage->chunks, damage->count, sizeof(*damage->chunks), damage_is_before, &key);
}

static bool damage_is_before(const void *element, const void *wanted)
{
	const struct chunk_place *const noted = element;
	const struct damage_key *const key = wanted;
	const int order = memcmp(noted->pack.bytes, key->pack->bytes, PACK_ID_BYTES);
	return order < 0 || (order == 0 && noted->chunk < key->chunk);
}

static void insert(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk)
{
	size_t count = damage->count;
	size_t at = find(damage, pack, chunk);
	ASSERT(count < PACK_DAMAGE_MAX);
	damage->chunks =
		memory_make_room(damage->chunks, count, &damage->capacity, sizeof(*damage->chunks));
	memmove(damage->chunks + at + 1, damage->chunks + at,
		(count - at) * sizeof(*damage->chunks));
	damage->chunks[at] = (struct chunk_place){.pack = *pack, .chunk = chunk};
	const uint64_t changes = atomic_fetch_add(&damage->changes, 1);
	atomic_store(&damage->mark, 2 * (damage->first_mark + changes) + 1); /* not 0 */
	atomic_store(&damage->count, count + 1);
}
