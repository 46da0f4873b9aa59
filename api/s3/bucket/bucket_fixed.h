/* Settings of a bucket (and of objects) that this server does not have, as one table: what a GET
 * finds, what a PUT that asks for nothing may say, and a clear 501 for the rest. Clients and
 * infrastructure tools walk nearly all of them. */
#ifndef API_S3_BUCKET_BUCKET_FIXED_H
#define API_S3_BUCKET_BUCKET_FIXED_H

#include "api/exchange/exchange.h"

struct bucket_fixed {
	const char *query;
	bool on_objects;
	int status; /* of a GET; 404 and 400 with `code` and `message`, 200 with `root` */
	const char *code;
	const char *message;
	const char *root;  /* the element that a GET gives */
	const char *child; /* its one child with `value`; NULL: it is empty */
	const char *value;
	bool takes_same; /* a PUT of what the GET gives succeeds: it changes nothing */
	bool drops;      /* DELETE succeeds: there is nothing to remove */
	/* GET and DELETE with an `id` parameter: 404 with this code; NULL: they are as without */
	const char *id_code;
};
const struct bucket_fixed *bucket_fixed_rows(size_t *out_count); /* for tests and documents */

enum next bucket_fixed_get_begin(struct exchange *exchange);
enum next bucket_fixed_put_finish(struct exchange *exchange); /* behind bucket_setting_put_begin */
enum next bucket_fixed_delete_begin(struct exchange *exchange);

#endif
