/* How far scrub has come: what is left of a round over a restart, and what the last whole round
 * found. A small file, DIR/scrub, written without a sync: it is derived, and a lost or damaged one
 * only begins a new round. docs/FORMAT.md, "Scrub". One thread at a time. Internal to storage. */
#ifndef STORAGE_SCRUB_SCRUB_STATE_H
#define STORAGE_SCRUB_SCRUB_STATE_H

#include "base/file.h"

struct scrub_report {
	uint64_t packs; /* looked at to their end */
	uint64_t bytes; /* of records that were read and verified */
	uint64_t chunks_damaged;
	uint64_t chunks_healed; /* of all that were damaged, whoever found them */
	/* that could not be read for other reasons, or not be mended; the log names them */
	uint64_t packs_failed;
	uint64_t packs_mended;  /* that described themselves wrongly and were written again */
};

struct scrub_state {
	int64_t began_ms; /* wall time at which the present round began; 0: there is none */
	/* The round goes on with the chunk of this number of this pack (a number in the table
	 * `packs`), or with the packs of higher numbers when that is gone. */
	int64_t pack;
	uint32_t chunk;
	struct scrub_report report; /* of the present round */
	int64_t last_began_ms;      /* the last whole round; 0: none yet */
	int64_t last_ended_ms;
	struct scrub_report last;
};

/* Zeros when there is no such file. corrupt, and zeros, when it is not one. */
int scrub_state_read(const char *path, struct scrub_state *out, struct error *err);
int scrub_state_write(const struct file_ops *files, const char *path,
	const struct scrub_state *state, struct error *err);

#endif
