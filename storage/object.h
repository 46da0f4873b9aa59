/* Object versions: found, read, listed, put, copied, deleted, tagged. What a version says of its bytes never changes; which one is current
 * is decided by the committer. A version that a published step names stays (hidden) when its key is overwritten or deleted
 * (invariant 6). Versioning follows s3.md 5.9. */
#ifndef STORAGE_OBJECT_H
#define STORAGE_OBJECT_H

#include "base/arena.h"
#include "base/checksum.h"
#include "base/stream.h"
#include "base/xxh3.h"
#include "chunker/chunk.h"
#include "storage/bucket.h"
#include "storage/segment.h"
#include "storage/store.h"

enum { OBJECT_KEY_MAX_BYTES = 1024, OBJECT_ETAG_BYTES = 72 /* 64 hex digits are the longest */, OBJECT_METADATA_MAX_BYTES = 2048 };

struct object_header { /* stored system headers and x-amz-meta-*: names in lower case */
	struct span name;
	struct span value;
};
/* Numbers are stored in the catalog. */
enum storage_class {
	STORAGE_STANDARD = 0, STORAGE_REDUCED_REDUNDANCY, STORAGE_STANDARD_IA, STORAGE_ONEZONE_IA, STORAGE_INTELLIGENT_TIERING, STORAGE_GLACIER,
	STORAGE_DEEP_ARCHIVE, STORAGE_GLACIER_IR, STORAGE_OUTPOSTS, STORAGE_SNOW, STORAGE_EXPRESS_ONEZONE, STORAGE_CLASSES
};
const char *storage_class_name(enum storage_class class);
bool storage_class_parse(struct span name, enum storage_class *out);

struct object {
	int64_t sequence;        /* row; rises with commits */
	uint8_t version[VERSION_ID_BYTES];
	bool has_id;             /* false: the null version, shown as "null" */
	bool in_versioned_bucket; /* which has or had versioning: clients are told ids. Unknown (false) when found by sequence */
	bool is_marker;          /* a delete marker: no bytes, no ETag */
	struct span key;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES]; /* without quotes */
	bool has_digest;         /* multipart objects have none until somebody needs it */
	struct digest128 digest;
	bool has_file_hash;      /* as for the digest */
	struct chunk_id file_hash;
	struct checksum checksum; /* CHECKSUM_NONE for objects of before there were any */
	uint32_t part_count;     /* of a completed multipart upload; 0: a single PUT */
	enum storage_class storage_class;
	enum canned_acl acl;
	struct span tags;        /* a tag_set (storage/tag_set.h); empty: none */
	int64_t modified_ms;
	int64_t retired_ms;      /* when it ceased to be current; 0 while it is */
	const struct object_header *headers;
	size_t header_count;
	bool is_current, is_derived; /* derived: its bytes are made of other versions' as they are read (derived.h) */
};

/* Which version of a key: as clients name it. */
struct version_ref {
	enum { VERSION_REF_CURRENT = 0, VERSION_REF_NULL, VERSION_REF_ID, VERSION_REF_FOREIGN } kind;
	uint8_t id[VERSION_ID_BYTES];
};
enum { VERSION_TEXT_BYTES = 2 * VERSION_ID_BYTES + 1 };
bool version_ref_parse(struct span text, struct version_ref *out); /* "null", or any server's id */
void object_version_text(const struct object *object, char out[VERSION_TEXT_BYTES]);

/* The current version: no_bucket, no_key. When the current version is a delete marker: no_key, and *out has is_marker, version and has_id
 * (else *out is zeroed). */
