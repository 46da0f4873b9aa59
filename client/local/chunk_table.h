/* Where chunks lie at the server. The table collects the server's answers to questions about single
 * chunks; each answer describes whole xorbs, chunk by chunk, under keyed names. Any thread. */
#ifndef CLIENT_LOCAL_CHUNK_TABLE_H
#define CLIENT_LOCAL_CHUNK_TABLE_H

#include "base/error.h"
#include "chunker/chunk.h"

enum { CHUNK_TABLE_NOWHERE = UINT32_MAX };

struct table_place {
	uint32_t xorb;  /* number in the table; CHUNK_TABLE_NOWHERE: not known */
	uint32_t index; /* of the chunk in the xorb */
};

struct chunk_table;
struct chunk_table *chunk_table_new(void);
void chunk_table_free(struct chunk_table *table); /* NULL is fine */

/* Adds the xorbs of an answer. A xorb that the table has already changes nothing. invalid when
 * `answer` is malformed; then the table has none of its xorbs. */
int chunk_table_add(struct chunk_table *table, struct span answer, struct error *err);
/* Finds a chunk; false when no answer named it. If the chunk directly after `near` in the same xorb
 * is this one, the result is that place, so that the places of a file form long runs. `near` comes
 * from this table or is nowhere. */
bool chunk_table_find(struct chunk_table *table, const struct chunk_id *id, struct table_place near,
	struct table_place *out);

/* `xorb` must be the number of a xorb in the table. */
struct chunk_id chunk_table_xorb_hash(struct chunk_table *table, uint32_t xorb);
/* The number of the xorb; CHUNK_TABLE_NOWHERE when no answer named it. */
uint32_t chunk_table_find_xorb(struct chunk_table *table, const struct chunk_id *hash);
/* For a chunk of a known xorb: its size, and the place that chunk_table_find gives for its content
 * without `near`; that is one place, even when several chunks have this content. False when the
 * xorb has no such chunk. */
bool chunk_table_chunk(struct chunk_table *table, struct table_place place, uint32_t *out_size,
	struct table_place *out_first);

#endif
