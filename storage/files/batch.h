/* A Hub client's request to add, copy and delete files of a bucket, one per line. One change judges
 * and applies the lines in their order. A line that fails changes nothing and does not stop the
 * others. No bytes are moved: an added file was uploaded before as xorbs and a shard, or is in the
 * bucket already. Any thread. */
#ifndef STORAGE_FILES_BATCH_H
#define STORAGE_FILES_BATCH_H

#include "storage/core/call.h"
#include "storage/versions/object.h"

enum { BATCH_LINES_MAX = 1000 };
enum batch_kind {
	/* The same account must have registered the file for the bucket, or the bucket must have it
	 * under a key that the caller may read. */
	BATCH_ADD,
	/* The file must be the current version of a key of `source` that the caller may read. */
	BATCH_COPY,
	BATCH_DELETE,      /* as DeleteObject; succeeds when the file does not exist */
	BATCH_JUDGE_DELETE /* only tells whether BATCH_DELETE would be allowed */
};
static inline bool batch_deletes(enum batch_kind kind)
{
	return kind == BATCH_DELETE || kind == BATCH_JUDGE_DELETE;
}
struct batch_line {
	enum batch_kind kind;
	struct span path;         /* storage/files/tree_path.h */
	struct chunk_id file;     /* zeros: the empty file, which needs no upload */
	struct bucket_ref source; /* of a copy */
	bool has_size;            /* `size` is stated, and must be the file's */
	uint64_t size;
	bool has_mtime; /* storage/files/file_time.h; a copy without one gets its source's */
	int64_t mtime_ms;
	struct span content_type; /* empty: not stated; a copy gets its source's */
	/* The caller of batch_call has refused the line: it is skipped and keeps its `error`. */
	bool is_refused;
	struct error error; /* the outcome; kind ERROR_NONE: applied */
};
struct batch_params {
	struct bucket_ref bucket;
	struct span account;      /* which registered the added files; empty: anonymous */
	struct batch_line *lines; /* the call writes their outcomes */
	size_t count;             /* at most BATCH_LINES_MAX */
	/* Whether the caller may read a key, or its older versions: 1, 0, or -1 when that could not
	 * be found out. A helper calls it, then the committer; it must be quick. */
	int (*may_read)(void *owner, struct bucket_ref bucket, struct span key, bool is_current,
		struct error *err);
	void *owner;
};
/* A call (storage/core/call.h). The caller keeps lines and texts alive until its end. It fails when
 * the whole batch failed (no_bucket, io, ...); then nothing was applied. */
struct call *batch_call(struct store *store, const struct batch_params *params);

#endif