int object_find(struct store *store, struct span bucket, struct span key, struct arena *arena, struct object *out, struct error *err);
/* Any version; a marker that is named by its id is found (is_marker). no_version when the id is unknown; VERSION_REF_CURRENT: as above. */
int object_find_version(struct store *store, struct span bucket, struct span key, const struct version_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
/* One version, current or not, by row. */
int object_find_sequence(struct store *store, int64_t sequence, struct arena *arena, struct object *out, struct error *err);
/* Bytes [offset, offset+length) of a version; checks the version row's checksum. Parts and segments are read here, packs are held until
 * close; a version removed between find and open answers no_key. */
struct body_source *object_open(struct store *store, const struct object *object, uint64_t offset, uint64_t length, struct error *err);

/* Part `number` of a completed multipart object, as it was uploaded. no_part when there is none of this number. A single PUT has one part,
 * number 1. */
struct object_part {
	uint32_t number;
	uint64_t offset;
	uint64_t size;
	struct checksum checksum; /* of the part; CHECKSUM_NONE when it has none */
};
int object_find_part(struct store *store, const struct object *object, uint32_t number, struct object_part *out, struct error *err);
/* Up to `limit` parts with a number above `after`, in order. */
int object_list_parts(struct store *store, const struct object *object, uint32_t after, size_t limit, struct arena *arena,
	struct object_part **out, size_t *out_count, bool *out_truncated, struct error *err);

/* One page of a listing in byte order of keys; with a delimiter, common prefixes are rolled up by seeking past them. */
struct object_list_params {
	struct span bucket;
	struct span prefix;
	struct span delimiter;  /* empty: none */
	struct span after;      /* exclusive; keys and rolled-up prefixes at or below are skipped; one equal to a common prefix skips it whole */
	size_t limit;           /* keys and prefixes together */
};
struct object_list {
	struct object_entry {
		struct span key;
		uint64_t size;
		char etag[OBJECT_ETAG_BYTES];
		int64_t modified_ms;
		enum checksum_algorithm checksum_algorithm;
		enum checksum_type checksum_type;
		enum storage_class storage_class;
	} *entries;
	size_t entry_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last;       /* `after` of the next page */
};
int object_list(struct store *store, const struct object_list_params *params, struct arena *arena, struct object_list *out,
	struct error *err);

/* The same over versions and delete markers: keys in byte order, newest first inside a key. */
struct version_list_params {
	struct span bucket;
	struct span prefix;
	struct span delimiter;
	struct span after_key;          /* as `after` above, but with after_version the versions of this key that come behind that one follow */
	struct version_ref after_version; /* VERSION_REF_CURRENT: none */
	size_t limit;
};
struct version_list {
	struct version_entry {
		struct object_entry object; /* of a marker: key and modified_ms alone */
		char version[VERSION_TEXT_BYTES];
		bool is_marker;
		bool is_latest;
	} *entries;
	size_t entry_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last_key;           /* of the last entry or prefix on the page */
	char last_version[VERSION_TEXT_BYTES]; /* "" when that was a prefix */
};
int version_list(struct store *store, const struct version_list_params *params, struct arena *arena, struct version_list *out,
	struct error *err);

/* Conditions on the current version (of a delete that names one: on that version), judged by the committer. Header values as sent
 * (quotes, W/, lists, *), empty: absent. */
struct object_conditions {
	struct span if_match;
	struct span if_none_match;
	bool has_size;          /* deletes */
	uint64_t size;
	bool has_modified;      /* deletes; compared in whole seconds */
	int64_t modified_ms;
};
/* 0; precondition; no_key for If-Match on nothing. `object` NULL: no current version, or a marker. */
int object_conditions_check(const struct object_conditions *conditions, const struct object *object, struct error *err);

/* What a new version says besides its bytes: PutObject, CopyObject, CreateMultipartUpload. Texts are copied by whoever takes it. */
struct object_facts {
	const struct object_header *headers;
	size_t header_count;
	struct span tags;       /* a tag_set; empty: none */
	enum storage_class storage_class;
	enum canned_acl acl;
};
/* metadata_too_large, key_too_long, invalid. */
int object_facts_check(const struct object_facts *facts, struct span key, struct error *err);

struct object_put;
struct object_put_params { /* texts are copied */
	struct span bucket;
	struct span key;
	struct object_facts facts;
	struct object_conditions conditions;
	bool has_content_md5;      /* bad_digest when the body's differs */
	uint8_t content_md5[16];
	enum checksum_algorithm checksum; /* to be computed and stored; CHECKSUM_NONE: CRC64NVME */
	void (*room)(void *owner); /* a write that answered SINK_WAIT may be tried again */
	void (*done)(void *owner); /* the outcome is known; from the committer or a helper */
	void *owner;
};
/* Checks key length, metadata size and that the bucket exists. */
struct object_put *object_put_open(struct store *store, const struct object_put_params *params, struct error *err);
enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err);
/* Before finish: bad_digest unless the body has this checksum (of the algorithm that was asked for): header or trailer said so. */
void object_put_expect(struct object_put *put, const struct checksum *checksum);
void object_put_finish(struct object_put *put); /* then done comes once, possibly before this returns */
/* 0 and the committed version (texts live until free), or the error. */
int object_put_outcome(struct object_put *put, struct object *out, struct error *err);
/* After a bad_digest: what was expected and what the body has; false when MD5 or nothing was at fault. */
bool object_put_bad_checksum(const struct object_put *put, struct checksum *out_expected, struct checksum *out_actual);
/* Before finish: aborts. After finish: only after done. */
void object_put_free(struct object_put *put);

