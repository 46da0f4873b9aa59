/* What version_row, version_change and version_scan share. Internal to the table `versions`. */
#ifndef STORAGE_VERSIONS_VERSION_INTERNAL_H
#define STORAGE_VERSIONS_VERSION_INTERNAL_H

#include "storage/versions/version.h"

/* In the order that version_read_row takes them. */
#define VERSION_COLUMNS \
	"sequence, id, bucket, key, state, is_marker, kind, size, etag, digest, file_hash, modified_ms, headers, part_set, contents, checksum," \
	" has_id, retired_ms, part_count, checksum_kind, checksum_value, storage_class, acl, tags"

enum { VERSION_CHECKSUM_TYPE = 16 };

/* `checksum_kind`: the algorithm, and 16 more for a COMPOSITE. */
int64_t version_checksum_kind(const struct checksum *checksum);
void version_read_checksum_kind(
	int64_t kind, enum checksum_algorithm *out_algorithm, enum checksum_type *out_type);
/* The column part_set: 0 (NULL) for the own set of a VERSION_SINGLE. */
int64_t version_stored_set(const struct version *version);
/* What the column `checksum` says of a version with these texts. */
uint64_t version_sum(
	const struct version *version, struct span key, struct span headers, struct span tags);
/* The row a statement of VERSION_COLUMNS stands at; corrupt when its checksum does not match. With
 * `arena` NULL texts stay empty. */
int version_read_row(struct db *db, struct db_statement *statement, struct arena *arena,
	struct version *out, struct error *err);

#endif
