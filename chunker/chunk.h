/* A chunk: up to 128 KiB of content, named by the keyed BLAKE3 of its bytes (Xet "DATA" key).
 * docs/FORMAT.md, "Chunks". */
#ifndef CHUNKER_CHUNK_H
#define CHUNKER_CHUNK_H

#include "base/span.h"

enum {
	CHUNK_MIN_BYTES = 8192,
	CHUNK_TARGET_BYTES = 65536,
	CHUNK_MAX_BYTES = 131072,
	CHUNK_ID_BYTES = 32,
	CHUNK_ID_TEXT_BYTES = 65 /* 64 digits and a NUL */
};

/* Xorb, file and range hashes use this type too: all are 32 bytes with the same text form. */
struct chunk_id {
	uint8_t bytes[CHUNK_ID_BYTES];
};

bool chunk_id_equal(const struct chunk_id *a, const struct chunk_id *b);
/* Writes the Xet text form: four little-endian u64, each as %016x. This is not plain hex. */
void chunk_id_format(const struct chunk_id *id, char out[CHUNK_ID_TEXT_BYTES]);
/* The inverse: accepts exactly 64 lower-case digits. */
bool chunk_id_parse(struct span text, struct chunk_id *out_id);
/* Bytes 24..31 as a little-endian u64. An id is sampled when this word % 16 == 0 (our index) or
 * % 1024 == 0 (Xet dedup). */
uint64_t chunk_id_modulo_word(const struct chunk_id *id);

/* A chunk in a list that is hashed into a xorb or file hash. */
struct chunk_entry {
	struct chunk_id id;
	uint64_t size; /* uncompressed */
};

#endif
