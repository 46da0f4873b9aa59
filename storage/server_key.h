/* Keys that are the server's: what it makes of a run's steps lies there, and clients read it. Internal to storage. */
#ifndef STORAGE_SERVER_KEY_H
#define STORAGE_SERVER_KEY_H

#include "storage/db.h"

/* Inside a change of a client that writes or removes the key: denied when it is a made anchor's place (storage/step_anchor.h) or a view's
 * (storage/view_job.h). */
int server_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
