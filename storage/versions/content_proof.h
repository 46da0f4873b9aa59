/* A proof that stored bytes can be read, for code that leads others to bytes that nobody sends: a
 * shard, a line of a batch, a step. Bytes that were read and found right since the start are not
 * read again, so only the first proof of a chunk costs anything. It waits for the disk: call it on
 * a helper. One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_CONTENT_PROOF_H
#define STORAGE_VERSIONS_CONTENT_PROOF_H

#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/versions/version.h"

struct content_proof;
struct content_proof *content_proof_new(struct store *store);
/* Adds the bytes of a version; those of a derived version are the bytes of all its sources. Call it
 * within the snapshot that showed the version: from then on the proof holds the packs to be
 * read. */
int content_proof_add(struct content_proof *proof, struct db *db, const struct version *version,
	struct error *err);
/* Reads about 64 MiB. 1: there is more; 0: all bytes are right; -1: content_damaged, which names
 * the content `name`, or a failed read that says nothing about damage. */
int content_proof_step(struct content_proof *proof, struct span name, struct error *err);
/* Reads everything that is left. 0 or -1. */
int content_proof_end(struct content_proof *proof, struct span name, struct error *err);
void content_proof_free(struct content_proof *proof); /* NULL is fine */

#endif
