/* The root over a list of chunks, built while the list goes by: memory does not grow with it. Any
 * thread; one at a time per tree. docs/FORMAT.md, "Hashes". */
#ifndef CHUNKER_MERKLE_H
#define CHUNKER_MERKLE_H

#include "chunker/chunk.h"

enum {
	MERKLE_FANOUT = 9, /* most children of a node */
	/* nodes have at least three children except at the end: enough for 2^64 chunks */
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
/* Ends the tree: 32 zero bytes for no chunks, the chunk's own id for one. Only merkle_init may
 * follow. */
struct chunk_id merkle_root(struct merkle *merkle);
/* The same for the hash of a file that consists of these chunks: 32 zero bytes for none. */
struct chunk_id merkle_file(struct merkle *merkle);

#endif
