/* The Hub half, typed, with the user's own token: what a listing says of files and their hashes,
 * and many changes at once. A bucket goes by the name that S3 has for it. docs/PROTOCOL.md,
 * "Hub". */
#ifndef CLIENT_REMOTE_REMOTE_HUB_H
#define CLIENT_REMOTE_REMOTE_HUB_H

#include "chunker/chunk.h"
#include "client/remote/remote.h"

enum { REMOTE_HUB_LINES_MAX = 1000, REMOTE_HUB_PAGES_MAX = 10000 };

/* "/api/buckets/-/<bucket>/<below>", and `path`, if any, behind another slash. Heap, the
 * caller's. */
char *remote_hub_target(struct span bucket, const char *below, struct span path);
/* Whether the Hub takes this key as a path: UTF-8, no empty, "." or ".." segment, no slash at
 * either end. Others go by S3 alone. */
bool remote_hub_takes(struct span key);

enum hub_change_kind {
	HUB_CHANGE_ADD,
	HUB_CHANGE_DELETE,
	HUB_CHANGE_JUDGE, /* whether it may be deleted; nothing is changed */
};
struct hub_change {
	struct span key;
	enum hub_change_kind kind;
	struct span source;   /* bucket that a copy takes the bytes from; empty: no copy */
	struct chunk_id hash; /* of what is added: the server must have it */
	int64_t mtime_ms;
	struct error failure; /* set by the call; kind ERROR_NONE: done */
};
/* At most REMOTE_HUB_LINES_MAX. All that can be done is done, and each change says why it was not.
 * -1 when the request failed. */
int remote_hub_change(struct remote *remote, struct span bucket, struct hub_change *changes,
	size_t count, struct error *err);
/* 0 when all was done; -1 with the first failure and its key. */
int remote_hub_check(const struct hub_change *changes, size_t count, struct error *err);

struct hub_totals {
	uint64_t files;
	uint64_t bytes;
};
/* What the bucket holds: its current objects, without older versions. */
int remote_hub_totals(
	struct remote *remote, struct span bucket, struct hub_totals *out, struct error *err);

/* Removes the bucket with all objects in it. Fails with 409's kind while it holds runs. */
int remote_hub_drop(struct remote *remote, struct span bucket, struct error *err);

struct hub_file {
	struct span key; /* borrowed for the call */
	uint64_t size;
	struct chunk_id hash;
};
/* 0 to go on. */
typedef int hub_file_fn(void *owner, const struct hub_file *file, struct error *err);
/* Every file below `prefix` (a folder, with or without a slash at its end; empty: all). upstream
 * after REMOTE_HUB_PAGES_MAX pages, each of 16 MiB at most. */
int remote_hub_list(struct remote *remote, struct span bucket, struct span prefix,
	hub_file_fn *take, void *owner, struct error *err);
/* One file: 1, or 0 when the server does not know it. */
int remote_hub_find(struct remote *remote, struct span bucket, struct span key, uint64_t *out_size,
	struct chunk_id *out_hash, struct error *err);

#endif
