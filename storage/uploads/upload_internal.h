/* Shared by the .c files that implement upload.h. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_INTERNAL_H
#define STORAGE_UPLOADS_UPLOAD_INTERNAL_H

#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_row.h"
#include "storage/uploads/upload_row.h"
#include "storage/versions/upload_set.h"

enum { UPLOAD_CALL_ARENA_BYTES = 2 * 1024 * 1024 };

struct upload_ref upload_ref_copy(const struct upload_ref *ref, struct arena *arena);
/* Reads the row of an open upload: no_bucket, no_upload. With `arena` NULL, the row's texts stay
 * empty. */
int upload_read_open(struct db *db, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err);
/* The same with a reader of its own. */
int upload_find_open(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload_row *out, struct error *err);
/* Checks whether the upload takes such a part: invalid, invalid_request. */
int upload_part_check(const struct upload_row *upload, uint32_t number,
	enum checksum_algorithm declared, struct error *err);
/* Rows as callers see them. */
struct upload upload_of_row(const struct upload_row *row);
struct uploaded_part uploaded_part_of(
	const struct upload_set_part *part, const struct upload_checksum *checksum);

#endif
