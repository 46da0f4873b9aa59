/* A bucket as a tree of files, as clients of the Hub see it: its current versions by path, with
 * directories where paths have a '/'. Keys that such clients cannot use as paths
 * (storage/files/tree_path.h) are left out. Any thread. */
#ifndef STORAGE_FILES_TREE_H
#define STORAGE_FILES_TREE_H

#include "storage/versions/object.h"

enum { TREE_LIMIT = 1000, TREE_LIMIT_MAX = 5000 };

struct tree_entry {
	struct span path;
	bool is_directory; /* then uploaded_ms is the only other field that is set */
	uint64_t size;
	bool has_file_hash; /* false: the version is among `unhashed` */
	struct chunk_id file_hash;
	int64_t mtime_ms; /* the stated one (storage/files/file_time.h), else uploaded_ms */
	/* For a directory the time of its newest file. If it has very many files, the time of the
	 * bucket's last change. */
	int64_t uploaded_ms;
	struct span content_type; /* empty: not stated */
};
struct tree_position { /* of an entry; an empty path: none */
	struct span path;
	bool is_directory;
};
/* A listing is in byte order of paths. When a file and a directory have one path, the file comes
 * first. */
struct tree_params {
	struct bucket_ref bucket;
	/* The path of a file or directory, without a '/' at its end: lists the file, and what is
	 * below the directory. Empty: the whole bucket. */
	struct span prefix;
	bool recursive;             /* all files below; else one level of files and directories */
	bool skips_prefix_file;     /* lists only what is below */
	struct tree_position after; /* path of at most OBJECT_KEY_MAX_BYTES */
	size_t limit;               /* 1 to TREE_LIMIT_MAX */
};
struct tree {
	struct tree_entry *entries; /* texts are in the arena */
	size_t count;
	/* Versions among the entries whose file hash has not been computed yet
	 * (storage/files/file_hash.h). */
	int64_t *unhashed;
	size_t unhashed_count;
	bool truncated; /* there may be more entries after `last` */
	struct tree_position last;
};
/* Lists one page, from one snapshot. A truncated page may have fewer entries than `limit`.
 * no_bucket. */
int tree_list(struct store *store, const struct tree_params *params, struct arena *arena,
	struct tree *out, struct error *err);

/* Finds the files among `paths`, in their order. Paths that are not files are left out.
 * no_bucket. */
struct tree_find_params {
	struct bucket_ref bucket;
	const struct span *paths;
	size_t count;
};
int tree_find(struct store *store, const struct tree_find_params *params, struct arena *arena,
	struct tree *out, struct error *err);

#endif
