/* The server does not list the chunks of the wanted file by id: it says where they lie, as terms
 * over xorbs. So the seed's chunks are mapped to places first (chunk_search.h) and sorted by place.
 * Then the reconstruction is requested in ranges of ASK_BYTES, and each of its places is looked up
 * among the seed's. Copied chunks go into the map in lots, because the map is sorted after each. */
#include "client/transfer/seed_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "client/local/chunk_search.h"
#include "client/local/file_chunks.h"

enum { ASK_BYTES = 1 << 28, PLACE_SHIFT = 32, COPIED_MOST = 1024 };

struct seed_chunk {
	uint64_t place;  /* in the table: xorb and index as one number */
	uint64_t offset; /* in the seed */
	struct chunk_id id;
};

/* One seed at a time. */
struct seed {
	const struct xet_fetch *fetch;
	const struct xet_remote *xet;
	struct file_map *map;
	const char *path;
	int fd;
	struct chunk_table *table;
	struct file_chunks chunks;
	struct seed_chunk *known; /* sorted by place */
	size_t known_count;
	struct map_chunk *copied; /* not yet in the map */
	size_t copied_count;
	uint8_t content[CHUNK_MAX_BYTES];
};

static int copy_seed(const struct xet_fetch *fetch, const struct xet_remote *xet, const char *path,
	struct file_map *map, struct error *err);
static int copy_all(struct seed *seed, struct error *err);
static int seed_copy_ask(void *owner, const struct chunk_id *id, struct error *err);
static void list_known(struct seed *seed);
static uint64_t place_number(struct table_place place);
static int by_place(const void *left, const void *right);
static int copy_range(struct seed *seed, uint64_t from, uint64_t to, struct error *err);
static int copy_term(
	struct seed *seed, const struct fetch_term *term, uint64_t offset, struct error *err);
static int copy_chunk(struct seed *seed, const struct seed_chunk *from, uint64_t offset,
	uint32_t size, struct error *err);
static int book_copied(struct seed *seed, struct error *err);

int seed_copy(const struct xet_fetch *fetch, const struct xet_remote *xet, const char *const *seeds,
	size_t seed_count, struct file_map *map, struct error *err)
{
	struct map_gap gap;
	for (size_t i = 0; i < seed_count && file_map_gap(map, 0, &gap); i++)
		if (copy_seed(fetch, xet, seeds[i], map, err) != 0)
			return -1;
	return 0;
}

static int copy_seed(const struct xet_fetch *fetch, const struct xet_remote *xet, const char *path,
	struct file_map *map, struct error *err)
{
	struct error failure = {0};
	struct file_facts facts;
	/* this excludes pipes, where open would wait for the other end */
	if (file_facts_read(path, &facts, &failure) != 0)
		return 0;
	struct seed *const seed = memory_new(sizeof(*seed));
	seed->fetch = fetch;
	seed->xet = xet;
	seed->map = map;
	seed->path = path;
	seed->table = chunk_table_new();
	seed->copied = memory_new_array(COPIED_MOST, sizeof(*seed->copied));
	seed->fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = 0;
	if (seed->fd >= 0 &&
		file_chunks_read(path, remote_stop(xet->remote), &seed->chunks, &failure) == 0)
		result = copy_all(seed, err);
	if (seed->fd >= 0)
		close(seed->fd);
	free(seed->copied);
	free(seed->known);
	file_chunks_release(&seed->chunks);
	chunk_table_free(seed->table);
	free(seed);
	return result;
}

static int copy_all(struct seed *seed, struct error *err)
{
	const struct chunk_search search = {.entries = seed->chunks.entries,
		.count = seed->chunks.count,
		.table = seed->table,
		.ask = seed_copy_ask,
		.owner = seed};
	int result = chunk_search(&search, err);
	list_known(seed);
	for (uint64_t at = 0; at < seed->fetch->size && result == 0 && seed->known_count > 0;
		at += ASK_BYTES) {
		const uint64_t left = seed->fetch->size - at;
		result = copy_range(seed, at, at + (left < ASK_BYTES ? left : ASK_BYTES), err);
	}
	return result;
}

static int seed_copy_ask(void *owner, const struct chunk_id *id, struct error *err)
{
	const struct seed *const seed = owner;
	return xet_remote_ask(seed->xet, id, seed->table, err);
}

