/* Chunks whose record any reader saw damaged. Deduplication must not find them any more, nothing
 * new may refer to them, and an upload of the same bytes mends them (storage/core/pack_mend.h).
 * Bounded in number: damage beyond that is found again by its next reader. The catalog keeps the
 * list over a restart (storage/core/damage_book.h), which listens here. Any thread. */
#ifndef STORAGE_PACKS_PACK_DAMAGE_H
#define STORAGE_PACKS_PACK_DAMAGE_H

#include "base/error.h"
#include "base/thread/lock.h"
#include "storage/packs/chunk_index.h"

enum { PACK_DAMAGE_MAX = 65536 };

/* Whether a failed read tells of damage: wrong bytes, or a disk that cannot give them, as with bad
 * sectors and file systems with checksums. */
bool pack_damage_is(const struct error *err);

/* Verified records of damaged chunks of a pack (pack_rewrite.h). */
struct pack_patch;
/* The bytes of a damaged chunk that were stored again, committed at `sound`. */
struct chunk_repair {
	struct chunk_place damaged;
	struct chunk_place sound;
};

struct pack_damage;
/* Called without a lock, on the thread that notes, forgets, offers or mends. */
struct pack_damage_listener {
	void (*noted)(void *owner, const struct pack_id *pack, uint32_t chunk);
	void (*forgotten)(void *owner, const struct pack_id *pack, uint32_t first, uint32_t count);
	void (*offered)(void *owner, const struct chunk_repair *repairs, size_t count);
	int (*mend)(void *owner, const struct pack_id *pack, const struct pack_patch *patch,
		struct error *err);
	void *owner;
};
struct pack_damage *pack_damage_new(void);
void pack_damage_free(struct pack_damage *damage); /* NULL is fine */
/* Call it once, before other threads use `damage`. */
void pack_damage_listen(struct pack_damage *damage, const struct pack_damage_listener *listener);
void pack_damage_note(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk);
/* Whether any chunk is noted. Takes no lock. */
bool pack_damage_is_known(const struct pack_damage *damage);
/* Lists all chunks that are noted, by pack and chunk. free() the array, which is NULL when there
 * are none. */
struct chunk_place *pack_damage_list(struct pack_damage *damage, size_t *out_count);
size_t pack_damage_count(const struct pack_damage *damage);
/* Rises whenever chunks are noted or forgotten. */
uint64_t pack_damage_changes(const struct pack_damage *damage);
/* 0 while nothing is noted; else a number that is another one after each new note, and after a
 * restart: what somebody was told under one number was right when all noted damage was known. */
uint64_t pack_damage_mark(const struct pack_damage *damage);
/* Whether any of chunks [first, first + count) is noted. Takes no lock while nothing is noted. */
bool pack_damage_has(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);
/* Offers sound records in place of damaged ones to the listener, which mends those. The caller
 * holds their packs meanwhile. */
void pack_damage_offer(
	struct pack_damage *damage, const struct chunk_repair *repairs, size_t count);
/* Has the listener write the records of the patch in place of the damaged ones, and waits for that.
 * busy: the pack is being sealed and can be mended soon, or nobody listens. */
int pack_damage_mend(struct pack_damage *damage, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err);
/* These chunks are right (again). */
void pack_damage_forget(
	struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);

#endif
