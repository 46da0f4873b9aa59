/* Every pack of the store by id: whether it is known, who holds it, and, as far as they are in
 * memory, its index and open file. Indexes are bounded in bytes and files in number; the least
 * recently used go first, those pinned never. The lock is never held during I/O. Any thread. */
#ifndef STORAGE_PACKS_PACK_CACHE_H
#define STORAGE_PACKS_PACK_CACHE_H

#include "storage/packs/backend.h"
#include "storage/packs/pack_index.h"

struct pack_cache;
struct pack; /* one pack, pinned */

struct pack_cache_limits {
	size_t index_bytes;
	unsigned open_files;
};
/* backend: borrowed */
struct pack_cache *pack_cache_new(struct backend *backend, const struct pack_cache_limits *limits);
void pack_cache_free(struct pack_cache *cache);

/* A pack that exists now, in the file of that name. `index` (taken over) may be NULL: it is loaded
 * when wanted. A growing pack keeps its index in memory, and so does one whose index is not saved
 * yet. */
enum pack_cache_mode { PACK_CACHE_SAVED, PACK_CACHE_UNSAVED, PACK_CACHE_GROWING };
void pack_cache_add(struct pack_cache *cache, const struct pack_id *pack, uint64_t length,
	struct pack_index *index, enum pack_cache_mode mode);
/* A pack as recovery finds it: its file may have another name. */
void pack_cache_add_record(struct pack_cache *cache, const struct pack_record *record);
void pack_cache_set_mode(
	struct pack_cache *cache, const struct pack_id *pack, enum pack_cache_mode mode);
/* unknown: PACK_CACHE_SAVED */
enum pack_cache_mode pack_cache_mode(struct pack_cache *cache, const struct pack_id *pack);
/* The pack is no longer known; what is pinned lives on until unpinned. Its files are the caller's
 * business; *out_file (may be NULL) is the name of the one it had. */
void pack_cache_remove(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_id *out_file);
/* The pack lies in another file now: `index` (taken over) says what it holds and where. Holds go
 * on, what is pinned keeps the old file. */
void pack_cache_replace(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_index *index);
/* The same, and some records have other stored bytes: the pack has another form. */
void pack_cache_reform(
	struct pack_cache *cache, const struct pack_id *pack, struct pack_index *index);
unsigned pack_cache_form(struct pack_cache *cache, const struct pack_id *pack); /* unknown: 0 */
bool pack_cache_knows(struct pack_cache *cache, const struct pack_id *pack);
/* Ids of all known packs; free() the array. */
size_t pack_cache_list(struct pack_cache *cache, struct pack_id **out_packs);
/* Takes from the list, which it sorts, the files that known packs lie in: a change that gives a
 * pack another file is seen by gc before its maker has told the cache. */
void pack_cache_leave_out(struct pack_cache *cache, struct pack_id *files, size_t *count);

/* A chunk is checked once its stored bytes were read since the start and found right. Those of
 * packs that this process wrote, or compacted, count so: a read would show what the page cache
 * holds of them. Whether all of [first, first + count) are. */
bool pack_cache_is_checked(
	struct pack_cache *cache, const struct pack_id *pack, uint32_t first, uint32_t count);
void pack_cache_set_checked(
	struct pack_cache *cache, const struct pack_id *pack, uint32_t first, uint32_t count);
/* Damage was seen in the pack: none of its chunks counts as checked any more. */
void pack_cache_doubt(struct pack_cache *cache, const struct pack_id *pack);

/* References: held by whoever may yet put rows into the catalog that name the pack's chunks (an
 * ingest that found some). Counted. False, and no hold, when the pack is not known or retiring. */
bool pack_cache_refer(struct pack_cache *cache, const struct pack_id *pack);
/* whatever the pack is */
void pack_cache_refer_again(struct pack_cache *cache, const struct pack_id *pack);
void pack_cache_unrefer(struct pack_cache *cache, const struct pack_id *pack);
bool pack_cache_is_referred(struct pack_cache *cache, const struct pack_id *pack);
/* gc works on the pack: no new references. */
void pack_cache_retire(struct pack_cache *cache, const struct pack_id *pack, bool is_retiring);

/* Reads: counted, and may be taken for packs that are not known. They count for the pack's turn, of
 * which there are two, and each says at its end for which it counted: so gc can wait for those that
 * began before it looked. */
unsigned pack_cache_hold(struct pack_cache *cache, const struct pack_id *pack);
void pack_cache_unhold(struct pack_cache *cache, const struct pack_id *pack, unsigned turn);
/* Later reads count for the other turn; false, and nothing changes, while some of that one are
 * still open. */
bool pack_cache_turn(struct pack_cache *cache, const struct pack_id *pack);
/* Whether reads of before the turn are open. */
bool pack_cache_is_read_from_before(struct pack_cache *cache, const struct pack_id *pack);
/* References or reads of any turn. */
bool pack_cache_is_held(struct pack_cache *cache, const struct pack_id *pack);

/* Pins a pack with its index in memory and, if wanted, its file open. corrupt when the pack is
 * unknown or its index cannot be made. */
struct pack *pack_cache_pin(
	struct pack_cache *cache, const struct pack_id *pack, bool with_file, struct error *err);
void pack_cache_unpin(struct pack_cache *cache, struct pack *pack);
struct backend_file *pack_file(const struct pack *pack);
/* Up to `capacity` entries from chunk `first` on; 0 when there is no such chunk. */
size_t pack_cache_copy_entries(struct pack_cache *cache, const struct pack *pack, uint32_t first,
	struct pack_entry *out, size_t capacity);
/* The xorb of a chunk, as it was written; false when there is none. */
bool pack_cache_find_xorb(
	struct pack_cache *cache, const struct pack *pack, uint32_t chunk, struct pack_xorb *out);
/* Up to `capacity` entries of those chunks from *from to `end` that are there; *from is moved
 * behind the last. 0: there are no more. */
size_t pack_cache_copy_present(struct pack_cache *cache, const struct pack *pack, uint32_t *from,
	uint32_t end, struct pack_entry *out, size_t capacity);
/* The index of a pinned pack, until unpinned; NULL while the pack grows. */
const struct pack_index *pack_cache_sealed_index(struct pack_cache *cache, const struct pack *pack);

/* For the one writer of a growing pack. */
void pack_cache_extend(struct pack_cache *cache, const struct pack_id *pack,
	const struct chunk_id *xorb, const struct pack_entry *entries, uint32_t count,
	uint32_t *out_first, uint64_t *out_length);
void pack_cache_cut(struct pack_cache *cache, const struct pack_id *pack, uint32_t chunks);

/* What the limits bound; for tests. */
size_t pack_cache_index_bytes(struct pack_cache *cache);
unsigned pack_cache_open_files(struct pack_cache *cache);

#endif
