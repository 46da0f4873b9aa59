/* The inside of an ingest: ingest.c (face, threads, lifetime), ingest_chunks.c (chunks into xorbs),
 * ingest_check.c (whether chunks that were found are right, on helpers), ingest_pack.c (xorbs to
 * disk, on helpers), ingest_digest.c (digests, on a helper), ingest_records.c (serialized xorbs
 * instead of content). */
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
	INGEST_BLOCK_BYTES = INGEST_SMALL_BYTES, /* a small stream needs one */
	/* blocks that wait for the digest helpers; then writes have to wait */
	INGEST_BLOCKS_MAX = 32,
	INGEST_BLOCKS_ROOM = 16, /* at so many the writer is called back */
	/* the same for records that wait to be written, a good 320 KiB each: more would leave the
	 * CPU's cache */
	INGEST_DRAINS_MAX = 4,
	INGEST_DRAINS_ROOM = 2
};

enum {
	INGEST_CHECK_HITS = 32,
	INGEST_CHECK_BYTES = 1024 * 1024, /* of content that waits with them */
	INGEST_CHECKS_MAX = 4,            /* on their way; then writes have to wait */
	INGEST_CHECKS_ROOM = 2
};

enum { INGEST_CHECKSUMS = 2 }; /* the options' checksum and declared */

struct ingest_block { /* a copy of body bytes for the dear digests */
	struct helper_job job;
	struct md5_pool_job md5_job;
	struct ingest *ingest;
	struct ingest_block *next;
	size_t len;
	uint8_t bytes[INGEST_BLOCK_BYTES];
};

/* a pack of this stream's own; the write lane's, and from its seal on the sync lane's */
struct ingest_pack {
	struct helper_job job;
	struct ingest *ingest;
	struct pack_id id;
	struct pack_writer *writer; /* once the first bytes were written */
	struct pack_index *index;   /* once sealed */
};

struct ingest_drain { /* records on their way into a pack */
	struct helper_job job;
	struct ingest *ingest;
	struct ingest_pack *pack;
	struct ingest_drain *next;
	struct buffer bytes;
	bool is_last; /* of the pack, which is then synced */
};

struct ingest_hit {   /* a chunk that was found, in a place that nobody has read since the start */
	size_t index; /* in the stream */
	struct chunk_id id;
	struct chunk_place place;
	size_t offset; /* of its content in the check's */
	size_t len;
	bool is_wrong;
};
struct ingest_check { /* hits in order, with what to store when they are wrong */
	struct helper_job job;
	struct ingest *ingest;
	struct ingest_check *next;
	size_t count;
	struct ingest_hit hits[INGEST_CHECK_HITS];
	size_t len;
	uint8_t content[INGEST_CHECK_BYTES];
};
/* a chunk of the stream that was stored anew, since it is damaged elsewhere */
struct ingest_repair {
	size_t index;
	struct chunk_place damaged;
};

struct ingest {
	struct ingest_options options;
	struct pack_store *store;

	/* the writer's thread alone */
	struct chunk_stream *chunks;   /* of content */
	struct xorb_parse *serialized; /* of a serialized xorb; the other one is NULL */
	struct ingest_xorb declared_xorb;
	struct pack_scratch *scratch; /* during a call */
	/* from finish on: the concluding job's, then everybody's to read */
	struct part_builder part_builder;
	struct dedup dedup;
	struct xorb_builder xorb;
	/* where the xorb is to go; another when it ends in the shared pack */
	struct pack_id pack;
	struct ingest_pack *own; /* that pack, once something was drained */
	struct pack_record *records;
	size_t record_count;
	struct ingest_block *block; /* being filled */
	struct ingest_check *check; /* being filled */
	bool has_checks;            /* some were submitted */
	struct ingest_repair *repairs;
	size_t repair_count;
	uint64_t size;
	uint8_t inline_bytes[INLINE_MAX_BYTES];
	bool is_inline;
	bool is_staged; /* the xorb waits for ingest_place */
	bool is_placed;
	struct chunk_id staged_hash;
	struct chunk_place placed; /* where its first chunk came to lie */

	struct xxh3_stream *xxh3;
	struct checksum_stream *cheap[INGEST_CHECKSUMS];

