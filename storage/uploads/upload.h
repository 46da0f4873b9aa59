/* Multipart uploads: created, filled part by part, listed, completed or aborted
 * (docs/protocol/s3.md, "Multipart uploads"). An upload owns a part set from its creation on. The
 * bytes of a part are stored as they arrive and never written again: completing adds the set's map
 * (storage/versions/part_map.h) and one version that leads to the set. The sweeper aborts uploads
 * whose bucket is gone. Any thread.
 *
 * Operations that change something are calls (storage/core/call.h). They copy the texts of their
 * parameters, and their result may be read after they have succeeded. The error is no_upload for an
 * upload that does not exist under this bucket and key, or does not exist any more. */
#ifndef STORAGE_UPLOADS_UPLOAD_H
#define STORAGE_UPLOADS_UPLOAD_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"
#include "storage/versions/object.h"

enum {
	UPLOAD_ID_BYTES = 16,
	UPLOAD_ID_TEXT_BYTES = 2 * UPLOAD_ID_BYTES + 1,
	UPLOAD_PARTS_MAX = 10000,
	UPLOAD_PART_MIN_BYTES = 5 * 1024 * 1024 /* of each part but the last */
};

struct upload_id { /* rises with the time of creation; opaque to clients */
	uint8_t bytes[UPLOAD_ID_BYTES];
};
void upload_id_format(const struct upload_id *id, char out[UPLOAD_ID_TEXT_BYTES]);
bool upload_id_parse(struct span text, struct upload_id *out); /* 32 hex digits */

/* The upload that a request names. */
struct upload_ref {
	struct bucket_ref bucket;
	struct span key;
	struct upload_id id;
};
/* The checksum of the object that the upload makes. Without `is_named` the client chose none: it is
 * CRC64NVME of the whole, and parts may have any algorithm. */
struct upload_checksum {
	bool is_named;
	enum checksum_algorithm algorithm;
	enum checksum_type type;
};
struct upload { /* an open one */
	struct upload_id id;
	struct span key;
	struct span initiator; /* namespace of the account that created it */
	int64_t created_ms;
	struct upload_checksum checksum;
	enum storage_class storage_class;
};

struct upload_create_params {
	struct bucket_ref bucket;
	struct span key;
	struct span initiator;
	struct object_facts facts;
	enum checksum_algorithm checksum; /* CHECKSUM_NONE: none is named */
	enum checksum_type type;          /* with `checksum` a pair that checksum_allows */
};
/* NULL with the errors of object_put_open. */
struct call *upload_create_call(
	struct store *store, const struct upload_create_params *params, struct error *err);
struct upload_id upload_create_result(const struct call *create);

/* Fails with no_bucket or no_upload. Texts are in the arena. */
int upload_find(struct store *store, const struct upload_ref *ref, struct arena *arena,
	struct upload *out, struct error *err);

/* One page of a bucket's open uploads, by key, then by time of creation. */
struct upload_list_params {
	struct bucket_ref bucket;
	struct span prefix;
	struct span delimiter; /* empty: none */
	/* Exclusive. With has_after_id, the uploads of this key behind that one follow. */
	struct span after_key;
	bool has_after_id;
	struct upload_id after_id;
	size_t limit; /* uploads and prefixes together */
};
struct upload_list {
	struct upload *uploads;
	size_t upload_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last_key; /* where the next page continues */
	/* The id of the last upload, or of the first one below the last prefix. */
	struct upload_id last_id;
};
int upload_list(struct store *store, const struct upload_list_params *params, struct arena *arena,
	struct upload_list *out, struct error *err);

struct uploaded_part {
	uint32_t number;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES];
	struct checksum checksum; /* of the algorithm that the upload names; else none */
	int64_t modified_ms;
};
/* Up to `limit` parts with a number above `after`, in order. */
struct upload_parts_range {
	uint32_t after;
	size_t limit;
};
struct upload_parts {
	struct upload upload;
	struct uploaded_part *parts;
	size_t count;
	bool truncated;
};
int upload_list_parts(struct store *store, const struct upload_ref *ref,
	struct upload_parts_range range, struct arena *arena, struct upload_parts *out,
	struct error *err);

