/* Chunks whose record was seen damaged, by whoever read it: what they are made of is not to be
 * found any more, nothing new is to lead to them, and those who upload their bytes mend them
 * (pack_mend.h). Bounded in number; what comes beyond that is found again by those who read it. The
 * catalog keeps them over a restart (damage_book.h), which listens here. Any thread. */
#ifndef STORAGE_PACKS_PACK_DAMAGE_H
#define STORAGE_PACKS_PACK_DAMAGE_H

#include "base/error.h"
#include "base/thread/lock.h"
#include "storage/packs/chunk_index.h"

enum { PACK_DAMAGE_MAX = 65536 };

/* Whether a read that failed so tells of damage: wrong bytes, or a disk that cannot give them, as
 * bad sectors and file systems with checksums do. */
bool pack_damage_is(const struct error *err);

/* The bytes of a damaged chunk were stored anew, and are committed there. */
struct chunk_repair {
	struct chunk_place damaged;
	struct chunk_place sound;
};

struct pack_damage;
/* Called without a lock held, by who notes and forgets. */
struct pack_damage_listener {
	void (*noted)(void *owner, const struct pack_id *pack, uint32_t chunk);
	void (*forgotten)(void *owner, const struct pack_id *pack, uint32_t first, uint32_t count);
	void (*offered)(void *owner, const struct chunk_repair *repairs, size_t count);
	void *owner;
};
struct pack_damage *pack_damage_new(void);
void pack_damage_free(struct pack_damage *damage); /* NULL is fine */
/* Once, before others use it. */
void pack_damage_listen(struct pack_damage *damage, const struct pack_damage_listener *listener);
void pack_damage_note(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk);
/* Whether there is any. Without a lock. */
bool pack_damage_is_known(const struct pack_damage *damage);
/* Whether any of chunks [first, first + count) is noted. Without a lock while nothing is. */
bool pack_damage_has(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);
/* Sound records in place of damaged ones: whoever listens mends these. Their packs are held by the
 * caller meanwhile. */
void pack_damage_offer(
	struct pack_damage *damage, const struct chunk_repair *repairs, size_t count);
/* They are right (again). */
void pack_damage_forget(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);

#endif
