/* Made files: derived versions for Xet clients, which can only fetch records. A derived version is
 * decoded once, chunked as it was when its file hash was computed, stored as records like any
 * upload, and registered by its file hash in xet_files (xet_file.h, is_made) until an hour after
 * its last use. All made files together have up to xet_made_max bytes; those that were used longest
 * ago are removed for new ones. A crash leaves only packs that nothing leads to. Any thread. */
#ifndef STORAGE_XET_MADE_FILE_H
#define STORAGE_XET_MADE_FILE_H

#include "chunker/chunk.h"
#include "storage/core/store.h"

enum { MADE_FILE_MS = 60 * 60 * 1000 };

/* A request that the version (a row) be readable as segments. Requests for one version share one
 * work. A version that has a made file already is only kept for another hour; one that is not
 * derived needs nothing. `done` is called once, possibly on another thread and before this
 * returns. */
struct made_file_request;
struct made_file_request *made_file_request_start(
	struct store *store, int64_t version, void (*done)(void *owner), void *owner);
/* Ends the wait early: calls `done` within this call, unless it was called before; the outcome is
 * then busy. A work that runs already continues; one that no request waits for is not begun. Any
 * thread, until free. */
void made_file_request_give_up(struct store *store, struct made_file_request *request);
/* After `done`: 0, the version is readable as segments. no_key: it is gone; unsupported: it is
 * larger than xet_made_max; busy: the files of other requests take all the room, or the store is
 * closing; corrupt: the bytes are not those of the file hash. */
int made_file_request_outcome(const struct made_file_request *request, struct error *err);
void made_file_request_free(struct made_file_request *request); /* after `done`; NULL is fine */

/* Keeps the made file for another hour, if half of its hour is over. For callers that found the
 * file without a request. Does not wait for the change. */
void made_file_touch(struct store *store, const struct chunk_id *file);

/* The works in progress and their requests. Internal to storage, except for quiesce. */
struct made_files;
struct made_files *made_files_new(void);
/* Gives up the works in progress and begins no other. Returns at once. */
void made_files_quiesce(struct made_files *files);
void made_files_free(struct made_files *files); /* no work may be in progress; NULL is fine */

#endif
