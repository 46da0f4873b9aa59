/* Keys that belong to the server: it puts there what it makes of a run's steps, and clients may
 * only read it. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_SERVER_KEY_H
#define STORAGE_RUN_TABLES_SERVER_KEY_H

#include "storage/db/db.h"

/* For a change of a client that writes or removes the key: denied when the key belongs to a made
 * anchor (step_anchor_key.h) or a view (view_key.h). */
int server_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