/* Stores one part. Uploading a number again replaces the part; the one that finishes last wins. */
struct upload_put;
struct upload_put_params {
	struct upload_ref ref;
	uint32_t number;      /* 1..UPLOAD_PARTS_MAX, else invalid */
	bool has_content_md5; /* bad_digest when the body has another MD5 */
	uint8_t content_md5[16];
	/* of the value that upload_put_expect will get; CHECKSUM_NONE: it is not called */
	enum checksum_algorithm checksum;
	void (*room)(void *owner); /* a write that answered SINK_WAIT may be tried again */
	void *owner;               /* of `room` */
};
/* Fails with no_bucket, no_upload, invalid for a bad number, and invalid_request when the upload
 * names another algorithm. */
struct upload_put *upload_put_open(
	struct store *store, const struct upload_put_params *params, struct error *err);
enum sink_result upload_put_write(struct upload_put *put, struct span bytes, struct error *err);
/* Before the call starts: the call fails with bad_digest unless the body has this checksum. */
void upload_put_expect(struct upload_put *put, const struct checksum *checksum);
/* The call that stores the part; start it when all bytes were written. call_free also frees the
 * put, and throws the bytes away when the call was not started. */
struct call *upload_put_call(struct upload_put *put);
/* The part's checksum is the one that was expected, else of the algorithm that the upload names. */
struct uploaded_part upload_put_result(const struct call *put);
/* After a bad_digest: like object_put_bad_checksum. */
bool upload_put_bad_checksum(
	const struct call *put, struct checksum *out_expected, struct checksum *out_actual);

/* Stores a range of an object as a part. Whole chunks are taken by reference. A helper reads the
 * bytes once for their digests, unless the range is one stored part whose digests are known. */
struct upload_copy_params {
	struct upload_ref ref;
	uint32_t number;
	/* Found and authorised by the caller; no_key when it was removed since. */
	const struct object *source;
	/* Bytes [offset, offset + length) of it; range when they do not lie inside. */
	uint64_t offset;
	uint64_t length;
};
struct call *upload_copy_call(struct store *store, const struct upload_copy_params *params);
struct uploaded_part upload_copy_result(const struct call *copy);

struct upload_listed_part { /* a part as the client lists it */
	uint32_t number;
	char etag[OBJECT_ETAG_BYTES]; /* without quotes */
	struct checksum checksum;     /* CHECKSUM_NONE: not given */
};
struct upload_complete_params {
	struct upload_ref ref;
	/* 1..UPLOAD_PARTS_MAX parts, else invalid. Borrowed until the call has ended. */
	const struct upload_listed_part *parts;
	size_t part_count;
	struct object_conditions conditions;
	bool has_size; /* x-amz-mp-object-size */
	uint64_t size;
	/* The checksum of the whole, as the client expects it; CHECKSUM_NONE: not given. */
	struct checksum checksum;
	uint64_t checksum_parts; /* N of "value-N"; 0: none */
	bool has_type;           /* the client expects the checksum type `type` */
	enum checksum_type type;
};
struct upload_result {
	char etag[OBJECT_ETAG_BYTES];
	struct checksum checksum;
	uint32_t part_count;
	uint64_t size;
	char version[VERSION_TEXT_BYTES]; /* its id; "" unless versioning is enabled */
};
/* The part for which a completion was refused. */
struct upload_fault {
	uint32_t number; /* 0: none */
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES]; /* as listed */
};
/* A helper reads and judges the list, then one change judges the conditions and commits. A
 * completion that is repeated with the same numbers and ETags within 24 hours has the same result.
 * Errors: part_order; invalid_part for an unknown part, or another ETag or checksum;
 * part_too_small; invalid_request when a checksum that a COMPOSITE upload needs is missing, or size
 * or type differ; bad_digest when the whole has another checksum, or (with a fault) when a part is
 * listed with a checksum of another algorithm than the upload names; precondition, no_key;
 * no_upload; content_damaged, which names a part whose bytes are known to be damaged. The checksum
 * that is expected of the whole counts only when the upload names an algorithm. */
struct call *upload_complete_call(
	struct store *store, const struct upload_complete_params *params, struct error *err);
struct upload_result upload_complete_result(const struct call *complete);
struct upload_fault upload_complete_fault(const struct call *complete); /* after a failure */
/* After a bad_digest: the checksum that was expected and that of the whole. */
void upload_complete_checksums(
	const struct call *complete, struct checksum *out_expected, struct checksum *out_actual);

struct call *upload_abort_call(struct store *store, const struct upload_ref *ref);

#endif
