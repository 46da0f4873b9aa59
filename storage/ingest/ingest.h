/* Stores one stream of bytes in packs: chunked, identified, deduplicated, encoded and written. A
 * chunk that is stored already counts once its stored bytes were read since the start and found
 * right; otherwise the chunk is stored again. Instead of content, the bytes may be a serialized
 * xorb: its records are verified and kept as they are, all in one run. A stream with up to
 * INGEST_SMALL_BYTES to store stays in memory until the committer places it in the shared pack.
 * Longer ones fill packs of their own, which helpers write and sync; helpers also compute their
 * digests. The writer's thread never waits for the disk. Nothing is visible until a change commits
 * what ingest_part gives.
 *
 *   open --write*--> --finish--> (helpers) --done--> [small: place, by the committer]
 *        --> part goes into a change --> committed --> free
 *   free without `committed` or `in_doubt`: own packs are deleted (invariant 4), references end.
 *
 * One thread at a time calls write, finish and free; it never waits. free must not come between
 * finish and `done`. `done` comes from a helper or from inside finish. An ingest takes up to 28 MiB
 * while it works, and 80 bytes for each of its chunks; a write of more than 1 MiB adds its size. */
#ifndef STORAGE_INGEST_INGEST_H
#define STORAGE_INGEST_INGEST_H

#include "base/stream.h"
#include "storage/packs/pack_store.h"

enum { INGEST_SMALL_BYTES = 256 * 1024 };

struct ingest;

/* The bytes are a serialized xorb (chunker/xorb_parse.h) with this hash. Otherwise the outcome is
 * invalid, and nothing is kept. */
struct ingest_xorb {
	struct chunk_id hash;
	bool private_codecs;
};
struct ingest_options {
	struct pack_store *packs;
	bool want_md5;
	enum checksum_algorithm checksum; /* to compute beside the digests; CHECKSUM_NONE: none */
	/* another one to compute, because the client sends its value; CHECKSUM_NONE: none */
	enum checksum_algorithm declared;
	bool never_inline; /* even the smallest stream goes into a pack: for parts of uploads */
	/* Stores repeats again sooner, for very long streams whose rows must fit into one
	 * change. */
	bool few_segments;
	/* NULL: content. Else there are no digests, no file hash and no inline bytes; the part's
	 * one segment is the xorb, and its size is that of the bytes. Copied. */
	const struct ingest_xorb *xorb;
	/* Called when an ingest_write that answered SINK_WAIT may be tried again. It comes from a
	 * helper and under a lock, so it may only wake the writer. Never after ingest_free has
	 * returned. */
	void (*room)(void *owner);
	/* Called once after ingest_finish, perhaps before that returns: ingest_outcome is known. */
	void (*done)(void *owner);
	void *owner;
};
/* no_space when the rest of the disk is reserved. */
struct ingest *ingest_open(const struct ingest_options *options, struct error *err);
/* SINK_WAIT: nothing was taken, and `room` comes. */
enum sink_result ingest_write(struct ingest *ingest, struct span bytes, struct error *err);
/* Ends the current chunk, as the end of a part does: the next byte begins another chunk. Only with
 * never_inline. */
int ingest_cut(struct ingest *ingest, struct error *err);
void ingest_finish(struct ingest *ingest);
/* After `done`: 0, or -1 with the failure (no_space, io and the like). */
int ingest_outcome(struct ingest *ingest, struct error *err);
/* On the committer, before the shared pack is synced: puts the chunks of a small ingest into the
 * shared pack, and does nothing for others. After a failure the ingest can only be freed. */
int ingest_place(struct ingest *ingest, struct error *err);
/* The part that the catalog must name. Valid after place, until free. */
const struct stored_part *ingest_part(const struct ingest *ingest);
/* The ingest's own packs, of which the same change must write rows (all PACK_SEALED). */
size_t ingest_packs(const struct ingest *ingest, const struct pack_record **out_records);
/* The change was committed: the packs stay, and a helper adds their chunks to the chunk index. */
void ingest_committed(struct ingest *ingest);
/* The change failed and is in doubt: its packs, and packs of others in which it found chunks, stay
 * until the next start decides. */
void ingest_in_doubt(struct ingest *ingest);
void ingest_free(struct ingest *ingest);

#endif