	/* the writer's thread until the first block is submitted, then the helpers' */
	struct checksum_stream *dear[INGEST_CHECKSUMS]; /* the digest lane's */
	/* its md5 is NULL when nobody asked for it */
	struct md5_pool_stream md5;
	struct helper_lane digest_lane;
	struct helper_lane write_lane;
	/* apart, so that the next pack fills while one is synced */
	struct helper_lane sync_lane;
	struct helper_lane check_lane;
	/* the check lane's, INGEST_CHECK_BYTES: what it reads */
	uint8_t *check_stored;
	struct helper_job close; /* behind the last check */
	struct helper_job conclude;
	struct stored_part part;

	atomic_bool abandoned;   /* helpers need not work for it any more */
	atomic_bool keeps_packs; /* a catalog row names them, or may */
	/* rows may come back that name packs which others wrote */
	atomic_bool is_in_doubt;

	struct lock lock;    /* guards what follows */
	unsigned references; /* the owner's and one for each job */
	unsigned pending;    /* jobs, and finish itself, that done waits for */
	bool finished;
	bool wants_room;
	unsigned blocks_out;
	unsigned drains_out;
	unsigned checks_out;
	/* checks that found wrong hits: the writer's to store */
	struct ingest_check *wrong;
	struct ingest_check *idle_check; /* for the next ones */
	bool failed;
	struct error error;
};

/* The first failure is the one that is reported. */
void ingest_fail(struct ingest *ingest, const struct error *err);
bool ingest_has_failed(struct ingest *ingest);
/* A job begins (on the writer's thread) and ends (on a helper, its last act). */
void ingest_job_begins(struct ingest *ingest);
void ingest_job_ends(struct ingest *ingest);
/* Whether the helpers lag so far behind that a write must wait; then room is called later. */
bool ingest_is_full(struct ingest *ingest);
/* Under the lock, when a block or drain came back: calls room if someone waits and there is
 * some. */
void ingest_offer_room(struct ingest *ingest);

/* The last chunk was taken, and all hits are settled: ends the xorb, and what finish began. On the
 * writer's thread, or on a helper once that has finished. */
void ingest_close(struct ingest *ingest);

/* Whether the chunk lies where somebody has to look before it counts. */
bool ingest_check_wants(struct ingest *ingest, const struct chunk_place *place);
/* The next chunk of the stream was found there: helpers look, and its content waits for what they
 * find. */
void ingest_check_add(struct ingest *ingest, const struct chunk_id *id,
	const struct chunk_place *place, struct span content);
/* Stores what was found wrong so far. */
int ingest_check_repair(struct ingest *ingest, struct error *err);
/* No more hits come: ingest_close is called behind the last of them; false when none is on its
 * way. */
bool ingest_check_end(struct ingest *ingest);
/* The next chunk will be stored anew, since it is damaged there. */
void ingest_check_damaged(struct ingest *ingest, size_t index, const struct chunk_place *place);
/* Tells of what was stored anew, once it is committed. */
void ingest_check_offer(struct ingest *ingest);
void ingest_check_release(struct ingest *ingest);
/* Into the xorb under way. */
int ingest_store_chunk(struct ingest *ingest, const struct chunk_id *id, struct span content,
	struct chunk_place *out, struct error *err);

/* chunk_take_fn */
int ingest_take_chunk(
	void *taker, const struct chunk_id *id, struct span content, struct error *err);
/* Serialized xorbs. */
void ingest_records_init(struct ingest *ingest, const struct ingest_xorb *xorb);
int ingest_records_end(struct ingest *ingest, struct error *err);
/* After the last chunk: the rest of the xorb is staged for the shared pack or sealed in an own
 * one. */
int ingest_end_chunks(struct ingest *ingest, struct error *err);

/* Hands what the xorb has gathered to the write lane, for the own pack, which begins here if need
 * be. */
void ingest_pack_drain(struct ingest *ingest, bool is_last);
/* Ends the xorb and with it the own pack; helpers write and sync it while the next one fills. */
int ingest_pack_seal(struct ingest *ingest, struct error *err);
/* All jobs have ended. `keep` false: nothing of it was committed, the own packs are removed, by a
 * helper. */
void ingest_pack_release(struct ingest *ingest, bool keep);

void ingest_digest_init(struct ingest *ingest);
void ingest_digest_release(struct ingest *ingest);
void ingest_digest_add(struct ingest *ingest, struct span bytes);
/* All bytes were added: computes the part's file hash, at once for a small stream, else on a
 * helper. */
void ingest_digest_end(struct ingest *ingest);
/* No more bytes come, perhaps because the owner goes: blocks do not wait for those of other streams
 * any more. */
void ingest_digest_hurry(struct ingest *ingest);
/* When all jobs have ended: the digests of the part. */
void ingest_digest_results(struct ingest *ingest);

#endif
