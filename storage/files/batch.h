/* What a client of the Hub does to the files of a bucket in one request: lines that add, copy and
 * delete, judged and applied in their order in one change. A line that fails leaves nothing of
 * itself and does not stop the others. No bytes move: a file that is added has come before, as
 * xorbs and a shard, or lies in the bucket already. Any thread. */
#ifndef STORAGE_FILES_BATCH_H
#define STORAGE_FILES_BATCH_H

#include "storage/core/call.h"
#include "storage/versions/object.h"

enum { BATCH_LINES_MAX = 1000 };
enum batch_kind {
	/* the file must be registered for the bucket by the same account, or be one that the caller
	 * may read there */
	BATCH_ADD,
	/* it must be the current version of a key of `source` that the caller may read */
	BATCH_COPY,
	BATCH_DELETE,      /* as DeleteObject; what is not there is deleted already */
	BATCH_JUDGE_DELETE /* only says whether it may be deleted */
};
static inline bool batch_deletes(enum batch_kind kind)
{
	return kind == BATCH_DELETE || kind == BATCH_JUDGE_DELETE;
}
struct batch_line {
	enum batch_kind kind;
	struct span path;         /* storage/files/tree_path.h */
	struct chunk_id file;     /* zeros: the empty file, which everybody has */
	struct bucket_ref source; /* of a copy */
	bool has_size;            /* must be the file's */
	uint64_t size;
	bool has_mtime; /* storage/files/file_time.h; a copy without has its source's */
	int64_t mtime_ms;
	struct span content_type; /* empty: not said; a copy has its source's */
	/* the caller has: it is passed over, and `error` stays as it is */
	bool is_refused;
	struct error error; /* the outcome. Kind ERROR_NONE: applied */
};
struct batch_params {
	struct bucket_ref bucket;
	struct span account; /* who registered what is added; empty: anonymous */
	/* outcomes are written into them */
	struct batch_line *lines;
	size_t count; /* up to BATCH_LINES_MAX */
	/* Whether the caller may read a key, or its older versions: 1, 0, -1 when it cannot be
	 * told. Called by a helper, then by the committer, and must be quick. */
	int (*may_read)(void *owner, struct bucket_ref bucket, struct span key, bool is_current,
		struct error *err);
	void *owner;
};
/* A call (storage/core/call.h); lines and texts are the caller's, and must live until its end. It
 * fails with what befell the whole: no_bucket, io... Then nothing was applied. */
struct call *batch_call(struct store *store, const struct batch_params *params);

#endif
