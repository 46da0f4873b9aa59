/* Typed calls to the Hub face, with the user's own token: listings with file hashes, and batches of
 * changes. Buckets have their S3 names. docs/protocol/hub.md. */
#ifndef CLIENT_REMOTE_REMOTE_HUB_H
#define CLIENT_REMOTE_REMOTE_HUB_H

#include "chunker/chunk.h"
#include "client/remote/remote.h"

enum { REMOTE_HUB_LINES_MAX = 1000, REMOTE_HUB_PAGES_MAX = 10000 };

/* "/api/buckets/-/<bucket>/<below>", followed by "/<path>" unless `path` is empty. The caller frees
 * it. */
char *remote_hub_target(struct span bucket, const char *below, struct span path);
/* Whether the Hub face accepts this key as a path: UTF-8 of up to 1,024 bytes without backslash and
 * NUL, no slash at either end, no ".." at the end, and no segment that is empty, ".", ".." or has a
 * colon as its second byte. Only S3 can address other keys. */
bool remote_hub_takes(struct span key);

enum hub_change_kind {
	HUB_CHANGE_ADD,
	HUB_CHANGE_DELETE,
	HUB_CHANGE_JUDGE, /* only asks whether the file may be deleted */
};
struct hub_change {
	struct span key;
	enum hub_change_kind kind;
	/* for HUB_CHANGE_ADD: the bucket that a copy takes the bytes from; empty: not a copy */
	struct span source;
	struct chunk_id hash; /* of the added file: the server must have its content */
	int64_t mtime_ms;
	struct error failure; /* set by the call; kind ERROR_NONE: the change was made */
};
/* Makes 1 to REMOTE_HUB_LINES_MAX changes. The server makes each change that it can; `failure` says
 * why another was not made. -1 when the request failed. */
int remote_hub_change(struct remote *remote, struct span bucket, struct hub_change *changes,
	size_t count, struct error *err);
/* 0 when all changes were made; -1 with the first failure and its key. */
int remote_hub_check(const struct hub_change *changes, size_t count, struct error *err);

struct hub_totals {
	uint64_t files;
	uint64_t bytes;
};
/* Counts the current objects of the bucket, without older versions. */
int remote_hub_totals(
	struct remote *remote, struct span bucket, struct hub_totals *out, struct error *err);

/* Removes the bucket with all objects in it. Fails with the kind of status 409 while it holds
 * runs. */
int remote_hub_drop(struct remote *remote, struct span bucket, struct error *err);

struct hub_file {
	struct span key; /* borrowed for the call */
	uint64_t size;
	struct chunk_id hash;
};
/* 0 to go on; -1 with the error set ends the listing. */
typedef int hub_file_fn(void *owner, const struct hub_file *file, struct error *err);
/* Calls `take` for every file below `prefix` (a folder, with or without a slash at its end; empty:
 * the whole bucket). Fails with upstream after REMOTE_HUB_PAGES_MAX pages of up to 16 MiB each. */
int remote_hub_list(struct remote *remote, struct span bucket, struct span prefix,
	hub_file_fn *take, void *owner, struct error *err);
/* Finds one file: 1, or 0 when the server does not have it. */
int remote_hub_find(struct remote *remote, struct span bucket, struct span key, uint64_t *out_size,
	struct chunk_id *out_hash, struct error *err);

#endif
