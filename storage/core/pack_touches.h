/* The packs that lost references since gc last looked at them, by their number in the catalog. The
 * committer adds, gc takes. The list is in memory only: after a restart gc looks at all packs once.
 * Internally locked; any thread. */
#ifndef STORAGE_CORE_PACK_TOUCHES_H
#define STORAGE_CORE_PACK_TOUCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_touches;

struct pack_touches *pack_touches_new(void);
void pack_touches_free(struct pack_touches *touches);
/* Rows that led to this number of chunks of the pack are removed. Does nothing when `touches` is
 * NULL. */
void pack_touches_add(struct pack_touches *touches, int64_t pack, int64_t chunks);
/* gc is about to look at the pack: what is added from here on counts as unseen. */
void pack_touches_look(struct pack_touches *touches, int64_t pack);
/* gc looked at the pack: this number of chunks is live. */
void pack_touches_looked(struct pack_touches *touches, int64_t pack, uint32_t live);
/* gc must look at the pack again. */
void pack_touches_again(struct pack_touches *touches, int64_t pack);
void pack_touches_forget(struct pack_touches *touches, int64_t pack);
/* How many of the `chunks` chunks of a pack are live, by what gc found and what was lost since.
 * False when gc has not looked at the pack yet, or must look again: then all but those that were
 * lost. */
bool pack_touches_live(
	struct pack_touches *touches, int64_t pack, uint32_t chunks, uint32_t *out_live);
/* Gives up to `capacity` packs above `after`, rising, that gc should look at: packs that it has not
 * looked at, or that may have lost a sixteenth of their live chunks. */
size_t pack_touches_due(struct pack_touches *touches, int64_t after, int64_t *out, size_t capacity);

#endif
