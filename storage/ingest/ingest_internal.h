/* The inside of an ingest: ingest.c (interface, threads, lifetime), ingest_chunks.c (chunks into
 * xorbs), ingest_check.c (helpers check chunks that were found), ingest_pack.c (helpers write xorbs
 * to disk), ingest_digest.c (helpers compute digests), ingest_records.c (serialized xorbs instead
 * of content). */
#ifndef STORAGE_INGEST_INGEST_INTERNAL_H
#define STORAGE_INGEST_INGEST_INTERNAL_H

#include <stdatomic.h>

#include "base/digest/digest.h"
#include "chunker/chunk_stream.h"
#include "chunker/xorb_parse.h"
#include "storage/ingest/dedup.h"
#include "storage/ingest/ingest.h"
#include "storage/ingest/ingest_spares.h"
#include "storage/ingest/part_builder.h"

enum {
	INGEST_BLOCK_BYTES = INGEST_SMALL_BYTES, /* a small stream needs only one */
	/* Blocks that wait for the digest helpers; with so many, writes wait. */
	INGEST_BLOCKS_MAX = 32,
	INGEST_BLOCKS_ROOM = 16, /* with so many the writer is called back */
	/* The same for drains that wait to be written, of a good 320 KiB each. More would not fit
	 * into the CPU's cache. */
	INGEST_DRAINS_MAX = 4,
	INGEST_DRAINS_ROOM = 2
};

enum {
	INGEST_CHECK_HITS = 32,
	INGEST_CHECK_BYTES = 1024 * 1024, /* content that waits with the hits */
	INGEST_CHECKS_MAX = 4,            /* with so many under way, writes wait */
	INGEST_CHECKS_ROOM = 2
};

enum { INGEST_CHECKSUMS = 2 }; /* checksum and declared of the options */

struct ingest_block { /* a copy of body bytes for MD5 and SHA */
	struct helper_job job;
	struct md5_pool_job md5_job;
	struct ingest *ingest;
	struct ingest_block *next;
	size_t len;
	uint8_t bytes[INGEST_BLOCK_BYTES];
};

/* A pack of this stream's own. The write lane uses it, and after its last drain the sync lane. */
struct ingest_pack {
	struct helper_job job;
	struct ingest *ingest;
	struct pack_id id;
	struct pack_writer *writer; /* from the first write on */
	struct pack_index *index;   /* from its seal on */
};

struct ingest_drain { /* records on their way into a pack */
	struct helper_job job;
	struct ingest *ingest;
	struct ingest_pack *pack;
	struct ingest_drain *next;
	struct buffer bytes;
	bool is_last; /* the pack's last one; the pack is then synced */
};

struct ingest_hit {   /* a chunk that was found in a place that was not read since the start */
	size_t index; /* of the chunk in the stream */
	struct chunk_id id;
	struct chunk_place place;
	size_t offset; /* of its content in that of the check */
	size_t len;
	bool is_wrong;
};
struct ingest_check { /* hits in order, with the content to store when they are wrong */
	struct helper_job job;
	struct ingest *ingest;
	struct ingest_check *next;
	size_t count;
	struct ingest_hit hits[INGEST_CHECK_HITS];
	size_t len;
	uint8_t content[INGEST_CHECK_BYTES];
};
/* A chunk of the stream that is stored again, because it is damaged elsewhere. */
struct ingest_repair {
	size_t index;
	struct chunk_place damaged;
};

struct ingest {
	struct ingest_options options;
	struct pack_store *store;

	/* Only the writer's thread uses these: */
	struct chunk_stream *chunks;   /* for content */
	struct xorb_parse *serialized; /* for a serialized xorb; one of the two is NULL */
	struct ingest_xorb declared_xorb;
	struct pack_scratch *scratch; /* set while chunks may be encoded */
	/* From finish on used by the concluding job, then read by anybody. */
	struct part_builder part_builder;
	struct dedup dedup;
	struct xorb_builder xorb;
	/* The pack for the xorb; another one when it ends in the shared pack. */
	struct pack_id pack;
	struct ingest_pack *own; /* that pack, from its first drain on */
	struct pack_record *records;
	size_t record_count;
	struct ingest_block *block; /* being filled */
	struct ingest_check *check; /* being filled */
	bool has_checks;            /* some were submitted */
	struct ingest_repair *repairs;
	size_t repair_count;
	size_t repair_capacity;
	uint64_t size;
	uint8_t inline_bytes[INLINE_MAX_BYTES];
	bool is_inline;
	bool is_staged; /* the xorb waits for ingest_place */
	bool is_placed;
	struct chunk_id staged_hash;
	struct chunk_place placed; /* the place of its first chunk */

	struct xxh3_stream *xxh3;
	struct checksum_stream *cheap[INGEST_CHECKSUMS];

