/* Lists what lies under the client's prefix at the service. A page is checked as a whole before any
 * of it is handed out. A listing proves what is there and never what is absent: services may be
 * behind. Errors are those of s3_client.h, and those of the taker, which end the listing. */
#ifndef BASE_NET_S3_S3_LISTING_H
#define BASE_NET_S3_S3_LISTING_H

#include "base/net/s3/s3_client.h"

struct s3_object {
	const char *name; /* without the client's prefix; valid during the call */
	uint64_t bytes;
	int64_t changed_ms; /* wall clock of the service */
};
typedef int s3_take_object_fn(void *taker, const struct s3_object *object, struct error *err);

struct s3_unfinished {    /* an upload in parts that was neither completed nor aborted */
	const char *name; /* as of s3_object, as is the id */
	const char *id;
	int64_t initiated_ms; /* wall clock of the service */
};
typedef int s3_take_unfinished_fn(
	void *taker, const struct s3_unfinished *unfinished, struct error *err);

/* `begin` is how the names begin; "": all. Keys with a NUL are left out. */
int s3_listing_objects(struct s3_client *client, const char *begin, s3_take_object_fn *take,
	void *taker, struct error *err);
int s3_listing_uploads(struct s3_client *client, const char *begin, s3_take_unfinished_fn *take,
	void *taker, struct error *err);

#endif
