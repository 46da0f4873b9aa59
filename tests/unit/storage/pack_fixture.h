/* A pack store in a scratch folder or in memory, with an array as its catalog. It puts streams,
 * commits them as the committer would, reads them back, and recovers as after a crash. */
#ifndef TESTS_UNIT_STORAGE_PACK_FIXTURE_H
#define TESTS_UNIT_STORAGE_PACK_FIXTURE_H

#include "base/file.h"
#include "base/thread/lock.h"
#include "base/thread/log.h"
#include "storage/ingest/ingest.h"
#include "storage/packs/assemble.h"
#include "storage/packs/pack_recovery.h"
#include "tests/unit/storage/far_fixture.h"

/* a far place is not among the kinds that tests walk */
enum pack_fixture_kind {
	PACK_FIXTURE_FOLDER,
	PACK_FIXTURE_MEMORY,
	PACK_FIXTURE_KINDS,
	PACK_FIXTURE_FAR = PACK_FIXTURE_KINDS
};

struct pack_fixture {
	enum pack_fixture_kind kind;
	char *scratch;
	char *packs_folder;
	char aside_folder[4096];
	struct far_fixture far;
	struct file_faults faults; /* with kinds 0 nothing fails */
	struct metrics *metrics;
	struct log *log; /* borrowed, may be NULL */
	struct helpers *helpers;
	struct chunk_index *chunk_index;
	struct pack_store *store;
	uint64_t pack_max_bytes;
	size_t index_cache_bytes;
	struct pack_record *records; /* the catalog */
	size_t record_count;
	struct pack_id *removals; /* borrowed */
	size_t removal_count;
	struct pack_facts facts; /* of the last reopen */
};

void pack_fixture_open(
	struct pack_fixture *fixture, enum pack_fixture_kind kind, uint64_t pack_max_bytes);
void pack_fixture_close(struct pack_fixture *fixture);
/* Reopens as after a crash: content that is not in the catalog is gone. Not for memory. */
void pack_fixture_reopen(struct pack_fixture *fixture);
/* The same after the life `last`. `is_whole`: all that it acknowledged is there. */
void pack_fixture_reopen_as(
	struct pack_fixture *fixture, const struct pack_origin *last, bool is_whole);
/* In a far place: stores the open shared pack, as the committer would once it is old. */
void pack_fixture_store_shared(struct pack_fixture *fixture);
/* Waits for all jobs of the helpers (and starts new ones). */
void pack_fixture_settle(struct pack_fixture *fixture);
/* Returns "<scratch>/packs/xx/<id>.<suffix>"; free() it. */
char *pack_fixture_path(
	const struct pack_fixture *fixture, const struct pack_id *pack, const char *suffix);
/* Counts the files of all kinds under packs. */
size_t pack_fixture_file_count(const struct pack_fixture *fixture);
void pack_fixture_flip(const char *path, uint64_t offset); /* one bit */
/* Settles first, so that earlier jobs do not fail. */
void pack_fixture_set_faults(struct pack_fixture *fixture, int kinds, int countdown);

/* The client of an ingest: records the calls of room and done. */
struct pack_writer_end {
	struct lock lock;
	struct lock_condition changed;
	unsigned rooms;
	bool is_done;
	unsigned waits; /* writes that answered SINK_WAIT */
};
void pack_writer_end_init(struct pack_writer_end *end);
void pack_writer_end_release(struct pack_writer_end *end);
/* Fills in room, done and owner. */
void pack_writer_end_options(struct pack_writer_end *end, struct ingest_options *options);
struct ingest *pack_fixture_ingest(
	struct pack_fixture *fixture, struct pack_writer_end *end, bool want_md5);
/* Writes all in pieces whose sizes follow from `seed` (0: one piece), and waits when the sink
 * answers "wait". Returns 0 or -1. */
int pack_fixture_write(struct ingest *ingest, struct pack_writer_end *end, struct span bytes,
	uint64_t seed, struct error *err);
/* Finishes the ingest and waits for done. */
int pack_fixture_finish(struct ingest *ingest, struct pack_writer_end *end, struct error *err);
/* As one batch: place, sync, records, committed. */
int pack_fixture_commit(struct pack_fixture *fixture, struct ingest *ingest, struct error *err);

/* The catalog's facts about one stream. */
struct stored_stream {
	uint64_t size;
	struct chunk_id file_hash;
	struct digest128 digest;
	uint8_t md5[16];
	bool is_inline;
	uint8_t inline_bytes[INLINE_MAX_BYTES];
	struct segment *segments;
	size_t segment_count;
};
void stored_stream_release(struct stored_stream *stream);
/* All of the above in one call. -1 with the error when any step failed. */
int pack_fixture_try_put(struct pack_fixture *fixture, struct span bytes, uint64_t seed,
	struct stored_stream *out, struct error *err);
void pack_fixture_put(
	struct pack_fixture *fixture, struct span bytes, uint64_t seed, struct stored_stream *out);
/* Reads [offset, offset + length) in pieces and compares with the same range of `expected`. */
int pack_fixture_try_get(struct pack_fixture *fixture, const struct stored_stream *stream,
	uint64_t offset, uint64_t length, size_t piece, uint8_t *into, struct error *err);
void pack_fixture_expect(
	struct pack_fixture *fixture, const struct stored_stream *stream, struct span expected);
void pack_fixture_expect_range(struct pack_fixture *fixture, const struct stored_stream *stream,
	struct span expected, uint64_t offset, uint64_t length, size_t piece);

uint64_t fixture_random(uint64_t *state);
/* Content that repeats for the same seed: incompressible, text-like, or bf16-like. free() it. */
enum fixture_content { FIXTURE_RANDOM, FIXTURE_TEXT, FIXTURE_BF16, FIXTURE_CONTENTS };
uint8_t *fixture_bytes(enum fixture_content content, uint64_t seed, size_t len);

#endif
