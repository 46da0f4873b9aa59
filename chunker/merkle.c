/* Each level gathers a group of entries; a full group becomes one entry of the level above. A group
 * ends with its ninth entry, or earlier with its third or a later entry whose id is 0 modulo 4.
 * This rule needs no look ahead, so the list may stream. At the end, the entries that are left on a
 * level form a last group, even a single entry. Only a single entry that is alone on its level
 * forms no group: it is the root. */
#include "chunker/merkle.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "chunker/chunk_hash.h"

enum {
	GROUP_MIN = 3,
	CUT_MODULO = 4,
	LINE_BYTES = CHUNK_ID_TEXT_BYTES - 1 + 3 + 20 + 1 /* id, " : ", a u64, newline */
};

static const uint8_t node_key[32] = {
	0x01,
	0x7e,
	0xc5,
	0xc7,
	0xa5,
	0x47,
	0x29,
	0x96,
	0xfd,
	0x94,
	0x66,
	0x66,
	0xb4,
	0x8a,
	0x02,
	0xe6,
	0x5d,
	0xdd,
	0x53,
	0x6f,
	0x37,
	0xc7,
	0x6d,
	0xd2,
	0xf8,
	0x63,
	0x52,
	0xe6,
	0x4a,
	0x53,
	0x71,
	0x3f,
};
static const uint8_t file_key[32] = {0};

static void add_at(struct merkle *merkle, size_t depth, struct chunk_entry entry);
static bool group_is_full(const struct merkle_level *level);
static struct chunk_entry group_close(struct merkle_level *level);

void merkle_init(struct merkle *merkle)
{
	for (size_t depth = 0; depth < MERKLE_LEVELS; depth++) {
		merkle->levels[depth].count = 0;
		merkle->levels[depth].grouped = false;
	}
}

void merkle_add(struct merkle *merkle, const struct chunk_entry *chunk)
{
	add_at(merkle, 0, *chunk);
}

struct chunk_id merkle_root(struct merkle *merkle)
{
	for (size_t depth = 0; depth < MERKLE_LEVELS; depth++) {
		struct merkle_level *const level = &merkle->levels[depth];
		if (!level->grouped && level->count == 1)
			return level->pending[0].id;
		if (level->count > 0)
			add_at(merkle, depth + 1, group_close(level));
	}
	return (struct chunk_id){0};
}

struct chunk_id merkle_file(struct merkle *merkle)
{
	const bool empty = merkle->levels[0].count == 0 && !merkle->levels[0].grouped;
	const struct chunk_id root = merkle_root(merkle);
	return empty ? root : chunk_hash_keyed(file_key, span_of(root.bytes, CHUNK_ID_BYTES));
}

static void add_at(struct merkle *merkle, size_t depth, struct chunk_entry entry)
{
	for (;; depth++) {
		ASSERT(depth < MERKLE_LEVELS);
		struct merkle_level *const level = &merkle->levels[depth];
		ASSERT(level->count < MERKLE_FANOUT);
		level->pending[level->count++] = entry;
		if (!group_is_full(level))
			return;
		entry = group_close(level);
	}
}

static bool group_is_full(const struct merkle_level *level)
{
	if (level->count < GROUP_MIN)
		return false;
	return level->count == MERKLE_FANOUT ||
		chunk_id_modulo_word(&level->pending[level->count - 1].id) % CUT_MODULO == 0;
}

/* Hashes one line per child, "<id> : <size>\n", and empties the group. */
static struct chunk_entry group_close(struct merkle_level *level)
{
	ASSERT(level->count > 0 && level->count <= MERKLE_FANOUT);
	char text[MERKLE_FANOUT * LINE_BYTES + 1];
	size_t len = 0;
	uint64_t size = 0;
	for (size_t i = 0; i < level->count; i++) {
		const struct chunk_entry *const child = &level->pending[i];
		chunk_id_format(&child->id, text + len);
		len += CHUNK_ID_TEXT_BYTES - 1;
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, " : %" PRIu64 "\n", child->size);
		size += child->size;
	}
	level->count = 0;
	level->grouped = true;
	return (struct chunk_entry){
		.id = chunk_hash_keyed(node_key, span_of(text, len)), .size = size};
}