/* A new version that shares the bytes of another: no byte is read or written, unless a checksum must be computed anew. */
struct object_copy;
struct object_copy_params { /* texts are copied */
	const struct object *source;   /* found and judged by the caller; a source removed meanwhile: no_key */
	struct span bucket;            /* of the copy; start fails as object_put_open does */
	struct span key;
	bool replaces_headers;         /* facts.headers count; else the source's are kept */
	bool replaces_tags;            /* facts.tags count; else the source's are kept */
	struct object_facts facts;     /* storage_class and acl always count */
	enum checksum_algorithm checksum; /* CHECKSUM_NONE: the source's is kept */
	struct object_conditions conditions;
	void (*done)(void *owner);
	void *owner;
};
struct object_copy *object_copy_start(struct store *store, const struct object_copy_params *params, struct error *err);
int object_copy_outcome(struct object_copy *copy, struct object *out, struct error *err); /* texts live until free */
void object_copy_free(struct object_copy *copy);

/* Deletes one key or a list of up to OBJECT_DELETE_MAX; a long list is several changes. */
enum { OBJECT_DELETE_MAX = 1000 };
struct object_delete_item {
	struct span key;
	struct version_ref ref;        /* VERSION_REF_CURRENT: as s3.md 5.5 says for the bucket's versioning */
	struct object_conditions conditions;
	struct error error;            /* the outcome, and what follows. Kind ERROR_NONE: done; an absent key or version is done too */
	bool is_marker;                /* a marker was made, or one was removed */
	bool has_version;              /* `ref` names one, or the bucket has or had versioning: */
	char version[VERSION_TEXT_BYTES]; /* made (without ref) or removed */
};
struct object_delete_params {
	struct span bucket;
	int64_t bucket_id; /* not 0: another bucket that has the name by now is left alone, with no_bucket */
	struct object_delete_item *items; /* the caller's, alive with their texts until done; outcomes are written into them */
	size_t count;
	void (*done)(void *owner);
	void *owner;
};
struct object_delete *object_delete_start(struct store *store, const struct object_delete_params *params);
int object_delete_outcome(struct object_delete *change, struct error *err); /* what befell the whole: no_bucket, io... */
void object_delete_free(struct object_delete *change);

/* Changes that touch one version in place. no_bucket, no_key, no_version; method on a marker. */
struct object_change_params {
	struct span bucket;
	int64_t bucket_id; /* not 0: another bucket that has the name by now is left alone, with no_bucket */
	struct span key;
	struct version_ref ref;
	bool sets_tags;         /* replaces the tags: empty removes them */
	struct span tags;       /* a tag_set */
	bool sets_acl;
	enum canned_acl acl;
	void (*done)(void *owner);
	void *owner;
};
struct object_change *object_change_start(struct store *store, const struct object_change_params *params);
int object_change_outcome(struct object_change *change, struct object *out, struct error *err); /* texts live until free */
void object_change_free(struct object_change *change);

#endif
