/* Every pack of the store by its id: whether it is known, its references and reads, and, if they
 * are in memory, its index and open file. Indexes are bounded in bytes and files in number; the
 * least recently used leave first, pinned ones never. The lock is never held during I/O. Any
 * thread. */
#ifndef STORAGE_PACKS_PACK_CACHE_H
#define STORAGE_PACKS_PACK_CACHE_H

#include "storage/packs/backend.h"
#include "storage/packs/pack_index.h"

struct pack_cache;
struct pack; /* one pack; callers get it pinned */

struct pack_cache_limits {
	size_t index_bytes;
	unsigned open_files;
};
/* `backend` is borrowed. */
struct pack_cache *pack_cache_new(struct backend *backend, const struct pack_cache_limits *limits);
void pack_cache_free(struct pack_cache *cache);

/* Adds a pack that exists now, in the file of its own name. `index` (taken over) may be NULL: it is
 * loaded when it is needed. A growing pack keeps its index in memory, and so does one whose index
 * is not saved yet. */
enum pack_cache_mode { PACK_CACHE_SAVED, PACK_CACHE_UNSAVED, PACK_CACHE_GROWING };
void pack_cache_add(struct pack_cache *cache, const struct pack_id *pack, uint64_t length,
	struct pack_index *index, enum pack_cache_mode mode);
/* Adds a pack as recovery finds it: its file may have another name. */
void pack_cache_add_record(struct pack_cache *cache, const struct pack_record *record);
void pack_cache_set_mode(
	struct pack_cache *cache, const struct pack_id *pack, enum pack_cache_mode mode);
/* The mode of an unknown pack is PACK_CACHE_SAVED. */
enum pack_cache_mode pack_cache_mode(struct pack_cache *cache, const struct pack_id *pack);
/* Makes the pack unknown. A pinned pack lives on until it is unpinned. The caller removes the
 * files; *out_file (may be NULL) is the name of the present one. */
void pack_cache_remove(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_id *out_file);
/* The pack is in another file now, and `index` (taken over) describes it. Holds continue; a pinned
 * pack keeps the old file. */
void pack_cache_replace(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_index *index);
/* The same when some records have other stored bytes: the pack has another form. */
void pack_cache_reform(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_index *index);
/* 0 for an unknown pack */
unsigned pack_cache_form(struct pack_cache *cache, const struct pack_id *pack);
bool pack_cache_knows(struct pack_cache *cache, const struct pack_id *pack);
/* Lists the ids of all known packs. free() the array. */
size_t pack_cache_list(struct pack_cache *cache, struct pack_id **out_packs);
/* Sorts the list and takes out the files of known packs. gc needs it because the catalog may name
 * another file of a pack before the thread that made the change has told the cache. */
void pack_cache_leave_out(struct pack_cache *cache, struct pack_id *files, size_t *count);

/* Whether all of [first, first + count) are checked. A chunk is checked once its stored bytes were
 * read since the start and found right. Chunks of packs that this process wrote or compacted count
 * as checked: a read would only show the page cache. */
bool pack_cache_is_checked(
	struct pack_cache *cache, const struct pack_id *pack, uint32_t first, uint32_t count);
void pack_cache_set_checked(
	struct pack_cache *cache, const struct pack_id *pack, uint32_t first, uint32_t count);
/* After damage was seen in the pack: none of its chunks counts as checked any more. */
void pack_cache_doubt(struct pack_cache *cache, const struct pack_id *pack);

/* References are counted, and held by callers that may yet add catalog rows that name chunks of the
 * pack (an ingest that found some). False, and no reference, when the pack is not known or is
 * retiring. */
bool pack_cache_refer(struct pack_cache *cache, const struct pack_id *pack);
/* The same for any pack, known and retiring or not. */
void pack_cache_refer_again(struct pack_cache *cache, const struct pack_id *pack);
void pack_cache_unrefer(struct pack_cache *cache, const struct pack_id *pack);
bool pack_cache_is_referred(struct pack_cache *cache, const struct pack_id *pack);
/* gc works on the pack: it gets no new references. */
void pack_cache_retire(struct pack_cache *cache, const struct pack_id *pack, bool is_retiring);

/* Reads are counted, also for packs that are not known. A pack has two turns; a read counts for the
 * present turn and names it again at its end. So gc can wait for the reads that began before it
 * looked. */
unsigned pack_cache_hold(struct pack_cache *cache, const struct pack_id *pack);
void pack_cache_unhold(struct pack_cache *cache, const struct pack_id *pack, unsigned turn);
/* From now on reads count for the other turn. False, and nothing changes, while reads of that turn
 * are still open. */
bool pack_cache_turn(struct pack_cache *cache, const struct pack_id *pack);
/* Whether reads of the earlier turn are open. */
bool pack_cache_is_read_from_before(struct pack_cache *cache, const struct pack_id *pack);
/* Whether there are references, or reads of either turn. */
bool pack_cache_is_held(struct pack_cache *cache, const struct pack_id *pack);

/* Pins a pack with its index in memory and, if wanted, its file open. corrupt when the pack is
 * unknown or its index cannot be made. */
struct pack *pack_cache_pin(
	struct pack_cache *cache, const struct pack_id *pack, bool with_file, struct error *err);
/* The same for a thread that must not wait: NULL unless all is in memory. */
struct pack *pack_cache_pin_near(
	struct pack_cache *cache, const struct pack_id *pack, bool with_file);
void pack_cache_unpin(struct pack_cache *cache, struct pack *pack);
const struct pack_id *pack_cache_id(const struct pack *pack);
struct backend_file *pack_file(const struct pack *pack);
/* Copies up to `capacity` adjacent entries from chunk `first` on; 0 when there is no such chunk. */
size_t pack_cache_copy_entries(struct pack_cache *cache, const struct pack *pack, uint32_t first,
	struct pack_entry *out, size_t capacity);
/* Finds the xorb of a chunk, as it was written; false when there is none. */
bool pack_cache_find_xorb(
	struct pack_cache *cache, const struct pack *pack, uint32_t chunk, struct pack_xorb *out);
/* Copies up to `capacity` entries of the present chunks in [*from, end), and moves *from behind the
 * last one. 0 when there are no more. */
size_t pack_cache_copy_present(struct pack_cache *cache, const struct pack *pack, uint32_t *from,
	uint32_t end, struct pack_entry *out, size_t capacity);
/* The index of a pinned pack, valid until it is unpinned; NULL while the pack grows. */
const struct pack_index *pack_cache_sealed_index(struct pack_cache *cache, const struct pack *pack);

/* For the one writer of a growing pack: adds a xorb, and gives its place and the pack's new length;
 * or takes the xorbs from chunk number `chunks` on off its end. */
struct pack_extension {
	uint32_t first; /* chunk number of the xorb's first chunk */
	uint64_t length;
};
struct pack_extension pack_cache_extend(struct pack_cache *cache, const struct pack_id *pack,
	const struct chunk_id *xorb, const struct pack_entry *entries, uint32_t count);
void pack_cache_cut(struct pack_cache *cache, const struct pack_id *pack, uint32_t chunks);

/* The values that the limits bound; for tests. */
size_t pack_cache_index_bytes(struct pack_cache *cache);
unsigned pack_cache_open_files(struct pack_cache *cache);

#endif
