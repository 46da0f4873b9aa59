/* Reads the records of a pack and verifies each: its header and checksum, without decoding. It
 * works on a file and an index alone, so that a store that is not open can be scanned too. Give it
 * a file that backend->ops->open_uncached opened, and it verifies what the disk has. One thread at a
 * time for each file. */
#ifndef STORAGE_PACKS_PACK_SCAN_H
#define STORAGE_PACKS_PACK_SCAN_H

#include "storage/packs/pack_index.h"

enum { PACK_SCAN_BYTES = 1024 * 1024 }; /* of one read */

struct pack_scan {
	/* Called before so many bytes are read; may sleep. false ends the scan with busy. */
	bool (*spend)(void *owner, size_t bytes);
	/* The record of this chunk is damaged, or the disk cannot give it. `why` does not name pack
	 * and chunk. */
	void (*found)(void *owner, uint32_t chunk, const struct error *why);
	/* The entries before the one at place `next` were looked at, since the last call or `from`
	 * on. May be NULL. */
	void (*passed)(void *owner, uint32_t next);
	void *owner;
};

/* Scans the records of `index`, a sealed pack's, from its entry at place `from` on (pack_index_at).
 * The index belongs to the caller and must not change meanwhile. Returns 0 when all were looked at,
 * whatever was found. -1: busy, or the failure of a read that tells nothing about the bytes on the
 * disk (pack_damage_is). */
int pack_scan_records(struct backend_file *file, const struct pack_index *index, uint32_t from,
	const struct pack_scan *scan, struct error *err);

#endif
