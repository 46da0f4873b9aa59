/* The part set of a multipart upload: filled part by part, closed with a map, read by part. The
 * tables part_sets, parts, segments. Internal to storage. */
#ifndef STORAGE_VERSIONS_UPLOAD_SET_H
#define STORAGE_VERSIONS_UPLOAD_SET_H

#include "storage/versions/object.h"
#include "storage/versions/part.h"
#include "storage/versions/part_map.h"

struct upload_set_part {
	uint32_t number;
	uint64_t size;
	bool has_md5;
	uint8_t md5[16];
	struct digest128 digest; /* XXH3-128 */
	uint8_t checksum_len;    /* 0: none */
	uint8_t checksum[CHECKSUM_MAX_BYTES];
	int64_t modified_ms;
	uint64_t sum; /* of the whole row, as the map has it */
};
/* Fills in what the part's row will say of the stored bytes; `sum` stays 0. */
void upload_set_describe(const struct stored_part *stored, uint32_t number, int64_t modified_ms,
	struct upload_set_part *out);

/* CHECKSUM_NONE when the part has none. */
struct checksum upload_set_checksum(
	const struct upload_set_part *part, enum checksum_algorithm algorithm);
/* As clients see it: the MD5 in hex. A part without MD5 has its digest and "-1", which tells
 * clients that it is not an MD5. */
void upload_set_etag(const struct upload_set_part *part, char out[OBJECT_ETAG_BYTES]);

/* Adds an empty set, with the upload as its holder. */
int upload_set_add(struct db *db, int64_t *out_set, struct error *err);
/* Adds a part, in place of an earlier part with its number. Every pack that it names must have a
 * row (invariant 1). */
int upload_set_put(struct db *db, int64_t set, const struct stored_part *stored,
	const struct upload_set_part *part, struct error *err);
/* The set is complete: from here on it is read through the map. */
int upload_set_close(struct db *db, int64_t set, struct span map, struct error *err);
/* Removes parts that the map does not list, until `limit` rows or a few more are gone. *out_more:
 * there may be others. */
int upload_set_trim(struct db *db, int64_t set, size_t limit, bool *out_more, struct error *err);

/* Parts with a number of at least `from`, in order. Step the statement, read its rows with
 * upload_set_read and db_reset it. */
struct db_statement *upload_set_scan(struct db *db, int64_t set, uint32_t from, struct error *err);
void upload_set_read(struct db_statement *scan, struct upload_set_part *out);
/* The map of a closed set, verified; it lives until the statement is reset. 0 found, 1 the set has
 * no map (nothing to reset), -1. */
int upload_set_map(struct db *db, int64_t set, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err);
/* Finds a part that the map lists and verifies its row. */
int upload_set_find(struct db *db, int64_t set, const struct part_map_entry *entry,
	struct upload_set_part *out, struct error *err);

#endif
