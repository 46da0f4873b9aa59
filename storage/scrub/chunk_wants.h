/* Damaged chunks of which a worker may have the bytes, because it holds a step whose files they are
 * from. Answers to leases ask for them (docs/protocol/steps.md, "PutReplica"), and what a worker
 * sends is taken only if it was asked for and has the length and the id of the chunk. Bounded in
 * chunks, and so in bytes. Internally locked; any thread. Internal to storage. */
#ifndef STORAGE_SCRUB_CHUNK_WANTS_H
#define STORAGE_SCRUB_CHUNK_WANTS_H

#include "base/digest/xxh3.h"
#include "base/error.h"
#include "chunker/chunk.h"

enum { CHUNK_WANTS_MAX = 256 };

/* The chunk is these bytes of every file that has this size and digest. */
struct chunk_want {
	struct chunk_id id;
	uint32_t length;
	uint64_t offset;
	uint64_t file_size;
	struct digest128 file_digest;
};
struct want_place { /* the step whose workers may have it */
	struct span bucket;
	struct span run;
	uint64_t step;
};

struct chunk_wants;
struct chunk_wants *chunk_wants_new(void);
void chunk_wants_free(struct chunk_wants *wants);

/* To make a new list: begin, then add, then end, on one thread. Chunks that are on the new list
 * again keep the bytes that were taken. add does nothing once the list is full. */
void chunk_wants_begin(struct chunk_wants *wants);
void chunk_wants_add(
	struct chunk_wants *wants, const struct want_place *place, const struct chunk_want *want);
void chunk_wants_end(struct chunk_wants *wants);

/* What workers that hold the step are to be asked for: up to `capacity`, without what was taken.
 * Takes no lock while nothing is wanted. */
size_t chunk_wants_ask(struct chunk_wants *wants, const struct want_place *place,
	struct chunk_want *out, size_t capacity);
/* Takes the bytes of a chunk that workers of the run were asked for, whichever step. not_found: it
 * is not wanted, or not any more; digest_mismatch: they are other bytes. */
int chunk_wants_take(struct chunk_wants *wants, const struct want_place *place,
	const struct chunk_id *id, struct span bytes, struct error *err);

/* Copies the bytes of the chunk that were taken; false when there are none. `into` has
 * CHUNK_MAX_BYTES. */
bool chunk_wants_copy(
	struct chunk_wants *wants, const struct chunk_id *id, uint8_t *into, size_t *out_len);
/* Whether any bytes were taken that are still here. */
bool chunk_wants_has_bytes(struct chunk_wants *wants);
/* Frees the bytes that were taken and copied: they were used. These chunks are not asked for again
 * before the next list. */
void chunk_wants_drop_bytes(struct chunk_wants *wants);

#endif
