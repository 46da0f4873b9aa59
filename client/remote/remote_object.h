/* Objects and buckets, typed, over the S3 face with the bearer token. */
#ifndef CLIENT_REMOTE_REMOTE_OBJECT_H
#define CLIENT_REMOTE_REMOTE_OBJECT_H

#include "base/digest/xxh3.h"
#include "chunker/chunk.h"
#include "client/remote/listing.h"
#include "client/remote/remote.h"

struct progress;

/* "/bucket/key", percent-encoded; heap, the caller's. */
char *remote_object_target(struct span bucket, struct span key);

struct remote_object_facts {
	uint64_t size;
	char etag[128]; /* without quotes */
	bool has_digest;
	struct digest128 digest;
	bool has_hash;
	struct chunk_id hash; /* the file hash of Xet */
	/* the server makes its bytes as they are read: cheap to send as they are, dear to make into
	 * chunks */
	bool is_derived;
};
int remote_object_head(struct remote *remote, const char *target, struct remote_object_facts *out,
	struct error *err);
int remote_object_delete(struct remote *remote, const char *target, struct error *err);

/* Sends `size` bytes of fd from `offset` on as the body of one request, from the start again at
 * each retry. */
struct remote_object_body {
	int fd;
	uint64_t offset;
	uint64_t size;
	const char *path; /* for messages */
	struct progress *progress;
};
/* `response` is released by the caller, also on failure. */
int remote_object_send(struct remote *remote, const struct http_request *request,
	const struct remote_object_body *body, struct http_response *response, struct error *err);
int remote_object_put(struct remote *remote, const char *target,
	const struct remote_object_body *body, struct error *err);

/* Bytes [offset, offset + size) pushed into `sink`, going on where it stopped after a lost
 * connection. Fewer or more bytes than asked for are never taken for success. `etag` not NULL:
 * precondition when the object is another by now. */
struct remote_object_range {
	const char *target;
	const char *etag;
	uint64_t offset;
	uint64_t size;
	bool whole; /* the range is the whole object: no Range header */
};
int remote_object_get(struct remote *remote, const struct remote_object_range *range,
	struct body_sink *sink, struct error *err);

/* `source` and `target` as remote_object_target gives them. The server copies; up to 5 GiB. */
int remote_object_copy(
	struct remote *remote, const char *source, const char *target, struct error *err);

/* exists and ours: 0 */
int remote_object_make_bucket(struct remote *remote, struct span bucket, struct error *err);
/* 1, or 0 when there is none */
int remote_object_has_bucket(struct remote *remote, struct span bucket, struct error *err);
/* bucket_not_empty also for runs */
int remote_object_remove_bucket(struct remote *remote, struct span bucket, struct error *err);
struct remote_object_page {
	struct span bucket;
	struct span prefix;
	bool folders;      /* stop at '/' */
	struct span token; /* where the page before ended; empty: at the start */
};
int remote_object_list(struct remote *remote, const struct remote_object_page *page,
	struct arena *arena, struct listing *out, struct error *err);
int remote_object_list_buckets(struct remote *remote, struct span token, struct arena *arena,
	struct listing *out, struct error *err);

#endif