static void list_known(struct seed *seed)
{
	const struct table_place nowhere = {.xorb = CHUNK_TABLE_NOWHERE};
	uint64_t offset = 0;
	seed->known = memory_new_array(seed->chunks.count + 1, sizeof(*seed->known));
	for (size_t i = 0; i < seed->chunks.count; i++) {
		const struct chunk_entry *const entry = &seed->chunks.entries[i];
		struct table_place place;
		if (chunk_table_find(seed->table, &entry->id, nowhere, &place))
			seed->known[seed->known_count++] = (struct seed_chunk){
				.place = place_number(place), .offset = offset, .id = entry->id};
		offset += entry->size;
	}
	if (seed->known_count > 0)
		qsort(seed->known, seed->known_count, sizeof(*seed->known), by_place);
}

static uint64_t place_number(struct table_place place)
{
	return (uint64_t)place.xorb << PLACE_SHIFT | place.index;
}

static int by_place(const void *left, const void *right)
{
	const struct seed_chunk *const a = left;
	const struct seed_chunk *const b = right;
	return a->place < b->place ? -1 : a->place > b->place ? 1 : 0;
}

static int copy_range(struct seed *seed, uint64_t from, uint64_t to, struct error *err)
{
	struct fetch_plan plan;
	if (xet_remote_reconstruct(seed->xet, &seed->fetch->file, from, to, &plan, err) != 0)
		return -1;
	int result = 0;
	uint64_t offset = from - plan.skip;
	for (size_t i = 0; i < plan.term_count && result == 0; i++) {
		result = copy_term(seed, &plan.terms[i], offset, err);
		offset += plan.terms[i].bytes;
	}
	fetch_plan_release(&plan);
	return result == 0 ? book_copied(seed, err) : -1;
}

static int copy_term(
	struct seed *seed, const struct fetch_term *term, uint64_t offset, struct error *err)
{
	struct table_place place = {.xorb = chunk_table_find_xorb(seed->table, &term->xorb)};
	struct table_place first;
	uint32_t size;
	int result = 0;
	for (place.index = term->first; place.index < term->end && result == 0; place.index++) {
		if (place.xorb == CHUNK_TABLE_NOWHERE ||
			!chunk_table_chunk(seed->table, place, &size, &first))
			return 0;
		if (size > CHUNK_MAX_BYTES || offset + size > seed->fetch->size)
			return 0;
		const struct seed_chunk wanted = {.place = place_number(first)};
		const struct seed_chunk *const found = bsearch(
			&wanted, seed->known, seed->known_count, sizeof(*seed->known), by_place);
		if (found != NULL)
			result = copy_chunk(seed, found, offset, size, err);
		offset += size;
	}
	return result;
}

/* Copies the chunk if its place is free. A chunk that changed after the seed was read is not
 * copied. */
static int copy_chunk(struct seed *seed, const struct seed_chunk *from, uint64_t offset,
	uint32_t size, struct error *err)
{
	struct error ignored = {0};
	struct map_gap gap;
	ASSERT(size <= sizeof(seed->content) && seed->copied_count < COPIED_MOST);
	if (!file_map_gap(seed->map, offset, &gap) || gap.from != offset || gap.to < offset + size)
		return 0;
	const struct iovec content = {.iov_base = seed->content, .iov_len = size};
	if (file_read_at(file_system(), seed->fd, content, (off_t)from->offset, seed->path,
		    &ignored) != 0)
		return 0;
	const struct map_chunk chunk = {
		.offset = offset, .size = size, .id = chunk_hash(span_of(seed->content, size))};
	if (!chunk_id_equal(&chunk.id, &from->id))
		return 0;
	if (file_write_at(seed->fetch->files, seed->fetch->fd, span_of(seed->content, size),
		    (off_t)offset, seed->fetch->path, err) != 0)
		return -1;
	progress_add(seed->fetch->progress, size);
	seed->copied[seed->copied_count++] = chunk;
	return seed->copied_count == COPIED_MOST ? book_copied(seed, err) : 0;
}

/* Moves the copied chunks into the map. */
static int book_copied(struct seed *seed, struct error *err)
{
	const size_t count = seed->copied_count;
	seed->copied_count = 0;
	return file_map_add(seed->map, seed->copied, count, err);
}
