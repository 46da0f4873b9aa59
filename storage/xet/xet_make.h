/* Derived versions for Xet clients, who fetch records and nothing else: decoded once, chunked as
 * when the version's file hash was made, stored as records like any upload, and registered by the
 * file hash in xet_files (xet_file.h, is_made) for an hour after the last use. All of them together
 * take up to xet_made_max bytes: those that were used longest ago make room. A crash leaves packs
 * that nothing leads to. Any thread. */
#ifndef STORAGE_XET_XET_MAKE_H
#define STORAGE_XET_XET_MAKE_H

#include "chunker/chunk.h"
#include "storage/core/store.h"

enum { XET_MADE_MS = 60 * 60 * 1000 };

/* The version (a row) shall be readable as segments. Who asks for one that is being made waits for
 * that; one that is made already, or never was derived, is done at once, its time begins anew.
 * `done` comes once, from another thread, perhaps before this returns. */
struct xet_make;
struct xet_make *xet_make_start(
	struct store *store, int64_t version, void (*done)(void *owner), void *owner);
/* Nobody waits for it any more: `done` comes now, within this call, unless it came before; the
 * outcome is busy then. What is being made already goes on, and what nobody waits for is not begun.
 * Any thread, until free. */
void xet_make_give_up(struct store *store, struct xet_make *make);
/* After done: 0 made. no_key: it is gone; unsupported: larger than all that may be kept so; busy:
 * what others wait for takes all the room, or the store is closing; corrupt: the bytes are not
 * those of the file hash. */
int xet_make_outcome(const struct xet_make *make, struct error *err);
void xet_make_free(struct xet_make *make); /* after done */

/* The made file was asked for again: its time begins anew, if half of it is over. For who finds it
 * without xet_make_start; waits for nothing. */
void xet_make_touch(struct store *store, const struct chunk_id *file);

/* What is being made. Internal to storage, but for quiesce. */
struct xet_makes;
struct xet_makes *xet_makes_new(void);
/* What is under way is given up, and nothing further begins. */
void xet_makes_quiesce(struct xet_makes *makes);
void xet_makes_free(struct xet_makes *makes); /* NULL is fine; when nothing is under way */

#endif
