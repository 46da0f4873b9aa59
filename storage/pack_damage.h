/* Chunks whose records were seen damaged since the start. Nothing new shall lead to them, and who has their bytes shall send them again
 * (xorb_repeat.h). Hints: bounded in number, the oldest go first, and gone with a restart; what must be sure reads the records. Any thread. */
#ifndef STORAGE_PACK_DAMAGE_H
#define STORAGE_PACK_DAMAGE_H

#include "base/error.h"
#include "base/lock.h"
#include "storage/segment.h"

enum { PACK_DAMAGE_MAX = 1024 };

/* Whether a read that failed so tells of damage: wrong bytes, or a disk that cannot give them, as bad sectors and file systems with checksums do. */
bool pack_damage_is(const struct error *err);

struct pack_damage;
struct pack_damage *pack_damage_new(void);
void pack_damage_free(struct pack_damage *damage); /* NULL is fine */
void pack_damage_note(struct pack_damage *damage, const struct pack_id *pack, uint32_t chunk);
/* Whether any of chunks [first, first + count) is noted. Without a lock while nothing is. */
bool pack_damage_has(struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);
/* They are right (again). */
void pack_damage_forget(struct pack_damage *damage, const struct pack_id *pack, uint32_t first, uint32_t count);

#endif
