/* Object versions as callers of storage see them. The bytes of a version never change, nor what is
 * said of them. The committer decides which version is current. A version that a published step
 * names stays (hidden) when its key is overwritten or deleted (invariant 6). Versioning follows S3:
 * docs/FORMAT.md, "Versions", has the rules. */
#ifndef STORAGE_VERSIONS_OBJECT_H
#define STORAGE_VERSIONS_OBJECT_H

#include "base/arena.h"
#include "base/digest/checksum.h"
#include "base/digest/xxh3.h"
#include "base/stream.h"
#include "chunker/chunk.h"
#include "storage/buckets/bucket.h"
#include "storage/core/store.h"
#include "storage/packs/segment.h"

enum {
	OBJECT_KEY_MAX_BYTES = 1024,
	OBJECT_ETAG_BYTES = 72 /* 64 hex digits are the longest */,
	OBJECT_METADATA_MAX_BYTES = 2048
};

struct object_header { /* stored system headers and x-amz-meta-*: names in lower case */
	struct span name;
	struct span value;
};
/* Numbers are stored in the catalog. */
enum storage_class {
	STORAGE_STANDARD = 0,
	STORAGE_REDUCED_REDUNDANCY,
	STORAGE_STANDARD_IA,
	STORAGE_ONEZONE_IA,
	STORAGE_INTELLIGENT_TIERING,
	STORAGE_GLACIER,
	STORAGE_DEEP_ARCHIVE,
	STORAGE_GLACIER_IR,
	STORAGE_OUTPOSTS,
	STORAGE_SNOW,
	STORAGE_EXPRESS_ONEZONE,
	STORAGE_CLASSES
};
const char *storage_class_name(enum storage_class class);
bool storage_class_parse(struct span name, enum storage_class *out);

struct object {
	int64_t sequence; /* row; rises with commits */
	uint8_t version[VERSION_ID_BYTES];
	bool has_id; /* false: the null version, shown as "null" */
	/* The bucket has or had versioning, so clients are told ids. False when found by
	 * sequence. */
	bool in_versioned_bucket;
	bool is_marker; /* a delete marker: no bytes, no ETag */
	struct span key;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES]; /* without quotes */
	bool has_digest;              /* multipart objects have none until it is needed */
	struct digest128 digest;
	bool has_file_hash; /* as for the digest */
	struct chunk_id file_hash;
	struct checksum checksum; /* CHECKSUM_NONE in rows from before there were checksums */
	uint32_t part_count;      /* of a completed multipart upload; 0: a single PUT */
	enum storage_class storage_class;
	enum canned_acl acl;
	struct span tags; /* a tag_set (storage/buckets/tag_set.h); empty: none */
	int64_t modified_ms;
	int64_t retired_ms; /* when it stopped being current; 0 while it is */
	const struct object_header *headers;
	size_t header_count;
	/* derived: its bytes are made from other versions as they are read (derived.h) */
	bool is_current, is_derived;
};

struct object_part { /* of a completed multipart upload; a single PUT has one, number 1 */
	uint32_t number;
	uint64_t offset;
	uint64_t size;
	struct checksum checksum; /* of the part; CHECKSUM_NONE when it has none */
};

struct object_entry { /* one key of a listing */
	struct span key;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES];
	int64_t modified_ms;
	enum checksum_algorithm checksum_algorithm;
	enum checksum_type checksum_type;
	enum storage_class storage_class;
};

/* A key of a bucket that was found. Versions and uploads lie there. */
struct object_place {
	int64_t bucket;
	struct span key;
};
/* A version of a key, as clients name it. */
struct version_ref {
	enum {
		VERSION_REF_CURRENT = 0,
		VERSION_REF_NULL,
		VERSION_REF_ID,
		VERSION_REF_FOREIGN
	} kind;
	uint8_t id[VERSION_ID_BYTES];
};
/* The object that a request names. */
struct object_ref {
	struct bucket_ref bucket;
	struct span key;
	struct version_ref version;
	/* Not 0: the row of the version whose own ACL let the caller in. no_key when another
	 * version has its place by now. */
	int64_t judged_version;
};
enum { VERSION_TEXT_BYTES = 2 * VERSION_ID_BYTES + 1 };
/* "null", or an id of any server */
bool version_ref_parse(struct span text, struct version_ref *out);
void object_version_text(const struct object *object, char out[VERSION_TEXT_BYTES]);

#endif
