/* Reads chunk records of packs in the form that Xet clients see (xorb_view.h), and verifies each by
 * its checksum before a byte leaves (invariant 7). Internal to storage; any thread. */
#ifndef STORAGE_PACKS_PACK_RECORD_H
#define STORAGE_PACKS_PACK_RECORD_H

#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store.h"

enum { PACK_RECORD_MAX_BYTES = PACK_RECORD_HEADER_BYTES + PACK_STORED_MAX_BYTES };

/* Whether clients see the record as it is stored. */
bool pack_record_is_plain(const struct pack_entry *entry, bool as_stored);
/* The length of the record as clients see it. */
uint32_t pack_record_shown(const struct pack_entry *entry, bool as_stored);
/* Reads whole records of the run as clients see them, as many as are adjacent and fit into
 * read->capacity, in one read straight to read->into. A first record that must be decoded is read
 * alone. Sets chunks and len, both 0 when the first does not fit. If a bad record follows good ones
 * it returns -1, and the good ones are counted. corrupt when a record is wrong or not there any
 * more. At most PACK_RUN_CHUNKS in a call. May return PACK_WAITS if read->wait is set. */
int pack_store_read_records(struct pack_store *store, const struct pack_run *run, bool as_stored,
	struct pack_read *read, struct error *err);

/* The same as pack_store_check_records, with the caller's memory of at least
 * PACK_RECORD_MAX_BYTES. */
int pack_store_check_into(struct pack_store *store, const struct pack_run *run, uint8_t *bytes,
	size_t capacity, struct error *err);

#endif
