/* Finds out which chunks of a file the server has, with few questions: the file's first chunk, the
 * first behind known ones, and chunks whose ids are multiples of 16 (those the server's index
 * knows). A hit tells of a whole xorb, so all that follows in it needs no question. Each miss
 * doubles how rare a chunk must be to be asked about, up to 1024, and a hit brings the 16 back; so
 * a new file costs some questions for each GiB, and a changed one a question for each xorb. */
#ifndef CLIENT_LOCAL_CHUNK_SEARCH_H
#define CLIENT_LOCAL_CHUNK_SEARCH_H

#include "client/local/chunk_table.h"

/* Asks the server about one chunk and puts what it says into the table: 1, or 0 when it does not
 * know; -1. */
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
