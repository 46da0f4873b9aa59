/* What holds a file of this Xet hash that the caller may reach: registered by himself for this
 * bucket, or the bytes of a version of the bucket whose key he may read. Who may reach none is told
 * that there is none. docs/FORMAT.md, "Files by their hash". */
#ifndef STORAGE_FILES_XET_CONTENT_H
#define STORAGE_FILES_XET_CONTENT_H

#include "chunker/chunk.h"
#include "storage/db/db.h"

/* How many versions are looked at is bounded: a caller who may read few keys of a bucket is told
 * that a file is not there when very many newer versions of other keys have the same bytes. With
 * keys in the index versions_file one look for each of his grants would find his, but each small
 * PUT would cost 1 to 3 % more and the catalog an eighth (measured with keys of 45 bytes), and of
 * older versions, and of what policies and ACLs open to him, it would still tell nothing. */
struct xet_reach {
	int64_t bucket;
	struct span account; /* empty: anonymous, who has registered nothing */
	int64_t now_ms;
	/* Whether a key of the bucket may be read, or its older versions: 1, 0, -1 when it cannot
	 * be told. NULL: all of them. */
	int (*may_read)(void *owner, struct span key, bool is_current, struct error *err);
	void *owner;
	/* so many versions are still looked at, over several searches: for changes. NULL: up to
	 * 1,000 for each */
	size_t *looks;
};
struct xet_content {
	struct chunk_id file;
	uint64_t size;
	enum {
		XET_CONTENT_EMPTY, /* no bytes: 32 zeros as hash, which everybody may reach */
		/* part_set, contents: of a version, a registered file, or what a derived version
		 * was made into */
		XET_CONTENT_SEGMENTS,
		XET_CONTENT_INLINE, /* version, contents */
		XET_CONTENT_DERIVED /* version: its records have not been made */
	} kind;
	int64_t part_set;
	uint64_t contents;
	int64_t version; /* row; 0: a registered file */
	/* the segments are those that a derived version was made into: xet_make_touch keeps them */
	bool is_made;
};
/* not_found. Inside changes and readers; what was found holds as long as their snapshot. */
int xet_content_find(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, struct error *err);

#endif
