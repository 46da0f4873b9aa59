/* Where chunks lie at the server, as its answers to questions about single chunks said: whole
 * xorbs, chunk by chunk, under keyed names. Any thread. */
#ifndef CLIENT_LOCAL_CHUNK_TABLE_H
#define CLIENT_LOCAL_CHUNK_TABLE_H

#include "base/error.h"
#include "chunker/chunk.h"

enum { CHUNK_TABLE_NOWHERE = UINT32_MAX };

struct table_place {
	uint32_t xorb;  /* number in the table; CHUNK_TABLE_NOWHERE: not known */
	uint32_t index; /* of the chunk in it */
};

struct chunk_table;
struct chunk_table *chunk_table_new(void);
void chunk_table_free(struct chunk_table *table); /* NULL is fine */

/* Takes an answer. The same xorb again changes nothing. invalid when it is no answer; then nothing
 * of it is kept. */
int chunk_table_add(struct chunk_table *table, struct span answer, struct error *err);
/* False when no answer named the chunk. Where it lies behind `near` (one further in the same xorb),
 * it is found there. */
bool chunk_table_find(struct chunk_table *table, const struct chunk_id *id, struct table_place near,
	struct table_place *out);

struct chunk_id chunk_table_xorb_hash(struct chunk_table *table, uint32_t xorb);
/* CHUNK_TABLE_NOWHERE when no answer named the xorb. */
uint32_t chunk_table_find_xorb(struct chunk_table *table, const struct chunk_id *hash);
/* Of a chunk of a known xorb: its size, and the one place that chunk_table_find gives for what it
 * holds, whatever else holds it too. False when the xorb has no such chunk. */
bool chunk_table_chunk(struct chunk_table *table, struct table_place place, uint32_t *out_size,
	struct table_place *out_first);

#endif
