/* Settings of buckets and objects that this server does not have, as one table, because clients and
 * infrastructure tools ask for nearly all of them. A GET answers as S3 does for a bucket without
 * the setting. A PUT or DELETE that changes nothing succeeds where its row says so; others are
 * 501. */
#ifndef API_S3_BUCKET_BUCKET_FIXED_H
#define API_S3_BUCKET_BUCKET_FIXED_H

#include <stdbool.h>
#include <stddef.h>

struct bucket_fixed {
	const char *query; /* the marker of its routes */
	bool on_objects;   /* a setting of objects, without DELETE; else of buckets */
	int status;        /* of a GET: 404 and 400 with `code` and `message`, 200 with `root` */
	const char *code;
	const char *message;
	const char *root;  /* the root element of a GET's reply */
	const char *child; /* its only child, with `value`; NULL: it has none */
	const char *value;
	bool takes_same; /* a PUT of what the GET gives succeeds and changes nothing */
	bool drops;      /* DELETE succeeds, because there is nothing to remove */
	/* the code of a 404 for GET and DELETE with the parameter `id`; NULL: `id` is ignored */
	const char *id_code;
};
const struct bucket_fixed *bucket_fixed_rows(size_t *out_count); /* for tests and documents */

#endif
