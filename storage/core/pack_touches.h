/* Which packs lost references since gc last looked at them, by number in the catalog: the committer
 * notes, gc takes. In memory only: what a stop forgets is found by the round that gc makes at
 * start. Internally locked; any thread. */
#ifndef STORAGE_CORE_PACK_TOUCHES_H
#define STORAGE_CORE_PACK_TOUCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_touches;

struct pack_touches *pack_touches_new(void);
void pack_touches_free(struct pack_touches *touches);
/* Rows that led to so many chunks of the pack go. `touches` NULL: nobody wants to know. */
void pack_touches_add(struct pack_touches *touches, int64_t pack, int64_t chunks);
/* gc is about to look: what is added from here on counts as unseen. */
void pack_touches_look(struct pack_touches *touches, int64_t pack);
/* gc looked: so many chunks live. */
void pack_touches_looked(struct pack_touches *touches, int64_t pack, uint32_t live);
/* gc must look again, whatever is known. */
void pack_touches_again(struct pack_touches *touches, int64_t pack);
void pack_touches_forget(struct pack_touches *touches, int64_t pack);
/* Up to `capacity` packs above `after`, rising, that gc should look at: those that may have lost a
 * sixteenth of what lived, or all of it. */
size_t pack_touches_due(struct pack_touches *touches, int64_t after, int64_t *out, size_t capacity);

#endif
