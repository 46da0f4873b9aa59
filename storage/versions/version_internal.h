/* Shared by version_row.c, version_change.c and version_scan.c, and read by listings. Internal to
 * the table `versions`. */
#ifndef STORAGE_VERSIONS_VERSION_INTERNAL_H
#define STORAGE_VERSIONS_VERSION_INTERNAL_H

#include "storage/versions/version.h"

/* In the order that version_read_row takes them. */
#define VERSION_COLUMNS \
	"sequence, id, bucket, key, state, is_marker, kind, size, etag, digest, file_hash, modified_ms, headers, part_set, contents, checksum," \
	" has_id, retired_ms, part_count, checksum_kind, checksum_value, storage_class, acl, tags"

enum { VERSION_COMPOSITE = 16 };

/* The column `checksum_kind`: the algorithm, plus VERSION_COMPOSITE for a COMPOSITE checksum. */
int64_t version_checksum_kind(const struct checksum *checksum);
void version_read_checksum_kind(
	int64_t kind, enum checksum_algorithm *out_algorithm, enum checksum_type *out_type);
/* The column part_set: 0 (NULL) when a VERSION_SINGLE has its own set. */
int64_t version_stored_set(const struct version *version);
/* The column `checksum` of a version with these texts. */
uint64_t version_sum(
	const struct version *version, struct span key, struct span headers, struct span tags);
/* Reads the row at which a statement of VERSION_COLUMNS stands; corrupt when its checksum does not
 * match. With `arena` NULL, texts stay empty. */
int version_read_row(struct db *db, struct db_statement *statement, struct arena *arena,
	struct version *out, struct error *err);

#endif
