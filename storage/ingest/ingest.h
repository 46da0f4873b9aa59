/* One stream of bytes on its way into packs: chunked, identified, deduplicated, encoded, written. A
 * chunk that is stored already counts once its stored bytes were read since the start and found
 * right; else, and where a helper finds them wrong, it is stored anew. Or a serialized xorb, whose
 * records are verified and kept as they lie, all of them in one run. Streams that leave up to
 * INGEST_SMALL_BYTES to store stay in memory until the committer places them in the shared pack;
 * others fill packs of their own, which helpers write and sync. Digests of long streams run on
 * helpers too: the writer's thread never waits for the disk. Nothing here is visible until a change
 * commits what ingest_part says.
 *
 *   open --write*--> --finish--> (helpers) --done--> [small: place, by the committer]
 *        --> part goes into a change --> committed --> free
 *   free without `committed` or `in_doubt`: own packs are deleted (invariant 4), holds released.
 *
 * write, finish and free by one thread at a time, free not between finish and done; it never waits.
 * done comes from a helper or from inside finish. One ingest takes up to 28 MiB while it works, and
 * 80 bytes for each of its chunks; a write of more than 1 MiB at a time adds its size. */
#ifndef STORAGE_INGEST_INGEST_H
#define STORAGE_INGEST_INGEST_H

#include "base/stream.h"
#include "storage/packs/pack_store.h"

enum { INGEST_SMALL_BYTES = 256 * 1024 };

struct ingest;

/* The bytes are a serialized xorb (chunker/xorb_parse.h) of this hash. Else the outcome is invalid,
 * and nothing of it is kept. */
struct ingest_xorb {
	struct chunk_id hash;
	bool private_codecs;
};
struct ingest_options {
	struct pack_store *packs;
	bool want_md5;
	enum checksum_algorithm checksum; /* computed beside the digests; CHECKSUM_NONE: none */
	/* another one, because the client sends its value; CHECKSUM_NONE: none */
	enum checksum_algorithm declared;
	bool never_inline; /* the smallest stream goes into a pack too: parts */
	/* repeats are stored again sooner: for very long streams whose rows shall fit into one
	 * change */
	bool few_segments;
	/* NULL: content. Else there are no digests, no file hash, nothing inline, and the part's
	 * one segment is the xorb; its size is that of the bytes. Copied. */
	const struct ingest_xorb *xorb;
	/* Called (from a helper, under a lock: only wake the writer) when an ingest_write that
	 * answered SINK_WAIT may be tried again. Never after ingest_free returned. */
	void (*room)(void *owner);
	/* Called once after ingest_finish, when ingest_outcome may be asked. May come before
	 * ingest_finish returns. */
	void (*done)(void *owner);
	void *owner;
};
/* no_space when what is left of the disk is kept for other things. */
struct ingest *ingest_open(const struct ingest_options *options, struct error *err);
/* SINK_WAIT: nothing was taken, `room` comes. */
enum sink_result ingest_write(struct ingest *ingest, struct span bytes, struct error *err);
/* The chunk under way ends here, as it does at the end of a part: the next byte begins another. */
int ingest_cut(struct ingest *ingest, struct error *err);
void ingest_finish(struct ingest *ingest);
/* After done: 0, or -1 with what went wrong (no_space, io...). */
int ingest_outcome(struct ingest *ingest, struct error *err);
/* On the committer, before its shared sync: puts a small ingest's chunks into the shared pack.
 * Nothing to do for others. After a failure the ingest can only be freed. */
int ingest_place(struct ingest *ingest, struct error *err);
/* What the catalog must know; valid after place, until free. */
const struct stored_part *ingest_part(const struct ingest *ingest);
/* Own packs that the same change must record (all PACK_SEALED). */
size_t ingest_packs(const struct ingest *ingest, const struct pack_record **out_records);
/* The change committed: packs stay, their chunks enter the chunk index (by a helper). */
void ingest_committed(struct ingest *ingest);
/* The change failed and is in doubt: packs, those of others that it found chunks in too, stay for
 * the next start to judge. */
void ingest_in_doubt(struct ingest *ingest);
void ingest_free(struct ingest *ingest);

#endif
