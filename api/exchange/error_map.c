/* One row for each kind of base/error.def. Most kinds have the same status on all faces. The texts
 * of failures inside the server are replaced by a general sentence, because they may name its
 * files. */
#include "api/exchange/error_map.h"

#include "storage/core/store.h"

#define ROW(name, status, s3, json)                    \
	{                                              \
		ERROR_##name, status, status, s3, json \
	}

static const struct error_row rows[] = {
	ROW(NOT_FOUND, 404, "NoSuchKey", "not_found"),
	ROW(EXISTS, 409, "OperationAborted", "exists"),
	ROW(INVALID, 400, "InvalidArgument", "invalid"),
	ROW(DENIED, 403, "AccessDenied", "denied"),
	ROW(TOO_LARGE, 400, "EntityTooLarge", "too_large"),
	ROW(RANGE, 416, "InvalidRange", "range"),
	ROW(CORRUPT, 500, "InternalError", "corrupt"),
	ROW(NO_SPACE, 507, "InsufficientStorage", "no_space"),
	ROW(IO, 500, "InternalError", "internal"),
	ROW(BUSY, 503, "SlowDown", "busy"),
	ROW(DAMAGED, 503, "ServiceUnavailable", "damaged"),
	ROW(CONTENT_DAMAGED, 409, "ContentDamaged", "content_damaged"),
	ROW(READ_ONLY, 503, "ServiceUnavailable", "read_only"),
	ROW(UPSTREAM, 503, "ServiceUnavailable", "upstream"),
	ROW(UNTRUSTED, 502, "ServiceUnavailable", "untrusted"),
	ROW(UNSUPPORTED, 501, "NotImplemented", "unsupported"),
	ROW(NO_MEMORY, 503, "SlowDown", "no_memory"),
	ROW(PRECONDITION, 412, "PreconditionFailed", "precondition"),
	ROW(NO_BUCKET, 404, "NoSuchBucket", "no_bucket"),
	ROW(NO_KEY, 404, "NoSuchKey", "no_key"),
	ROW(NO_RUN, 404, "NoSuchKey", "no_run"),
	ROW(NO_STEP, 404, "NoSuchKey", "no_step"),
	ROW(BUCKET_OWNED, 409, "BucketAlreadyOwnedByYou", "bucket_owned"),
	ROW(BUCKET_TAKEN, 409, "BucketAlreadyExists", "bucket_taken"),
	ROW(BUCKET_NOT_EMPTY, 409, "BucketNotEmpty", "bucket_not_empty"),
	ROW(BUCKET_HAS_RUNS, 409, "BucketNotEmpty", "bucket_has_runs"),
	ROW(BAD_NAME, 400, "InvalidBucketName", "bad_name"),
	ROW(KEY_TOO_LONG, 400, "KeyTooLongError", "key_too_long"),
	ROW(METADATA_TOO_LARGE, 400, "MetadataTooLarge", "metadata_too_large"),
	ROW(BAD_DIGEST, 400, "BadDigest", "bad_digest"),
	ROW(SHA256_MISMATCH, 400, "XAmzContentSHA256Mismatch", "sha256_mismatch"),
	ROW(INCOMPLETE_BODY, 400, "IncompleteBody", "incomplete_body"),
	ROW(INVALID_DIGEST, 400, "InvalidDigest", "invalid_digest"),
	ROW(LENGTH_REQUIRED, 411, "MissingContentLength", "length_required"),
	ROW(BAD_URI, 400, "InvalidURI", "bad_uri"),
	ROW(METHOD, 405, "MethodNotAllowed", "method"),
	ROW(MALFORMED_XML, 400, "MalformedXML", "malformed_xml"),
	ROW(NO_VERSION, 404, "NoSuchVersion", "no_version"),
	ROW(NO_PART, 400, "InvalidPart", "no_part"),
	ROW(BAD_TAG, 400, "InvalidTag", "bad_tag"),
	ROW(TOO_MANY_TAGS, 400, "BadRequest", "too_many_tags"),
	ROW(NO_UPLOAD, 404, "NoSuchUpload", "no_upload"),
	ROW(INVALID_PART, 400, "InvalidPart", "invalid_part"),
	ROW(PART_ORDER, 400, "InvalidPartOrder", "part_order"),
	ROW(PART_TOO_SMALL, 400, "EntityTooSmall", "part_too_small"),
	{ERROR_NO_CREDENTIALS, 403, 401, "AccessDenied", "no_credentials"},
	{ERROR_UNKNOWN_KEY_ID, 403, 401, "InvalidAccessKeyId", "unknown_key"},
	{ERROR_SIGNATURE, 403, 401, "SignatureDoesNotMatch", "signature"},
	ROW(SKEW, 403, "RequestTimeTooSkewed", "skew"),
	ROW(AUTH_MALFORMED, 400, "AuthorizationHeaderMalformed", "auth_malformed"),
	ROW(AUTH_QUERY, 400, "AuthorizationQueryParametersError", "auth_query"),
	ROW(CHUNK_SIZE, 400, "InvalidChunkSizeError", "chunk_size"),
	ROW(MALFORMED_TRAILER, 400, "MalformedTrailerError", "malformed_trailer"),
	ROW(INVALID_REQUEST, 400, "InvalidRequest", "invalid_request"),
	ROW(INVALID_TOKEN, 400, "InvalidToken", "invalid_token"),
	{ERROR_HEADERS_TOO_LARGE, 400, 431, "RequestHeaderSectionTooLarge", "headers_too_large"},
	ROW(HEAD_MOVED, 409, "OperationAborted", "head_moved"),
	ROW(STEP_DIFFERS, 409, "OperationAborted", "step_differs"),
	ROW(BASE_MISSING, 409, "OperationAborted", "base_missing"),
	ROW(STALE_EPOCH, 412, "PreconditionFailed", "stale_epoch"),
	ROW(SCHEMA_MISMATCH, 422, "InvalidRequest", "schema_mismatch"),
	ROW(INCOMPLETE_ANCHOR, 422, "InvalidRequest", "incomplete_anchor"),
	ROW(SNAPSHOT_FORMAT, 422, "InvalidRequest", "snapshot_format"),
	ROW(DIGEST_MISMATCH, 422, "BadDigest", "digest_mismatch"),
	ROW(PARTS_MISMATCH, 422, "InvalidRequest", "parts_mismatch"),
	ROW(COLLECTED, 410, "NoSuchKey", "collected"),
	ROW(NOT_READY, 425, "OperationAborted", "not_ready"),
	ROW(CHAIN_IN_USE, 409, "OperationAborted", "chain_in_use"),
	ROW(STEP_FAILED, 409, "OperationAborted", "step_failed"),
	ROW(WRONG_BASE, 409, "OperationAborted", "wrong_base"),
};

/* For kinds without a row, which is a fault of this program. */
static const struct error_row internal = {ERROR_IO, 500, 500, "InternalError", "internal"};

const struct error_row *error_map_find(enum error_kind kind)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].kind == kind)
			return &rows[i];
	return &internal;
}

const char *error_map_text(const struct error *err, const struct error_row *row)
{
	if (row->status == 507)
		return disk_floor_refuses(err) ? err->text : "The server's disk is full.";
	if (row->kind == ERROR_READ_ONLY && err->os_errno != 0) /* The text may name a file. */
		return "The store is read-only at present: its file system takes no writes.";
	return row->status == 500 ? "The server failed to answer this request. Please try again."
				  : err->text;
}

const struct error_row *error_map_rows(size_t *out_count)
{
	*out_count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
