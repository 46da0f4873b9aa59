/* Drops made files (storage/xet/made_file.h) that have damaged chunks: their bytes are not lost,
 * and are made again when the next client asks. Without this a made file that is in use would stay
 * damaged, because each use keeps it longer. scrub's thread only. Internal to storage. */
#ifndef STORAGE_SCRUB_MADE_DROP_H
#define STORAGE_SCRUB_MADE_DROP_H

#include "storage/core/store.h"

/* Works on the damage that is known now. The caller has asked store_may_delete. */
int made_drop_run(struct store *store, struct error *err);

#endif
