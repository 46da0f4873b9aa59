/* All hashes are BLAKE3 with a key that says what is hashed: content (data_key) and ranges
 * (verify_key) here, nodes and files in chunker/merkle.c. So the hash of one kind of thing never
 * equals that of another kind. The keys are fixed by hub-xet. */
#include "chunker/chunk_hash.h"

#include "base/digest/blake3_stream.h"
#include "base/error.h"
#include "chunker/merkle.h"

static const uint8_t data_key[32] = {
	0x66,
	0x97,
	0xf5,
	0x77,
	0x5b,
	0x95,
	0x50,
	0xde,
	0x31,
	0x35,
	0xcb,
	0xac,
	0xa5,
	0x97,
	0x18,
	0x1c,
	0x9d,
	0xe4,
	0x21,
	0x10,
	0x9b,
	0xeb,
	0x2b,
	0x58,
	0xb4,
	0xd0,
	0xb0,
	0x4b,
	0x93,
	0xad,
	0xf2,
	0x29,
};
static const uint8_t verify_key[32] = {
	0x7f,
	0x18,
	0x57,
	0xd6,
	0xce,
	0x56,
	0xed,
	0x66,
	0x12,
	0x7f,
	0xf9,
	0x13,
	0xe7,
	0xa5,
	0xc3,
	0xf3,
	0xa4,
	0xcd,
	0x26,
	0xd5,
	0xb5,
	0xdb,
	0x49,
	0xe6,
	0x41,
	0x24,
	0x98,
	0x7f,
	0x28,
	0xfb,
	0x94,
	0xc3,
};

static void add_all(struct merkle *merkle, const struct chunk_entry *chunks, size_t count);

struct chunk_id chunk_hash_keyed(const uint8_t key[32], struct span bytes)
{
	struct chunk_id id;
	ASSERT(key != NULL);
	blake3(key, bytes, id.bytes);
	return id;
}

struct chunk_id chunk_hash(struct span content)
{
	return chunk_hash_keyed(data_key, content);
}

struct chunk_id chunk_hash_xorb(const struct chunk_entry *chunks, size_t count)
{
	struct merkle merkle;
	add_all(&merkle, chunks, count);
	return merkle_root(&merkle);
}

struct chunk_id chunk_hash_file(const struct chunk_entry *chunks, size_t count)
{
	struct merkle merkle;
	add_all(&merkle, chunks, count);
	return merkle_file(&merkle);
}

struct chunk_id chunk_hash_range(const struct chunk_entry *chunks, size_t count)
{
	ASSERT(chunks != NULL || count == 0);
	struct chunk_id id;
	struct blake3_stream *const stream = blake3_stream_new(verify_key);
	for (size_t i = 0; i < count; i++)
		blake3_stream_add(stream, span_of(chunks[i].id.bytes, CHUNK_ID_BYTES));
	blake3_stream_result(stream, id.bytes);
	blake3_stream_free(stream);
	return id;
}

static void add_all(struct merkle *merkle, const struct chunk_entry *chunks, size_t count)
{
	ASSERT(chunks != NULL || count == 0);
	merkle_init(merkle);
	for (size_t i = 0; i < count; i++)
		merkle_add(merkle, &chunks[i]);
}
