/* All packs of a store: writes them, reads chunk records back verified, holds packs while they are
 * used, and compares them with the catalog at a start. Owns the backend, the cache of pack indexes
 * (bounded) and the open files (bounded). Internally locked; any thread. docs/FORMAT.md, "Packs"
 * and "Pack index". */
#ifndef STORAGE_PACKS_PACK_STORE_H
#define STORAGE_PACKS_PACK_STORE_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread/helpers.h"
#include "base/thread/log.h"
#include "chunker/codec.h"
#include "storage/packs/backend.h"
#include "storage/packs/backup_holds.h"
#include "storage/packs/chunk_index.h"
#include "storage/packs/disk_floor.h"
#include "storage/packs/segment.h"

struct pack_store;

struct pack_store_options {
	struct backend *backend;         /* taken over */
	struct chunk_index *chunk_index; /* borrowed; NULL: no deduplication across packs */
	/* borrowed, for ingests; NULL: they keep no memory for the next one */
	struct ingest_spares *spares;
	struct helpers *helpers; /* borrowed */
	struct metrics *metrics; /* borrowed, may be NULL */
	/* Borrowed, may be NULL. Only for events that no caller could report. */
	struct log *log;
	const struct disk_floor *floor;   /* borrowed, the limit for new content; NULL: none */
	struct backup_holds *holds;       /* borrowed; NULL: there are no backups */
	uint64_t pack_max_bytes;          /* 0: 64 MiB; at most 1 GiB */
	size_t index_cache_bytes;         /* 0: 16 MiB */
	const struct clock_source *clock; /* borrowed; NULL: the system's */
};
struct pack_store *pack_store_open(const struct pack_store_options *options, struct error *err);
/* Call it after helpers_stop, because jobs of the store may run until then. */
void pack_store_close(struct pack_store *store);

/* Whether the packs lie in a far place (backend.h). */
bool pack_store_is_far(const struct pack_store *store);

/* Sets the origin of the packs that are made from now on. First the packs must be compared with the
 * catalog (pack_recovery.h). */
void pack_store_set_origin(struct pack_store *store, const struct pack_origin *origin);

/* A read holds its packs (invariant 5). It must take the hold within the reading snapshot that
 * named the pack, before it gives the connection back: until then no chunk that the snapshot shows
 * is deleted. Counted; the result is the hold's turn, which must be given back with it. */
unsigned pack_store_hold(struct pack_store *store, const struct pack_id *pack);
void pack_store_unhold(struct pack_store *store, const struct pack_id *pack, unsigned turn);
/* A reference is held by a caller that may yet add catalog rows that name chunks of an existing
 * pack, from finding the chunks until the change is done. False, and no reference, when the pack is
 * unknown or gc works on it: then the bytes must be stored again. Counted. */
bool pack_store_refer(struct pack_store *store, const struct pack_id *pack);
/* The same for chunks that rows already name, by a caller that will add more such rows. Never
 * refused. Like a read's hold, it must be taken within the snapshot that showed the rows. */
void pack_store_refer_again(struct pack_store *store, const struct pack_id *pack);
void pack_store_unrefer(struct pack_store *store, const struct pack_id *pack);
/* by reads or references */
bool pack_store_is_held(struct pack_store *store, const struct pack_id *pack);

/* The shared pack. Only the committer calls these, once per batch in this order: append (through
 * ingest_place) for each small upload, then sync, then the records below go into the batch's
 * transaction. */
int pack_store_shared_sync(struct pack_store *store, struct error *err);
/* The records of shared packs that changed since the last call: the open one's new length, and a
 * pack that was sealed meanwhile. Up to `capacity`. */
size_t pack_store_shared_records(
	struct pack_store *store, struct pack_record *out, size_t capacity);
/* Every batch ends with one of these three. This one: COMMIT returned, and the records are true. */
void pack_store_shared_committed(struct pack_store *store);
/* COMMIT, the sync, or a step before failed: the open shared pack is given up (sealed at its
 * committed length), and a new one begins. */
void pack_store_shared_abandon(struct pack_store *store);
/* COMMIT broke off and may yet turn out to have happened: the same, but no byte is removed before
 * the next start's recovery. */
void pack_store_shared_doubt(struct pack_store *store);

/* Seals the open shared pack; the present batch records that. In a far place the pack is closed,
 * and sealed once it is stored. Only the committer calls it, where it places a change. */
void pack_store_shared_seal(struct pack_store *store);

/* A far place (backend.h) cannot sync a file that grows. There the catalog keeps the bytes of a
 * shared pack, in rows of the same batch, until the pack is closed and stored as a whole:
 *
 *   open --append, stage*--> closed --take--> storing --store--> stored, sealed: the rows go
 *
 * The sync of a batch has nothing to do then. */
struct pack_staged {
	struct pack_id pack;
	uint64_t start; /* in the pack's file */
	struct span bytes;
};
enum { PACK_STAGED_BYTES = 256 * 1024 };
/* Only the committer calls it, beside pack_store_shared_records: the next bytes that the open batch
 * must keep, read into the caller's PACK_STAGED_BYTES. Returns 1, 0 when there are no more, or
 * -1. */
