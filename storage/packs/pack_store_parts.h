/* The inside of the pack store, for its own files: pack_store.c (reading), shared_pack.c (the pack
 * of small uploads), pack_recovery.c (start), pack_feed.c (sealed packs enter the chunk index); and
 * for the rooms that write packs themselves: ingest, upkeep (gc) and start. Internal to storage. */
#ifndef STORAGE_PACKS_PACK_STORE_PARTS_H
#define STORAGE_PACKS_PACK_STORE_PARTS_H

#include "base/thread/lock.h"
#include "base/thread/md5_pool.h"
#include "storage/packs/chunk_map.h"
#include "storage/packs/pack_cache.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/pack_writer.h"
#include "storage/packs/xorb_builder.h"

enum { PACK_STORE_IDLE_SCRATCHES = 4 };

/* The memory for encoding or decoding one chunk. It is taken for the time of one call, so that ten
 * thousand idle streams need none. */
struct pack_scratch {
	struct pack_scratch *next;
	struct codec_context *codec;
	uint8_t stored[PACK_STORED_MAX_BYTES];
};

/* How far a shared pack has come. */
struct shared_mark {
	uint64_t length;
	uint32_t chunks;
	enum pack_state state;
};
struct shared_pack {
	struct shared_pack *next;
	struct pack_writer *writer;
	struct shared_mark now;       /* written */
	struct shared_mark reported;  /* given to the open batch */
	struct shared_mark committed; /* in the catalog; length 0: not yet */
	int64_t created_ms;
	bool dirty; /* written since the last sync */
	/* Only in a far place: */
	uint64_t staged; /* bytes of which the open batch, or one before, has rows */
	bool is_closed;  /* gets no more chunks, and waits to be stored */
	bool is_storing; /* a thread stores it now */
};
struct shared_packs {
	_Atomic uint64_t staged_bytes; /* of all packs that are not stored yet; in a far place */
	/* only the committer uses these */
	struct shared_pack *first; /* packs whose seal is not committed yet */
	struct shared_pack *open;  /* one of these; NULL: the next append begins one */
	/* guarded by lock */
	struct lock lock;
	/* The committed chunks of the open pack, which the chunk index does not know yet. */
	struct chunk_map map;
	struct pack_id mapped;
};

struct pack_store {
	struct backend *backend;
	struct chunk_index *chunk_index;
	struct helpers *helpers;
	struct md5_pool *md5_pool;
	struct ingest_spares *spares; /* for ingests; may be NULL */
	struct metrics *metrics;
	struct log *log;
	const struct disk_floor *floor;
	struct backup_holds *holds;
	const struct clock_source *clock;
	uint64_t pack_max_bytes;
	struct pack_cache *cache;
	struct pack_damage *damage;
	struct shared_packs shared;
	struct helper_lane feed_lane;
	struct helper_lane drop_lane;
	struct helper_lane mend_lane; /* mends one damaged xorb after the other */
	struct lock lock;
	struct pack_scratch *idle; /* guarded by lock */
	unsigned idle_count;       /* guarded by lock */
};

struct pack_scratch *pack_store_take_scratch(struct pack_store *store);
void pack_store_give_scratch(struct pack_store *store, struct pack_scratch *scratch);
/* Invariant 7: whether the payload and the bytes before it are what the entry says; corrupt if
 * not. */
int pack_record_check(const uint8_t header[PACK_RECORD_HEADER_BYTES],
	const struct pack_entry *entry, const uint8_t *payload, struct error *err);

/* Reads these adjacent records with one read of the backend into `read`, verified, and counts those
 * before a bad one there. */
typedef int pack_read_fn(struct backend_file *file, const struct pack_entry *entries,
	uint32_t count, struct pack_read *read, struct error *err);
/* Calls `together`, and copes with its failures: a disk that cannot give one record gives none of a
 * piece, so that the first record is read alone, and in a far place the first one is read once
 * more. PACK_WAITS when the bytes are not near. */
int pack_store_read_adjacent(struct pack *pinned, const struct pack_entry *entries, uint32_t count,
	struct pack_read *read, pack_read_fn *together, struct error *err);

/* Adds to the error which record it was, counts the record when its bytes are wrong, and notes
 * damage (pack_damage_is). Returns -1. */
int pack_store_read_failed(
	struct pack_store *store, const struct pack_id *pack, uint32_t chunk, struct error *err);

/* Removes a pack that no record ever named, with its files. */
void pack_store_drop(struct pack_store *store, const struct pack_id *pack);
/* The same from a thread that must not wait for the disk: a helper removes the files. */
void pack_store_drop_later(struct pack_store *store, const struct pack_id *packs, size_t count);
/* Removes the files of this name, which no committed change ever named. False, after a line in the
 * log, when one is still there. */
bool pack_store_remove_files(struct pack_store *store, const struct pack_id *file);
/* The same for files that a committed change took out of use and entered into the table `removals`.
 * While a backup holds the packs they stay, for gc to remove later: false. */
bool pack_store_retire_files(struct pack_store *store, const struct pack_id *file);
/* Removes a pack whose record a committed change removed; its files as pack_store_retire_files. */
void pack_store_retire(struct pack_store *store, const struct pack_id *pack);

/* On a helper: saves the indexes of these packs if they are not saved yet, and adds their rows to
 * the chunk index. */
void pack_feed_submit(struct pack_store *store, const struct pack_id *packs, size_t count);
/* The same for one pack, on this thread and without saving. */
int pack_feed_one(struct pack_store *store, const struct pack_id *pack, struct error *err);

void shared_pack_init(struct pack_store *store);
void shared_pack_release(struct pack_store *store);
/* Appends a finished xorb. Only the committer calls it. */
int shared_pack_append(struct pack_store *store, const struct xorb_builder *xorb,
	const struct chunk_id *hash, struct chunk_place *out_place, struct error *err);
/* Whether the catalog may keep more bytes that are not stored yet; busy if not. */
int staged_pack_check_room(struct pack_store *store, struct error *err);
/* The batch failed: bytes after the committed ones have no rows. */
void staged_pack_cut(struct pack_store *store, struct shared_pack *pack);
/* The pack is stored, or never was committed: it has no rows any more. */
void staged_pack_forget(struct pack_store *store, struct shared_pack *pack);
/* Adds a pack to those whose seal is not committed yet. Takes the writer over. */
struct shared_pack *shared_pack_add(
	struct pack_store *store, struct pack_writer *writer, int64_t created_ms);
/* Finds a candidate among the committed chunks of the open shared pack. The caller compares its
 * id. */
bool shared_pack_find(
	struct pack_store *store, const struct chunk_id *id, struct chunk_place *out_place);

#endif
