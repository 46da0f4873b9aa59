/* Finds the content of a file by its Xet hash, if the caller may reach it: the caller's account has
 * registered the file for this bucket, or a version of the bucket whose key the caller may read has
 * these bytes. Else the answer is that there is no such file. docs/FORMAT.md, "Files by their
 * hash". */
#ifndef STORAGE_FILES_XET_CONTENT_H
#define STORAGE_FILES_XET_CONTENT_H

#include "chunker/chunk.h"
#include "storage/db/db.h"

/* A search looks at a bounded number of versions. So a caller that may read few keys of a bucket
 * does not find a file when very many newer versions of other keys have the same bytes. If the
 * index versions_file had the keys, one look for each grant of the caller would find the file. But
 * each small PUT would cost 1 to 3 % more and the catalog would grow by an eighth (measured with
 * keys of 45 bytes), and older versions, and keys that policies and ACLs open to the caller, would
 * still not be found. */
struct xet_reach {
	int64_t bucket;
	struct span account; /* empty: anonymous; such callers register nothing */
	int64_t now_ms;
	/* Whether the caller may read a key of the bucket, or its older versions: 1, 0, or -1 when
	 * that could not be found out. NULL: the caller may read all of them. */
	int (*may_read)(void *owner, struct span key, bool is_current, struct error *err);
	void *owner;
	/* How many more versions several searches together may look at; for changes. NULL: each
	 * search looks at up to 1,000. */
	size_t *looks;
};
struct xet_content {
	struct chunk_id file;
	uint64_t size;
	enum {
		XET_CONTENT_EMPTY, /* no bytes; hash of 32 zeros; every caller may reach it */
		/* part_set and contents are set: of a version, a registered file, or a made file */
		XET_CONTENT_SEGMENTS,
		XET_CONTENT_INLINE, /* version and contents are set */
		XET_CONTENT_DERIVED /* version is set; it has no made file */
	} kind;
	int64_t part_set;
	uint64_t contents;
	int64_t version; /* row; 0: a registered file */
	/* The segments are those of a made file: made_file_touch keeps it. */
	bool is_made;
};
/* not_found. Inside a change or with a reader; the result is valid as long as its snapshot. */
int xet_content_find(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, struct error *err);

#endif
