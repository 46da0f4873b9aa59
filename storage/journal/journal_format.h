/* The files of DIR/journal as bytes: logs of changes and snapshots of the whole catalog. Pure; any
 * thread. docs/FORMAT.md, "Journal". */
#ifndef STORAGE_JOURNAL_JOURNAL_FORMAT_H
#define STORAGE_JOURNAL_JOURNAL_FORMAT_H

#include "base/digest/xxh3.h"
#include "base/error.h"

enum {
	JOURNAL_HEADER_BYTES = 96,
	JOURNAL_RECORD_BYTES = 48,
	JOURNAL_FRAME_BYTES = 16,
	JOURNAL_TAIL_BYTES = 32,
	JOURNAL_STORE_BYTES = 16,
	JOURNAL_NAME_BYTES = 32
};

enum journal_kind { JOURNAL_LOG, JOURNAL_SNAPSHOT };

/* A moment of the catalog: the number of a change, and the digest of its record, in which the
 * digests of all records before it have a part. Two histories may have the same number. */
struct journal_point {
	int64_t change;
	struct digest128 digest;
};
bool journal_point_equal(const struct journal_point *a, const struct journal_point *b);

struct journal_header {
	uint8_t store[JOURNAL_STORE_BYTES];
	uint64_t life;
	uint64_t number; /* of the file: later files have higher ones */
	uint32_t schema; /* of the tables (catalog.h) */
	int64_t made_ms;
	/* of a log: what its first record follows on; of a snapshot: what it is of */
	struct journal_point point;
	bool is_anew; /* of a log: no earlier file leads to that point */
};
void journal_header_encode(enum journal_kind kind, const struct journal_header *header,
	uint8_t out[JOURNAL_HEADER_BYTES]);
/* corrupt when it is damaged or of another kind; unsupported: a newer program made it. */
int journal_header_decode(enum journal_kind kind, const uint8_t bytes[JOURNAL_HEADER_BYTES],
	struct journal_header *out, struct error *err);

struct journal_record { /* before the rows of a change, which may be none */
	uint32_t bytes;
	int64_t change;
	uint64_t sums; /* table_sums_total after it */
	int64_t made_ms;
	struct digest128 digest;
};
/* Computes the digest, from that of the record before and from the rows. */
void journal_record_encode(struct journal_record *record, const struct digest128 *before,
	struct span rows, uint8_t out[JOURNAL_RECORD_BYTES]);
/* False when these cannot be the first bytes of a record. */
bool journal_record_decode(const uint8_t bytes[JOURNAL_RECORD_BYTES], struct journal_record *out);
/* Whether the digest is right. */
bool journal_record_holds(
	const struct journal_record *record, const struct digest128 *before, struct span rows);

struct journal_frame { /* before rows of a snapshot, one zstd frame */
	uint32_t stored;
	uint32_t rows; /* bytes uncompressed; 0: the tail follows */
	uint64_t sum;  /* XXH3-64 of the stored bytes, with `rows` as the seed */
};
void journal_frame_encode(const struct journal_frame *frame, uint8_t out[JOURNAL_FRAME_BYTES]);
void journal_frame_decode(const uint8_t bytes[JOURNAL_FRAME_BYTES], struct journal_frame *out);

struct journal_tail { /* the end of a snapshot */
	uint64_t frames;
	uint64_t rows;
	uint64_t sums; /* table_sums_total */
};
void journal_tail_encode(const struct journal_tail *tail, uint8_t out[JOURNAL_TAIL_BYTES]);
bool journal_tail_decode(const uint8_t bytes[JOURNAL_TAIL_BYTES], struct journal_tail *out);

/* The name of a file, and back; false for other names. */
void journal_name_print(enum journal_kind kind, uint64_t number, char out[JOURNAL_NAME_BYTES]);
bool journal_name_parse(const char *name, enum journal_kind *out_kind, uint64_t *out_number);

#endif
