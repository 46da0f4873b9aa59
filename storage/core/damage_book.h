/* What is damaged is kept in the catalog (damage_row.h), so that a restart does not forget it, and
 * mended as soon as somebody has uploaded the same bytes: listens to the pack store's damage. A row
 * follows what was seen, it never leads: where the catalog takes no changes, the damage is known
 * until the process ends. Internal to storage. */
#ifndef STORAGE_CORE_DAMAGE_BOOK_H
#define STORAGE_CORE_DAMAGE_BOOK_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct damage_book;
/* Tells the pack store of all damage that the catalog knows. Before others read packs. */
int damage_book_load(struct pack_store *packs, struct db *db, struct error *err);
/* With the committer running. */
struct damage_book *damage_book_open(struct store *store);
/* Waits for what is being mended; what comes later is let go. Before the committer stops; NULL is
 * fine. */
void damage_book_close(struct damage_book *book);
/* After helpers_stop; NULL is fine. */
void damage_book_free(struct damage_book *book);

#endif
