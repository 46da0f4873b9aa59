/* The column uploads.result: list digest (16), version id (16), the bucket's versioning (1),
 * checksum algorithm (1), type (1), length (1), part count (4), size (8), checksum, ETag.
 * Little-endian. */
#include <string.h>

#include "base/encode.h"
#include "base/little_endian.h"
#include "storage/uploads/upload_judge.h"

enum {
	RESULT_VERSION = 16,
	RESULT_VERSIONING = RESULT_VERSION + VERSION_ID_BYTES,
	RESULT_ALGORITHM = RESULT_VERSIONING + 1,
	RESULT_TYPE = RESULT_ALGORITHM + 1,
	RESULT_CHECKSUM_LENGTH = RESULT_TYPE + 1,
	RESULT_PARTS = RESULT_CHECKSUM_LENGTH + 1,
	RESULT_SIZE = RESULT_PARTS + 4,
	RESULT_FIXED_BYTES = RESULT_SIZE + 8
};

void upload_result_write(const struct upload_verdict *verdict, enum bucket_versioning versioning,
	const uint8_t version[VERSION_ID_BYTES], struct buffer *out)
{
	uint8_t fixed[RESULT_FIXED_BYTES];
	memcpy(fixed, verdict->list.bytes, sizeof(verdict->list.bytes));
	memcpy(fixed + RESULT_VERSION, version, VERSION_ID_BYTES);
	fixed[RESULT_VERSIONING] = (uint8_t)versioning;
	fixed[RESULT_ALGORITHM] = (uint8_t)verdict->checksum.algorithm;
	fixed[RESULT_TYPE] = (uint8_t)verdict->checksum.type;
	fixed[RESULT_CHECKSUM_LENGTH] = verdict->checksum.len;
	little_endian_put(fixed + RESULT_PARTS, verdict->part_count, 4);
	little_endian_put(fixed + RESULT_SIZE, verdict->size, 8);
	buffer_add(out, fixed, sizeof(fixed));
	buffer_add(out, verdict->checksum.bytes, verdict->checksum.len);
	buffer_add_text(out, verdict->etag);
}

bool upload_result_read(struct span blob, struct digest128 *out_list, struct upload_result *out)
{
	*out = (struct upload_result){0};
	if (blob.len < RESULT_FIXED_BYTES)
		return false;
	const uint8_t *const fixed = blob.data;
	out->checksum.len = fixed[RESULT_CHECKSUM_LENGTH];
	const struct span etag =
		span_slice(blob, RESULT_FIXED_BYTES + (size_t)out->checksum.len, blob.len);
	if (out->checksum.len > CHECKSUM_MAX_BYTES || etag.len == 0 ||
		etag.len >= OBJECT_ETAG_BYTES)
		return false;
	memcpy(out_list->bytes, fixed, sizeof(out_list->bytes));
	if (fixed[RESULT_VERSIONING] == BUCKET_VERSIONED)
		encode_hex(span_of(fixed + RESULT_VERSION, VERSION_ID_BYTES), out->version);
	out->checksum.algorithm = (enum checksum_algorithm)fixed[RESULT_ALGORITHM];
	out->checksum.type = (enum checksum_type)fixed[RESULT_TYPE];
	memcpy(out->checksum.bytes, fixed + RESULT_FIXED_BYTES, out->checksum.len);
	out->part_count = (uint32_t)little_endian_get(fixed + RESULT_PARTS, 4);
	out->size = little_endian_get(fixed + RESULT_SIZE, 8);
	memcpy(out->etag, etag.data, etag.len);
	return true;
}
