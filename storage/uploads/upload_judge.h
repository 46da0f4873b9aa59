/* Judges a list of parts: each part against its row, and the map, ETag, size and checksum of the
 * object that they make. Also the form in which a completed upload keeps that. On any thread that
 * may read the catalog for long. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_JUDGE_H
#define STORAGE_UPLOADS_UPLOAD_JUDGE_H

#include "storage/uploads/upload_row.h"
#include "storage/versions/upload_set.h"

struct upload_verdict {
	/* XXH3-128 of the list: u32 number (little-endian) and ETag of each part */
	struct digest128 list;
	struct buffer map;
	uint64_t size;
	uint32_t part_count;
	bool has_unlisted; /* the set has parts that are not in the list */
	char etag[OBJECT_ETAG_BYTES];
	struct checksum checksum;
	struct upload_fault fault;
};
void upload_verdict_init(struct upload_verdict *verdict);
void upload_verdict_release(struct upload_verdict *verdict);

struct digest128 upload_judge_list(const struct upload_listed_part *parts, size_t count);
/* Fails with the errors of upload_complete_call. After a failure `fault` may name a part, and after
 * bad_digest `checksum` is that of the whole. */
int upload_judge(struct db *db, const struct upload_row *upload,
	const struct upload_complete_params *params, struct upload_verdict *out, struct error *err);

/* The column uploads.result: docs/FORMAT.md, "Multipart uploads". */
void upload_result_write(const struct upload_verdict *verdict, enum bucket_versioning versioning,
	const uint8_t version[VERSION_ID_BYTES], struct buffer *out);
/* False when malformed. */
bool upload_result_read(struct span blob, struct digest128 *out_list, struct upload_result *out);

#endif
