/* A bucket as a tree of files, as clients of the Hub see it: its current versions by path,
 * directories where paths have a '/'. Keys that are no paths to them (storage/files/tree_path.h)
 * are left out. Any thread. */
#ifndef STORAGE_FILES_TREE_H
#define STORAGE_FILES_TREE_H

#include "storage/versions/object.h"

enum { TREE_LIMIT = 1000, TREE_LIMIT_MAX = 5000 };

struct tree_entry {
	struct span path;
	bool is_directory; /* of the rest uploaded_ms alone is set */
	uint64_t size;
	bool has_file_hash; /* false: the version is among `unhashed` */
	struct chunk_id file_hash;
	int64_t mtime_ms; /* the file's own (storage/files/file_time.h), else uploaded_ms */
	/* a directory: of its newest file, or, where it has very many, when the bucket last
	 * changed */
	int64_t uploaded_ms;
	struct span content_type; /* empty: not said */
};
struct tree_position { /* an entry; with the empty path none */
	struct span path;
	bool is_directory;
};
/* A listing in byte order of paths; of a file and a directory of one path the file comes first. */
struct tree_params {
	struct bucket_ref bucket;
	/* a file or a directory, no '/' at its end: the file, and what lies below the directory.
	 * Empty: the bucket */
	struct span prefix;
	bool recursive;         /* all files below; else files and directories one level below */
	bool skips_prefix_file; /* only what lies below */
	struct tree_position after;
	size_t limit; /* 1 to TREE_LIMIT_MAX */
};
struct tree {
	struct tree_entry *entries; /* texts in the arena */
	size_t count;
	/* versions among the entries whose file hash nobody has computed yet
	 * (storage/files/file_hash.h) */
	int64_t *unhashed;
	size_t unhashed_count;
	bool truncated; /* there may be more, behind `last` */
	struct tree_position last;
};
/* One page, of one moment; it may have fewer entries than `limit` and be truncated all the same.
 * no_bucket. */
int tree_list(struct store *store, const struct tree_params *params, struct arena *arena,
	struct tree *out, struct error *err);

/* The files among `paths`, in their order; what is no file is left out. */
struct tree_find_params {
	struct bucket_ref bucket;
	const struct span *paths;
	size_t count;
};
int tree_find(struct store *store, const struct tree_find_params *params, struct arena *arena,
	struct tree *out, struct error *err);

#endif
