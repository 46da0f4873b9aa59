/* Identities: chunk, xorb, file and range hashes as hub-xet defines them; over BLAKE3 (its one
 * home). Any thread. */
#ifndef CHUNKER_CHUNK_HASH_H
#define CHUNKER_CHUNK_HASH_H

#include "chunker/chunk.h"

struct chunk_id chunk_hash(struct span content);
/* Merkle root over (id, size): the xorb hash; 32 zero bytes for none. Lists too long to hold:
 * chunker/merkle.h. */
struct chunk_id chunk_hash_xorb(const struct chunk_entry *chunks, size_t count);
/* File hash: from all chunks of the file in order; 32 zero bytes for none. */
struct chunk_id chunk_hash_file(const struct chunk_entry *chunks, size_t count);
struct chunk_id chunk_hash_range(const struct chunk_entry *chunks, size_t count);
/* keyed(key, id): what dedup answers carry. */
struct chunk_id chunk_hash_keyed(const uint8_t key[32], struct span bytes);

#endif
