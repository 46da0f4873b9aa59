/* Object versions: found, read, listed, put, deleted. A version row is immutable; which one is current is decided by the committer. A
 * version that a published step names stays (hidden) when its key is overwritten or deleted (invariant 6). */
#ifndef STORAGE_OBJECT_H
#define STORAGE_OBJECT_H

#include "base/arena.h"
#include "base/stream.h"
#include "base/xxh3.h"
#include "chunker/chunk.h"
#include "storage/segment.h"
#include "storage/store.h"

enum { OBJECT_KEY_MAX_BYTES = 1024, OBJECT_ETAG_BYTES = 64, OBJECT_METADATA_MAX_BYTES = 2048 };

struct object_header { /* stored system headers and x-amz-meta-*: names in lower case */
	struct span name;
	struct span value;
};
struct object {
	int64_t sequence;        /* row; rises with commits */
	uint8_t version[VERSION_ID_BYTES];
	struct span key;
	uint64_t size;
	char etag[OBJECT_ETAG_BYTES]; /* without quotes: 32 hex of the MD5 */
	struct digest128 digest;
	struct chunk_id file_hash;
	int64_t modified_ms;
	const struct object_header *headers;
	size_t header_count;
	bool is_current;
};

/* The current version: no_bucket, no_key. */
int object_find(struct store *store, struct span bucket, struct span key, struct arena *arena, struct object *out, struct error *err);
/* One version, current or not, by row. */
int object_find_sequence(struct store *store, int64_t sequence, struct arena *arena, struct object *out, struct error *err);
/* Bytes [offset, offset+length) of a version; checks the version row's checksum. Parts and segments are read here, packs are held until
 * close; a version removed between find and open answers no_key. */
struct body_source *object_open(struct store *store, const struct object *object, uint64_t offset, uint64_t length, struct error *err);

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
	} *entries;
	size_t entry_count;
	struct span *prefixes;
	size_t prefix_count;
	bool truncated;
	struct span last;       /* `after` of the next page */
};
int object_list(struct store *store, const struct object_list_params *params, struct arena *arena, struct object_list *out,
	struct error *err);

/* Conditions on the current version, judged by the committer: header values as sent (quotes, W/, lists, *), empty: absent. */
struct object_conditions {
	struct span if_match;
	struct span if_none_match;
};
/* 0; precondition; no_key for If-Match on nothing. `etag` NULL: no current version. */
int object_conditions_check(const struct object_conditions *conditions, const char *etag, struct error *err);

struct object_put;
struct object_put_params { /* texts are copied */
	struct span bucket;
	struct span key;
	const struct object_header *headers;
	size_t header_count;
	struct object_conditions conditions;
	bool has_content_md5;      /* bad_digest when the body's differs */
	uint8_t content_md5[16];
	void (*room)(void *owner); /* a write that answered SINK_WAIT may be tried again */
	void (*done)(void *owner); /* the outcome is known; from the committer or a helper */
	void *owner;
};
/* Checks key length, metadata size and that the bucket exists. */
struct object_put *object_put_open(struct store *store, const struct object_put_params *params, struct error *err);
enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err);
void object_put_finish(struct object_put *put); /* then done comes once, possibly before this returns */
/* 0 and the committed version (texts live until free), or the error. */
int object_put_outcome(struct object_put *put, struct object *out, struct error *err);
/* Before finish: aborts. After finish: only after done. */
void object_put_free(struct object_put *put);

struct object_delete;
struct object_delete *object_delete_start(struct store *store, struct span bucket, struct span key,
	const struct object_conditions *conditions, void (*done)(void *owner), void *owner);
int object_delete_outcome(struct object_delete *change, struct error *err); /* absent key: 0 */
void object_delete_free(struct object_delete *change);

#endif
