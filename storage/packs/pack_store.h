/* All packs of a store: writing them, reading chunk records back verified, holding them while in
 * use, and bringing them in line with the catalog at start. Owns the backend, the cache of pack
 * indexes (bounded) and the open files (bounded). Internally locked; any thread. docs/FORMAT.md,
 * "Packs" and "Pack index". */
#ifndef STORAGE_PACKS_PACK_STORE_H
#define STORAGE_PACKS_PACK_STORE_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread/helpers.h"
#include "base/thread/log.h"
#include "chunker/codec.h"
#include "storage/packs/backend.h"
#include "storage/packs/chunk_index.h"
#include "storage/packs/disk_floor.h"
#include "storage/packs/segment.h"

struct pack_store;

struct pack_store_options {
	struct backend *backend;         /* taken over */
	struct chunk_index *chunk_index; /* borrowed; NULL: no deduplication across packs */
	/* borrowed, for ingests; NULL: they keep nothing for the next */
	struct ingest_spares *spares;
	struct helpers *helpers; /* borrowed */
	struct metrics *metrics; /* borrowed, may be NULL */
	/* borrowed, may be NULL; only for events without a caller to answer */
	struct log *log;
	const struct disk_floor *floor;   /* borrowed; NULL: none. New content keeps off it */
	uint64_t pack_max_bytes;          /* 0: 64 MiB; at most 1 GiB */
	size_t index_cache_bytes;         /* 0: 16 MiB */
	const struct clock_source *clock; /* borrowed; NULL: the system's */
};
struct pack_store *pack_store_open(const struct pack_store_options *options, struct error *err);
/* After helpers_stop: jobs of the store may run until then. */
void pack_store_close(struct pack_store *store);

/* Before anything else the packs are brought in line with the catalog (pack_recovery.h), and this
 * says who makes those that come. */
void pack_store_set_origin(struct pack_store *store, const struct pack_origin *origin);

/* Reads hold their packs (invariant 5), from within the reading snapshot that named them, with the
 * connection not given back yet: until then no chunk that the snapshot shows goes. Counted; the
 * hold's turn is given back with it. */
unsigned pack_store_hold(struct pack_store *store, const struct pack_id *pack);
void pack_store_unhold(struct pack_store *store, const struct pack_id *pack, unsigned turn);
/* References are held by who may yet put rows into the catalog that name chunks of an existing
 * pack, from finding them until the change is done. False, and no hold, when the pack is unknown or
 * gc works on it: then the bytes must be stored anew. Counted. */
bool pack_store_refer(struct pack_store *store, const struct pack_id *pack);
/* The same for chunks that rows name already, by who will add other rows that name them: never
 * refused. Like a read's hold it must be taken within the snapshot that showed the rows. */
void pack_store_refer_again(struct pack_store *store, const struct pack_id *pack);
void pack_store_unrefer(struct pack_store *store, const struct pack_id *pack);
bool pack_store_is_held(struct pack_store *store, const struct pack_id *pack); /* either way */

/* The shared pack. Called by the committer alone, in this order, once per batch: append (through
 * ingest_place) for each small upload; sync; then the records below go into the batch's
 * transaction. */
int pack_store_shared_sync(struct pack_store *store, struct error *err);
/* Records of shared packs that changed since the last call: the open one's new length, and one that
 * was sealed meanwhile. Up to `capacity`. */
size_t pack_store_shared_records(
	struct pack_store *store, struct pack_record *out, size_t capacity);
/* Every batch ends with one of these three. Its COMMIT returned: what the records said is true. */
void pack_store_shared_committed(struct pack_store *store);
/* Its COMMIT, or its sync, or anything before failed: the open shared pack is given up (sealed at
 * its committed length) and a new one begins. */
void pack_store_shared_abandon(struct pack_store *store);
/* Its COMMIT broke off and may yet turn out to have happened: as above, but no byte goes before the
 * next start's recovery. */
void pack_store_shared_doubt(struct pack_store *store);

/* The open shared pack is sealed; the batch under way records that. Called by the committer alone,
 * where a change is placed. */
void pack_store_shared_seal(struct pack_store *store);

/* Adds all sealed packs to the chunk index: for when that had to be made anew. */
int pack_store_reindex(struct pack_store *store, struct error *err);

/* A verified read of one chunk: `into` has CHUNK_MAX_BYTES; gives the uncompressed length. `codec`
 * NULL: one of the store's. corrupt (naming the pack and chunk) if the record's checksum or length
 * is wrong. */
int pack_store_read_chunk(struct pack_store *store, const struct pack_id *pack, uint32_t chunk,
	struct codec_context *codec, uint8_t *into, size_t *out_len, struct error *err);
/* Several at once, for streaming: of the `chunks` chunks from `first` on, as many as are raw, lie
 * on one another and fit whole into `capacity` bytes go straight to `into`, each verified. 0, and
 * *out_chunks 0, when the first is not so. At most PACK_RUN_CHUNKS a call. */
enum { PACK_RUN_CHUNKS = 16 };
struct pack_run {
	struct pack_id pack;
	uint32_t first;
	uint32_t chunks;
};
int pack_store_read_run(struct pack_store *store, const struct pack_run *run, uint8_t *into,
	size_t capacity, uint32_t *out_chunks, size_t *out_len, struct error *err);
/* Ids and uncompressed sizes of up to `capacity` chunks, from the index alone; at least one, or
 * corrupt. */
int pack_store_chunk_entries(struct pack_store *store, const struct pack_run *run,
	struct chunk_entry *out, size_t capacity, size_t *out_count, struct error *err);
/* Whether a record of these was seen damaged (pack_damage.h). */
bool pack_store_is_damaged(struct pack_store *store, const struct pack_run *run);
/* Whether all of these were read since the start and found right. */
bool pack_store_is_checked(struct pack_store *store, const struct pack_run *run);
/* Reads all records of the run and verifies them, undecoded: 0, and none of them counts as damaged
 * any more; or corrupt. Waits for the disk. */
int pack_store_check_records(
	struct pack_store *store, const struct pack_run *run, struct error *err);
/* The same but for what was read since the start and found right: for who will lead others to
 * chunks that nobody sends. Free from the second time on. */
int pack_store_prove_records(
	struct pack_store *store, const struct pack_run *run, struct error *err);
/* Changes when records of the pack are replaced by others of the same chunks (pack_rewrite.h):
 * their stored lengths are others then. */
unsigned pack_store_form(struct pack_store *store, const struct pack_id *pack);
int pack_store_chunk_entry(struct pack_store *store, const struct pack_id *pack, uint32_t chunk,
	struct chunk_entry *out, struct error *err);

#endif