int pack_store_shared_stage(
	struct pack_store *store, uint8_t *into, struct pack_staged *out, struct error *err);
/* Only the committer calls it, where it places a change. Closes the open pack when it began before
 * `before_ms`, and takes a closed pack of which every byte is committed, until it is given back.
 * NULL: there is none. */
struct shared_pack;
struct shared_pack *pack_store_shared_take(struct pack_store *store, int64_t before_ms);
const struct pack_id *pack_store_shared_id(const struct shared_pack *pack);
/* Any thread, for a pack that was taken: stores its file, which waits for the network. */
int pack_store_shared_store(struct shared_pack *pack, struct error *err);
/* Only the committer calls it, where it places a change. It gives the pack back: when it is stored,
 * the present batch records it as sealed, and its rows must go with the same change; else it can
 * be taken again. So it can when the batch fails. */
void pack_store_shared_give(struct shared_pack *pack, bool is_stored);
/* Any thread: whether packs wait to be stored, or one is open. */
bool pack_store_shared_waits(struct pack_store *store);
/* Makes a pack again that was not stored when the last process ended; before the store is used.
 * `bytes` gives all its bytes in order, in pieces. */
struct pack_bytes {
	/* Returns 1 with the next piece, 0 at the end, -1. */
	int (*next)(struct pack_bytes *bytes, struct span *out, struct error *err);
};
int pack_store_shared_restore(struct pack_store *store, const struct pack_record *record,
	struct pack_bytes *bytes, struct error *err);

/* Adds all sealed packs to the chunk index, when that is new and empty. */
int pack_store_reindex(struct pack_store *store, struct error *err);

/* Reads one chunk, verified. `into` has CHUNK_MAX_BYTES; *out_len is the uncompressed length.
 * `codec` NULL: one of the store's. corrupt, naming the pack and the chunk, when the record's
 * checksum or length is wrong. */
int pack_store_read_chunk(struct pack_store *store, const struct chunk_place *place,
	struct codec_context *codec, uint8_t *into, size_t *out_len, struct error *err);
struct pack_wait;
/* The same with a wait (pack_wait.h): may return PACK_WAITS. */
int pack_store_read_chunk_soon(struct pack_store *store, const struct chunk_place *place,
	struct pack_wait *wait, uint8_t *into, size_t *out_len, struct error *err);
enum { PACK_RUN_CHUNKS = 16 };
struct pack_run {
	struct pack_id pack;
	uint32_t first;
	uint32_t chunks;
};
struct pack_read {
	uint8_t *into;
	size_t capacity;
	struct pack_wait *wait; /* pack_wait.h; NULL: the read may block */
	uint32_t chunks;        /* how many were read and verified */
	size_t len;             /* their bytes in `into` */
};
/* Reads several chunks at once, for streaming: from the first of the run on, as many as are raw,
 * adjacent and fit whole into read->capacity go straight to read->into, each verified. Sets chunks
 * and len, both 0 when the first chunk is not such a one. On failure they count the chunks before
 * the bad one. At most PACK_RUN_CHUNKS in a call. May return PACK_WAITS if read->wait is set. */
int pack_store_read_run(struct pack_store *store, const struct pack_run *run,
	struct pack_read *read, struct error *err);
/* Gives ids and uncompressed sizes of up to `capacity` chunks, from the index alone; at least one,
 * or corrupt. */
int pack_store_chunk_entries(struct pack_store *store, const struct pack_run *run,
	struct chunk_entry *out, size_t capacity, size_t *out_count, struct error *err);
/* Whether a record of the run was seen damaged (pack_damage.h), or any record at all. */
bool pack_store_is_damaged(struct pack_store *store, const struct pack_run *run);
bool pack_store_knows_damage(const struct pack_store *store);
/* Whether all chunks of the run were read since the start and found right. */
bool pack_store_is_checked(struct pack_store *store, const struct pack_run *run);
/* Reads all records of the run and verifies them without decoding. 0: none of them counts as
 * damaged any more. Else corrupt. Waits for the disk. */
int pack_store_check_records(
	struct pack_store *store, const struct pack_run *run, struct error *err);
/* The same, except for chunks that were read since the start and found right: for a caller that
 * will refer clients to chunks that nobody sent now. Costs nothing from the second time on. */
int pack_store_prove_records(
	struct pack_store *store, const struct pack_run *run, struct error *err);
/* Reads the chunks again that were seen damaged, since a disk may give right bytes again.
 * content_damaged when one still is. Costs nothing while no damage is known. */
int pack_store_check_damaged(
	struct pack_store *store, const struct pack_run *run, struct error *err);
/* A number that changes when records of the pack are replaced by others of the same chunks
 * (pack_rewrite.h), whose stored lengths differ. */
unsigned pack_store_form(struct pack_store *store, const struct pack_id *pack);
int pack_store_chunk_entry(struct pack_store *store, const struct pack_id *pack, uint32_t chunk,
	struct chunk_entry *out, struct error *err);

#endif