	/* Used by the writer's thread until the first block is submitted, then by helpers. */
	struct checksum_stream *costly[INGEST_CHECKSUMS]; /* used by the digest lane */
	/* Its md5 is NULL when no MD5 is wanted. */
	struct md5_pool_stream md5;
	struct helper_lane digest_lane;
	struct helper_lane write_lane;
	/* Separate, so that the next pack fills while one is synced. */
	struct helper_lane sync_lane;
	struct helper_lane check_lane;
	/* The check lane's buffer for stored bytes, INGEST_CHECK_BYTES long. */
	uint8_t *check_stored;
	struct helper_lane load_lane;
	struct helper_job load;  /* loads the index of dedup.far */
	struct helper_job close; /* runs behind the last check */
	struct helper_job conclude;
	struct stored_part part;

	atomic_bool abandoned;   /* the owner is gone, so helpers need not work any more */
	atomic_bool keeps_packs; /* catalog rows name them, or may */
	/* Rows that name packs of others may come back. */
	atomic_bool is_in_doubt;

	struct lock lock;    /* guards the fields below */
	unsigned references; /* of the owner and of each job */
	unsigned pending;    /* jobs and ingest_finish itself, which `done` waits for */
	bool finished;
	bool wants_room;
	bool is_loading;
	unsigned blocks_out;
	unsigned drains_out;
	unsigned checks_out;
	/* Checks that found wrong hits, which the writer stores. */
	struct ingest_check *wrong;
	struct ingest_check *idle_check; /* kept for later checks */
	bool failed;
	struct error error;
};

/* Only the first failure is kept. */
void ingest_fail(struct ingest *ingest, const struct error *err);
bool ingest_has_failed(struct ingest *ingest);
/* A job begins on the writer's thread, and ends as the last act of a helper. */
void ingest_job_begins(struct ingest *ingest);
void ingest_job_ends(struct ingest *ingest);
/* Whether helpers are so far behind that a write must wait; then `room` is called later. */
bool ingest_is_full(struct ingest *ingest);
/* Under the lock, when a block, drain or check came back: calls `room` if the writer waits and
 * there is room. */
void ingest_offer_room(struct ingest *ingest);

/* After the last chunk, when all hits are settled: ends the xorb and the work that ingest_finish
 * began. Runs on the writer's thread, or on a helper once that thread has finished. */
void ingest_close(struct ingest *ingest);

/* Whether the chunk's place must be read before the chunk counts. */
bool ingest_check_wants(struct ingest *ingest, const struct chunk_place *place);
/* The next chunk of the stream was found there. A helper reads the place while the content waits
 * for the result. */
void ingest_check_add(struct ingest *ingest, const struct chunk_id *id,
	const struct chunk_place *place, struct span content);
/* Stores the chunks that were found wrong so far. */
int ingest_check_repair(struct ingest *ingest, struct error *err);
/* No more hits come. ingest_close is called behind the last check; false when no check is under
 * way. */
bool ingest_check_end(struct ingest *ingest);
/* The chunk with this index will be stored again, because it is damaged there. */
void ingest_check_damaged(struct ingest *ingest, size_t index, const struct chunk_place *place);
/* After the commit: offers the chunks that were stored again for mending the damaged ones. */
void ingest_check_offer(struct ingest *ingest);
void ingest_check_release(struct ingest *ingest);
/* Encodes the chunk into the current xorb. */
int ingest_store_chunk(struct ingest *ingest, const struct chunk_id *id, struct span content,
	struct chunk_place *out, struct error *err);

/* chunk_take_fn */
int ingest_take_chunk(
	void *taker, const struct chunk_id *id, struct span content, struct error *err);
/* For serialized xorbs. */
void ingest_records_init(struct ingest *ingest, const struct ingest_xorb *xorb);
int ingest_records_end(struct ingest *ingest, struct error *err);
/* After the last chunk: stages the rest of the xorb for the shared pack, or seals it in an own
 * pack. */
int ingest_end_chunks(struct ingest *ingest, struct error *err);

/* Hands the records that the xorb has gathered to the write lane, for the own pack, which begins
 * here if there is none. */
void ingest_pack_drain(struct ingest *ingest, bool is_last);
/* Ends the xorb and its own pack; helpers write and sync it while the next one fills. */
int ingest_pack_seal(struct ingest *ingest, struct error *err);
/* After all jobs have ended. `keep` false: nothing was committed, so a helper removes the own
 * packs. */
void ingest_pack_release(struct ingest *ingest, bool keep);

void ingest_digest_init(struct ingest *ingest);
void ingest_digest_release(struct ingest *ingest);
void ingest_digest_add(struct ingest *ingest, struct span bytes);
/* After all bytes were added: computes the part's file hash, at once for a small stream, else on a
 * helper. */
void ingest_digest_end(struct ingest *ingest);
/* No more bytes come, perhaps because the owner is gone: blocks do not wait for those of other
 * streams any more. */
void ingest_digest_hurry(struct ingest *ingest);
/* After all jobs have ended: sets the digests of the part. */
void ingest_digest_results(struct ingest *ingest);

#endif
