/* Chunk records of packs in the form that is shown to Xet clients (xorb_view.h), each verified by
 * its checksum before a byte leaves (invariant 7). Internal to storage; any thread. */
#ifndef STORAGE_PACKS_PACK_RECORD_H
#define STORAGE_PACKS_PACK_RECORD_H

#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store.h"

enum { PACK_RECORD_MAX_BYTES = PACK_RECORD_HEADER_BYTES + PACK_STORED_MAX_BYTES };

/* Whether the record is shown as it lies. */
bool pack_record_is_plain(const struct pack_entry *entry, bool as_stored);
/* What it takes when shown. */
uint32_t pack_record_shown(const struct pack_entry *entry, bool as_stored);
/* As many whole records of the run as lie on one another as they are shown and fit into `capacity`,
 * in one read straight to `into`; the first alone when it must be decoded. *out_len 0: the first
 * does not fit. With a bad record behind good ones: -1, and those before are counted. corrupt when
 * the record is not what it should be, or no more there. At most PACK_RUN_CHUNKS a call. */
int pack_store_read_records(struct pack_store *store, const struct pack_run *run, bool as_stored,
	uint8_t *into, size_t capacity, uint32_t *out_chunks, size_t *out_len, struct error *err);

/* pack_store_check_records with the caller's memory, of PACK_RECORD_MAX_BYTES or more. */
int pack_store_check_into(struct pack_store *store, const struct pack_run *run, uint8_t *bytes,
	size_t capacity, struct error *err);

#endif
