/* The bytes of a pack: header, chunk records, xorb footers, entries, file names. docs/FORMAT.md,
 * "Packs". Pure functions; any thread. */
#ifndef STORAGE_PACKS_PACK_FORMAT_H
#define STORAGE_PACKS_PACK_FORMAT_H

#include "base/buffer.h"
#include "chunker/xorb_record.h"
#include "storage/packs/segment.h"

enum {
	PACK_GROWN_VERSION = 1,     /* written xorb by xorb, each with its footer */
	PACK_COMPACTED_VERSION = 2, /* written again by gc (pack_table.h) */
	PACK_HEADER_BYTES = 64,
	PACK_RECORD_HEADER_BYTES = XORB_RECORD_HEADER_BYTES,
	PACK_ENTRY_BYTES = 48,
	PACK_FOOTER_FIXED_BYTES = 64, /* a footer without its entries */
	PACK_FOOTER_TAIL_BYTES = 16,  /* the end of a footer, which tells its size */
	PACK_STORED_MAX_BYTES = XORB_STORED_MAX_BYTES,
	PACK_MAX_CHUNKS = 32768,
	PACK_NAME_BYTES = 48
};

/* One chunk record, as footers and indexes describe it. `offset`, where its record header begins in
 * the pack, is computed and never stored. */
struct pack_entry {
	struct chunk_id id;
	uint64_t checksum; /* XXH3-64 of the payload */
	uint32_t offset;
	uint32_t stored; /* payload bytes; C in docs/FORMAT.md */
	uint32_t size;   /* uncompressed bytes; U in docs/FORMAT.md */
	uint8_t codec;
};

void pack_format_put_header(const struct pack_id *pack, const struct pack_origin *origin,
	uint8_t out[PACK_HEADER_BYTES]);
/* corrupt, or unsupported for a newer version. */
int pack_format_check_header(
	const uint8_t header[PACK_HEADER_BYTES], const struct pack_id *pack, struct error *err);
/* For a compacted pack: the header names the pack and the file. */
void pack_format_put_compacted_header(const struct pack_id *pack, const struct pack_id *file,
	const struct pack_origin *origin, uint8_t out[PACK_HEADER_BYTES]);
/* Reads the origin from a header; false when it is not a pack's header or is damaged. */
bool pack_format_read_origin(const uint8_t header[PACK_HEADER_BYTES], struct pack_origin *out);
/* The pack that a header names; only after pack_format_read_origin found it right. */
struct pack_id pack_format_read_pack(const uint8_t header[PACK_HEADER_BYTES]);
int pack_format_check_compacted_header(const uint8_t header[PACK_HEADER_BYTES],
	const struct pack_id *pack, const struct pack_id *file, struct error *err);

void pack_format_put_record_header(
	const struct pack_entry *entry, uint8_t out[PACK_RECORD_HEADER_BYTES]);
/* Whether the 8 bytes before a payload say the same as the entry. */
bool pack_format_record_matches(
	const uint8_t header[PACK_RECORD_HEADER_BYTES], const struct pack_entry *entry);

void pack_format_put_entry(const struct pack_entry *entry, uint8_t out[PACK_ENTRY_BYTES]);
/* False when lengths or codec are impossible. Leaves the offset 0. */
bool pack_format_get_entry(const uint8_t from[PACK_ENTRY_BYTES], struct pack_entry *out);

struct pack_footer {
	struct chunk_id hash;
	uint32_t count;
	uint32_t record_bytes;
};
size_t pack_format_footer_bytes(uint32_t count);
void pack_format_add_footer(
	struct buffer *out, const struct pack_footer *footer, const struct pack_entry *entries);
/* The size of a footer from its last PACK_FOOTER_TAIL_BYTES; 0 when these cannot end a footer. */
size_t pack_format_footer_size(const uint8_t tail[PACK_FOOTER_TAIL_BYTES]);
/* Reads and checks a whole footer. `entries` has room for XORB_MAX_CHUNKS. corrupt when anything
 * does not add up. */
int pack_format_get_footer(
	struct span bytes, struct pack_footer *out, struct pack_entry *entries, struct error *err);

/* For a walk over a grown pack from its front: the length of the record or footer that begins with
 * these bytes, and whether it is a footer, which ends a xorb. 0: neither does. */
enum { PACK_PIECE_BYTES = 16 };
uint64_t pack_format_piece_length(const uint8_t from[PACK_PIECE_BYTES], bool *out_ends_xorb);

enum pack_file_kind { PACK_FILE_PACK, PACK_FILE_INDEX };
void pack_format_name(
	const struct pack_id *pack, enum pack_file_kind kind, char out[PACK_NAME_BYTES]);
bool pack_format_parse_name(
	const char *name, struct pack_id *out_pack, enum pack_file_kind *out_kind);

/* 32 hex digits and a NUL, for messages. */
enum { PACK_ID_TEXT_BYTES = 33 };
void pack_id_format(const struct pack_id *pack, char out[PACK_ID_TEXT_BYTES]);
bool pack_id_equal(const struct pack_id *a, const struct pack_id *b);
/* The id that names the record's file. */
const struct pack_id *pack_record_file(const struct pack_record *record);

#endif
