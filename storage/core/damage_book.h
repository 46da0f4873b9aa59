/* Listens to the pack store's damage (pack_damage.h). It keeps damaged chunks in the catalog
 * (damage_row.h), so that a restart does not forget them, and mends them once the same bytes have
 * been uploaded. The list in memory leads and rows follow it: while the catalog takes no changes,
 * new damage is known only until the process ends. Internal to storage. */
#ifndef STORAGE_CORE_DAMAGE_BOOK_H
#define STORAGE_CORE_DAMAGE_BOOK_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct damage_book;
/* Gives the pack store all damage that the catalog knows. Call it before other threads read
 * packs. */
int damage_book_load(struct pack_store *packs, struct db *db, struct error *err);
/* The committer must run. */
struct damage_book *damage_book_open(struct store *store);
/* Waits for running mends, and drops everything that comes later. Call it before the committer
 * stops. NULL is fine. */
void damage_book_close(struct damage_book *book);
/* Call it after damage_book_close and helpers_stop. NULL is fine. */
void damage_book_free(struct damage_book *book);

#endif
