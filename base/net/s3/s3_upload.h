/* An object that is stored in parts, which may be sent at the same time by several threads. Nothing
 * of it is visible before the completion. An upload that is neither completed nor aborted stays at
 * the service: s3_listing.h finds it. Errors are those of s3_client.h. */
#ifndef BASE_NET_S3_S3_UPLOAD_H
#define BASE_NET_S3_S3_UPLOAD_H

#include "base/net/s3/s3_client.h"

enum { S3_UPLOAD_ID_BYTES = 1024, S3_ETAG_BYTES = 128, S3_PARTS_MAX = 10 * 1000 };
/* Services refuse smaller parts, but for the last one. */
static const size_t S3_PART_MIN_BYTES = (size_t)5 * 1024 * 1024;

struct s3_upload {
	const char *name;
	const char *id; /* as the service gave it */
};
struct s3_etag {
	char text[S3_ETAG_BYTES];
};

/* An upload whose answer was lost stays at the service. */
int s3_upload_begin(struct s3_client *client, const char *name, char out_id[S3_UPLOAD_ID_BYTES],
	struct error *err);
/* Parts have the numbers from 1 to S3_PARTS_MAX. The same number again replaces the part.
 * not_found: there is no such upload (any more). */
int s3_upload_part(struct s3_client *client, const struct s3_upload *upload, unsigned number,
	struct span bytes, struct s3_etag *out_etag, struct error *err);
/* Makes the object of the parts 1 to `count`, which have `bytes` bytes together. An upload that the
 * service does not know (any more) was completed before when the object has that size: the answer
 * was lost. not_found: there is neither the upload nor the object; corrupt: the object has another
 * size. After another failure the object may be there all the same; the call may be made again. */
int s3_upload_complete(struct s3_client *client, const struct s3_upload *upload,
	const struct s3_etag *etags, unsigned count, uint64_t bytes, struct error *err);
/* 0 also when there is no such upload. */
int s3_upload_abort(struct s3_client *client, const struct s3_upload *upload, struct error *err);

#endif
