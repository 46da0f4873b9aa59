/* Answers name chunks by keyed hashes, and each answer may have another key. So a search computes
 * the chunk's name under every key seen so far (KEYS_MAX) and looks each name up in one hash table
 * with open addressing. Entries are never removed: a place that was given out stays valid. The
 * limits bound what a hostile server can store here; an answer beyond them is ignored. */
#include "client/local/chunk_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"

enum { KEYS_MAX = 16, XORBS_MAX = 1 << 20, ENTRIES_MAX = 1 << 28 };

struct entry {
	struct chunk_id name; /* keyed */
	uint32_t size;
	struct table_place place;
};
struct xorb {
	struct chunk_id hash;
	uint32_t key; /* the number of the key that its chunks are named under */
	size_t first; /* the index of its first chunk in entries */
	uint32_t count;
};

struct chunk_table {
	struct lock lock;
	uint8_t keys[KEYS_MAX][SHARD_KEY_BYTES];
	uint32_t key_count;
	struct xorb *xorbs;
	uint32_t xorb_count;
	struct entry *entries;
	size_t entry_count, entry_capacity;
	/* the number of an entry plus one; 0: free. The first entry of a name keeps its slot */
	uint32_t *slots;
	size_t slot_count; /* a power of two, more than twice the entries */
};

static bool take_key(struct chunk_table *table, const uint8_t key[SHARD_KEY_BYTES], uint32_t *out);
static void add_xorb(struct chunk_table *table, const struct shard_xorb *xorb, uint32_t key);
static uint32_t find_xorb(const struct chunk_table *table, const struct chunk_id *hash);
static void make_room(struct chunk_table *table, size_t more);
static void index_entry(const struct chunk_table *table, size_t number);
static uint32_t *slot_of(const struct chunk_table *table, const struct chunk_id *name);
static bool is_behind(
	const struct chunk_table *table, const struct chunk_id *id, struct table_place near);
static struct chunk_id name_under(
	const struct chunk_table *table, uint32_t key, const struct chunk_id *id);

struct chunk_table *chunk_table_new(void)
{
	struct chunk_table *const table = memory_new(sizeof(*table));
	lock_init(&table->lock, LOCK_CHUNK_TABLE);
	table->slot_count = 1024;
	table->slots = memory_new_array(table->slot_count, sizeof(*table->slots));
	return table;
}

void chunk_table_free(struct chunk_table *table)
{
	if (table == NULL)
		return;
	lock_release(&table->lock);
	free(table->slots);
	free(table->entries);
	free(table->xorbs);
	free(table);
}

/* The key comes after the xorbs in an answer, so the answer is read twice: first for the key. */
int chunk_table_add(struct chunk_table *table, struct span answer, struct error *err)
{
	struct shard_reader reader;
	struct shard_answer facts;
	struct shard_xorb xorb;
	uint32_t key;
	int more = 1;
	if (shard_reader_open(&reader, answer, err) != 0 ||
		shard_reader_answer(&reader, &facts, err) != 0)
		return -1;
	if (shard_reader_open(&reader, answer, err) != 0)
		return -1;
	lock_enter(&table->lock);
	const bool has_key = take_key(table, facts.key, &key);
	while (has_key && (more = shard_reader_xorb(&reader, &xorb, err)) > 0)
		add_xorb(table, &xorb, key);
	lock_leave(&table->lock);
	return has_key && more < 0 ? -1 : 0;
}

bool chunk_table_find(struct chunk_table *table, const struct chunk_id *id, struct table_place near,
	struct table_place *out)
{
	bool found = false;
	lock_enter(&table->lock);
	if (is_behind(table, id, near)) {
		*out = (struct table_place){.xorb = near.xorb, .index = near.index + 1};
		found = true;
	}
	for (uint32_t key = 0; key < table->key_count && !found; key++) {
		const struct chunk_id name = name_under(table, key, id);
		const uint32_t number = *slot_of(table, &name);
		found = number != 0;
		if (found)
			*out = table->entries[number - 1].place;
	}
	lock_leave(&table->lock);
	return found;
}

struct chunk_id chunk_table_xorb_hash(struct chunk_table *table, uint32_t xorb)
{
	lock_enter(&table->lock);
	ASSERT(xorb < table->xorb_count);
	const struct chunk_id hash = table->xorbs[xorb].hash;
	lock_leave(&table->lock);
	return hash;
}

uint32_t chunk_table_find_xorb(struct chunk_table *table, const struct chunk_id *hash)
{
	lock_enter(&table->lock);
	const uint32_t found = find_xorb(table, hash);
	lock_leave(&table->lock);
	return found;
}

