/* Typed calls for objects and buckets, over the S3 face with the bearer token. */
#ifndef CLIENT_REMOTE_REMOTE_OBJECT_H
#define CLIENT_REMOTE_REMOTE_OBJECT_H

#include "base/digest/xxh3.h"
#include "chunker/chunk.h"
#include "client/remote/listing.h"
#include "client/remote/remote.h"

struct progress;

/* "/bucket/key", percent-encoded. The bucket has at most 255 bytes. The caller frees it. */
char *remote_object_target(struct span bucket, struct span key);

struct remote_object_facts {
	uint64_t size;
	char etag[128]; /* without quotes */
	bool has_digest;
	struct digest128 digest;
	bool has_hash;
	struct chunk_id hash; /* the file hash of Xet */
	/* The server makes the bytes when they are read. So sending them plainly is cheap, and
	 * making them into chunks is expensive. */
	bool is_derived;
	int64_t modified_ms; /* wall clock; -1 when the server does not say */
};
int remote_object_head(struct remote *remote, const char *target, struct remote_object_facts *out,
	struct error *err);
int remote_object_delete(struct remote *remote, const char *target, struct error *err);

/* The body of a request: `size` bytes of fd from `offset` on. Each retry sends all of it again. */
struct remote_object_body {
	int fd;
	uint64_t offset;
	uint64_t size;
	const char *path;          /* for messages */
	struct progress *progress; /* may be NULL */
};
/* The caller must release `response`, also after a failure. */
int remote_object_send(struct remote *remote, const struct http_request *request,
	const struct remote_object_body *body, struct http_response *response, struct error *err);
int remote_object_put(struct remote *remote, const char *target,
	const struct remote_object_body *body, struct error *err);
/* The same for bytes in memory. */
int remote_object_put_bytes(
	struct remote *remote, const char *target, struct span bytes, struct error *err);

/* Pushes bytes [offset, offset + size) into `sink`. After a lost connection it resumes where it
 * stopped. It never succeeds with fewer or more bytes than requested. With an `etag` it fails with
 * precondition when the object has changed. */
struct remote_object_range {
	const char *target;
	const char *etag; /* NULL: any */
	uint64_t offset;
	uint64_t size;
	bool whole; /* the range is the whole object: no Range header */
};
int remote_object_get(struct remote *remote, const struct remote_object_range *range,
	struct body_sink *sink, struct error *err);

/* The server copies the object, which may have up to 5 GiB. `source` and `target` are as
 * remote_object_target returns them. */
int remote_object_copy(
	struct remote *remote, const char *source, const char *target, struct error *err);

/* Also 0 when the bucket exists and belongs to the caller. */
int remote_object_make_bucket(struct remote *remote, struct span bucket, struct error *err);
/* 1, or 0 when the bucket does not exist. */
int remote_object_has_bucket(struct remote *remote, struct span bucket, struct error *err);
/* Fails with bucket_not_empty while the bucket holds objects or runs. */
int remote_object_remove_bucket(struct remote *remote, struct span bucket, struct error *err);
/* Over XML_READER_TEXT_MAX_BYTES, so that no server's token is longer. */
enum { REMOTE_LIST_TOKEN_MAX_BYTES = 16 * 1024 };
struct remote_object_page {
	struct span bucket;
	struct span prefix;
	struct span delimiter; /* stop behind the next one; empty: list every key */
	struct span token;     /* continuation token of the page before; empty: the first page */
};
int remote_object_list(struct remote *remote, const struct remote_object_page *page,
	struct arena *arena, struct listing *out, struct error *err);
int remote_object_list_buckets(struct remote *remote, struct span token, struct arena *arena,
	struct listing *out, struct error *err);

#endif
