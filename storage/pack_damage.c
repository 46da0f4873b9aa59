#include "storage/pack_damage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/pack_format.h"

struct pack_damage {
	_Atomic size_t count; /* changed under the lock */
	struct lock lock;
	size_t next; /* the oldest, once the list is full */
	struct damaged_chunk {
		struct pack_id pack;
		uint32_t chunk;
	} chunks[PACK_DAMAGE_MAX];
};

bool pack_damage_is(const struct error *const err)
{
	return err->kind == ERROR_CORRUPT || err->os_errno == EIO;
}

struct pack_damage *pack_damage_new(void)
{
	struct pack_damage *const damage = memory_new(sizeof *damage);
	lock_init(&damage->lock, LOCK_PACK_DAMAGE);
	return damage;
}

void pack_damage_free(struct pack_damage *const damage)
{
	if (damage == NULL)
		return;
	lock_release(&damage->lock);
	free(damage);
}

/* The first from `at` on that is one of these chunks; the count when none is. */
static size_t find(const struct pack_damage *const damage, size_t at, const struct pack_id *const pack, const uint32_t first, const uint32_t count)
{
	while (at < damage->count && (damage->chunks[at].chunk < first || damage->chunks[at].chunk - first >= count ||
		!pack_id_equal(&damage->chunks[at].pack, pack)))
		at++;
	return at;
}

void pack_damage_note(struct pack_damage *const damage, const struct pack_id *const pack, const uint32_t chunk)
{
	lock_enter(&damage->lock);
	const size_t count = damage->count;
	if (find(damage, 0, pack, chunk, 1) == count) {
		const size_t at = count < PACK_DAMAGE_MAX ? count : damage->next++ % PACK_DAMAGE_MAX;
		damage->chunks[at] = (struct damaged_chunk){.pack = *pack, .chunk = chunk};
		if (at == count)
			atomic_store(&damage->count, count + 1);
	}
	lock_leave(&damage->lock);
}

bool pack_damage_has(struct pack_damage *const damage, const struct pack_id *const pack, const uint32_t first, const uint32_t count)
{
	if (atomic_load(&damage->count) == 0)
		return false;
	lock_enter(&damage->lock);
	const bool has = find(damage, 0, pack, first, count) < damage->count;
	lock_leave(&damage->lock);
	return has;
}

void pack_damage_forget(struct pack_damage *const damage, const struct pack_id *const pack, const uint32_t first, const uint32_t count)
{
	lock_enter(&damage->lock);
	for (size_t at = find(damage, 0, pack, first, count); at < damage->count; at = find(damage, at, pack, first, count)) {
		damage->chunks[at] = damage->chunks[damage->count - 1];
		atomic_fetch_sub(&damage->count, 1);
	}
	lock_leave(&damage->lock);
}