bool chunk_table_chunk(struct chunk_table *table, struct table_place place, uint32_t *out_size,
	struct table_place *out_first)
{
	lock_enter(&table->lock);
	const bool found =
		place.xorb < table->xorb_count && place.index < table->xorbs[place.xorb].count;
	if (found) {
		const struct entry *const entry =
			&table->entries[table->xorbs[place.xorb].first + place.index];
		*out_size = entry->size;
		*out_first = table->entries[*slot_of(table, &entry->name) - 1].place;
	}
	lock_leave(&table->lock);
	return found;
}

static bool take_key(struct chunk_table *table, const uint8_t key[SHARD_KEY_BYTES], uint32_t *out)
{
	for (*out = 0; *out < table->key_count; (*out)++)
		if (memcmp(table->keys[*out], key, SHARD_KEY_BYTES) == 0)
			return true;
	if (table->key_count == KEYS_MAX)
		return false;
	memcpy(table->keys[table->key_count++], key, SHARD_KEY_BYTES);
	return true;
}

static void add_xorb(struct chunk_table *table, const struct shard_xorb *xorb, uint32_t key)
{
	if (find_xorb(table, &xorb->hash) != CHUNK_TABLE_NOWHERE ||
		table->xorb_count == XORBS_MAX ||
		table->entry_count + xorb->chunk_count > ENTRIES_MAX)
		return;
	make_room(table, xorb->chunk_count);
	ASSERT(table->entry_count + xorb->chunk_count <= table->entry_capacity);
	table->xorbs = memory_grow(table->xorbs, table->xorb_count + 1, sizeof(*table->xorbs));
	table->xorbs[table->xorb_count] = (struct xorb){.hash = xorb->hash,
		.key = key,
		.first = table->entry_count,
		.count = xorb->chunk_count};
	for (uint32_t i = 0; i < xorb->chunk_count; i++) {
		const struct shard_chunk chunk = shard_xorb_chunk(xorb, i);
		table->entries[table->entry_count] = (struct entry){.name = chunk.id,
			.size = chunk.size,
			.place = {.xorb = table->xorb_count, .index = i}};
		index_entry(table, table->entry_count++);
	}
	table->xorb_count++;
}

static uint32_t find_xorb(const struct chunk_table *table, const struct chunk_id *hash)
{
	for (uint32_t i = table->xorb_count; i > 0; i--)
		if (chunk_id_equal(&table->xorbs[i - 1].hash, hash))
			return i - 1;
	return CHUNK_TABLE_NOWHERE;
}

static void make_room(struct chunk_table *table, size_t more)
{
	if (table->entry_count + more > table->entry_capacity) {
		table->entry_capacity = 2 * (table->entry_count + more);
		table->entries =
			memory_grow(table->entries, table->entry_capacity, sizeof(*table->entries));
	}
	if (2 * (table->entry_count + more) < table->slot_count)
		return;
	while (2 * (table->entry_count + more) >= table->slot_count)
		table->slot_count *= 2;
	free(table->slots);
	table->slots = memory_new_array(table->slot_count, sizeof(*table->slots));
	for (size_t i = 0; i < table->entry_count; i++)
		index_entry(table, i);
	ASSERT((table->slot_count & (table->slot_count - 1)) == 0);
}

static void index_entry(const struct chunk_table *table, size_t number)
{
	uint32_t *const slot = slot_of(table, &table->entries[number].name);
	if (*slot == 0)
		*slot = (uint32_t)number + 1;
}

static uint32_t *slot_of(const struct chunk_table *table, const struct chunk_id *name)
{
	uint64_t at;
	memcpy(&at, name->bytes, sizeof(at));
	for (;; at++) {
		uint32_t *const slot = &table->slots[at & (table->slot_count - 1)];
		if (*slot == 0 || chunk_id_equal(&table->entries[*slot - 1].name, name))
			return slot;
	}
}

static bool is_behind(
	const struct chunk_table *table, const struct chunk_id *id, struct table_place near)
{
	if (near.xorb == CHUNK_TABLE_NOWHERE)
		return false;
	ASSERT(near.xorb < table->xorb_count);
	const struct xorb *const xorb = &table->xorbs[near.xorb];
	if (near.index + 1 >= xorb->count)
		return false;
	const struct chunk_id name = name_under(table, xorb->key, id);
	return chunk_id_equal(&table->entries[xorb->first + near.index + 1].name, &name);
}

static struct chunk_id name_under(
	const struct chunk_table *table, uint32_t key, const struct chunk_id *id)
{
	static const uint8_t PLAIN[SHARD_KEY_BYTES] = {0};
	ASSERT(key < table->key_count);
	if (memcmp(table->keys[key], PLAIN, sizeof(PLAIN)) == 0)
		return *id;
	return chunk_hash_keyed(table->keys[key], span_of(id->bytes, sizeof(id->bytes)));
}
