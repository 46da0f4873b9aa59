/* Proof that stored bytes can be read, for who will lead others to bytes that nobody sends: a
 * shard, a line of a batch, a step. What was read since the start and found right is not read
 * again, so that only the first proof of a chunk costs anything. Waits for the disk: on a helper.
 * One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_CONTENT_PROOF_H
#define STORAGE_VERSIONS_CONTENT_PROOF_H

#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/versions/version.h"

struct content_proof;
struct content_proof *content_proof_new(struct store *store);
/* Within the snapshot that showed the version: the packs of what is to be read are held from here
 * on. Of a derived version all that it is made of counts. */
int content_proof_add(struct content_proof *proof, struct db *db, const struct version *version,
	struct error *err);
/* Reads some of it. 1: there is more; 0: all of it is right; -1: content_damaged, naming the
 * content `name`, or what a read gives that tells of no damage. */
int content_proof_step(struct content_proof *proof, struct span name, struct error *err);
/* All of it at once. */
int content_proof_end(struct content_proof *proof, struct span name, struct error *err);
void content_proof_free(struct content_proof *proof); /* NULL is fine */

#endif
