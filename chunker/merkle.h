/* Builds the Merkle root over a list of chunks while the list goes by. Its memory does not grow
 * with the list. Any thread; one at a time per tree. docs/FORMAT.md, "Hashes". */
#ifndef CHUNKER_MERKLE_H
#define CHUNKER_MERKLE_H

#include "chunker/chunk.h"

enum {
	MERKLE_FANOUT = 9, /* most children of a node */
	/* enough for 2^64 chunks: all nodes but the last have at least three children */
	MERKLE_LEVELS = 42
};

struct merkle {
	struct merkle_level {
		struct chunk_entry pending[MERKLE_FANOUT];
		size_t count;
		bool grouped; /* a node of this level's entries exists */
	} levels[MERKLE_LEVELS];
};

void merkle_init(struct merkle *merkle);
void merkle_add(struct merkle *merkle, const struct chunk_entry *chunk);
/* Ends the tree and returns its root: 32 zero bytes for no chunks, the chunk's own id for one. Only
 * merkle_init may follow. */
struct chunk_id merkle_root(struct merkle *merkle);
/* The same, but returns the hash of the file that consists of these chunks: 32 zero bytes for no
 * chunks. */
struct chunk_id merkle_file(struct merkle *merkle);

#endif
