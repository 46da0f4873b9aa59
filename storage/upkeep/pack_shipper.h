/* The thread that stores shared packs in their far place (pack_store.h, "far place"): it closes the
 * open pack when that is old enough, uploads closed packs, and seals them. It tries again for ever:
 * until a pack is stored the catalog has its bytes. Only for stores whose packs lie in a far place.
 * Internal to storage. */
#ifndef STORAGE_UPKEEP_PACK_SHIPPER_H
#define STORAGE_UPKEEP_PACK_SHIPPER_H

#include "storage/core/store.h"

struct pack_shipper;

/* `open_ms`: how long a pack stays open; 0: 10 s. NULL when the packs of the store lie in a folder
 * or in memory. */
struct pack_shipper *pack_shipper_start(struct store *store, int64_t open_ms);
/* Must come before the committer stops. Packs that are not stored then are stored by the next
 * start. NULL is fine. */
void pack_shipper_stop(struct pack_shipper *shipper);

#endif
