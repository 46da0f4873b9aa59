/* Chunk, xorb, file and range hashes as hub-xet defines them, all made with BLAKE3. Any thread. */
#ifndef CHUNKER_CHUNK_HASH_H
#define CHUNKER_CHUNK_HASH_H

#include "chunker/chunk.h"

struct chunk_id chunk_hash(struct span content);
/* The xorb hash: the Merkle root over (id, size) of its chunks; 32 zero bytes for no chunks.
 * chunker/merkle.h hashes lists that are too long to hold. */
struct chunk_id chunk_hash_xorb(const struct chunk_entry *chunks, size_t count);
/* The file hash, from all chunks of the file in order; 32 zero bytes for no chunks. */
struct chunk_id chunk_hash_file(const struct chunk_entry *chunks, size_t count);
/* The range hash of a shard's term, from the ids of its chunks. */
struct chunk_id chunk_hash_range(const struct chunk_entry *chunks, size_t count);
/* BLAKE3 of `bytes` with `key`. Dedup answers carry it in place of the ids of chunks. */
struct chunk_id chunk_hash_keyed(const uint8_t key[32], struct span bytes);

#endif
