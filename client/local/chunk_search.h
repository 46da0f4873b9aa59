/* Finds out which chunks of a file the server has, with few questions. It asks about the file's
 * first chunk, the first chunk after known ones, and chunks whose ids are multiples of 16 (those
 * that the server's index has). A hit describes a whole xorb, so the chunks that follow in it need
 * no question. Each miss doubles the 16, up to 1024, and a hit resets it. So a new file costs a few
 * questions for each GiB, and a changed file one question for each xorb. */
#ifndef CLIENT_LOCAL_CHUNK_SEARCH_H
#define CLIENT_LOCAL_CHUNK_SEARCH_H

#include "client/local/chunk_table.h"

/* Asks the server about one chunk and puts the answer into the table: 1, or 0 when the server does
 * not know the chunk, or -1 with the error set. */
typedef int chunk_ask_fn(void *owner, const struct chunk_id *id, struct error *err);

struct chunk_search {
	const struct chunk_entry *entries;
	size_t count;
	struct chunk_table *table;
	chunk_ask_fn *ask;
	void *owner;
};
int chunk_search(const struct chunk_search *search, struct error *err);

#endif
