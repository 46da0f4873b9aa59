/* The tables `sessions` and `session_links` (docs/FORMAT.md, "Sessions"). Internal to storage; used
 * on the thread of the connection. */
#ifndef STORAGE_BUCKETS_SESSION_ROW_H
#define STORAGE_BUCKETS_SESSION_ROW_H

#include "storage/buckets/session.h"
#include "storage/db/db.h"

int session_row_add(struct db *db, const struct session_record *session, struct error *err);
/* Reads a row, ended or not, with texts in the arena. Returns 1, 0 when there is none, -1 on
 * error. */
int session_row_read(struct db *db, struct span id, struct arena *arena, struct session_record *out,
	struct error *err);
int session_row_touch(
	struct db *db, struct span id, int64_t seen_ms, int64_t ends_ms, struct error *err);
int session_row_remove(struct db *db, struct span id, struct error *err);
/* The sessions and links of a key. */
int session_row_remove_of_key(struct db *db, struct span key_id, struct error *err);
/* Drops the sessions that were not used for the longest time, until the key has at most `of_key`
 * and all keys together `in_all`. */
int session_row_bound(
	struct db *db, struct span key_id, int64_t of_key, int64_t in_all, struct error *err);
/* Lists the sessions that have not ended; of one key, or all for an empty id. */
int session_row_list(struct db *db, struct span key_id, int64_t now_ms, struct arena *arena,
	struct session_list *out, struct error *err);

int session_row_add_link(
	struct db *db, struct span id, struct span key_id, int64_t ends_ms, struct error *err);
/* The key of a link that has not ended, in the arena. Returns 1, 0 when there is none, -1. */
int session_row_find_link(struct db *db, struct span id, int64_t now_ms, struct arena *arena,
	struct span *out_key_id, struct error *err);
int session_row_remove_link(struct db *db, struct span id, struct error *err);
int session_row_bound_links(struct db *db, int64_t in_all, struct error *err);

/* For the sweeper: whether a session or a link has ended; and removes some hundred of them.
 * *out_more: there were any. */
int session_row_has_ended(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
int session_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err);

#endif
