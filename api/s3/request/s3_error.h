/* S3's error body, with the children that clients and people debugging them use. What follows from
 * the request alone is added to every error; a handler that knows more replies through here. */
#ifndef API_S3_REQUEST_S3_ERROR_H
#define API_S3_REQUEST_S3_ERROR_H

#include "api/exchange/error_map.h"
#include "api/exchange/exchange.h"

struct s3_error_field { /* one child of <Error> */
	const char *name;
	struct span value;
};
struct s3_error {
	enum error_kind kind; /* gives the status, and the code when `code` is NULL */
	const char *code;
	const char *message;
	const struct s3_error_field *fields; /* behind the usual ones */
	size_t field_count;
};
/* The S3 face's `write_error` (api/exchange/error_map.h). */
void s3_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row);
/* For statuses below 500: these are not logged. */
enum next s3_error_reply(struct exchange *exchange, const struct s3_error *error);
/* 400 InvalidArgument naming the argument and its value. */
enum next s3_error_argument(
	struct exchange *exchange, const char *name, struct span value, const char *message);
/* 501 NotImplemented naming the header or query parameter. */
enum next s3_error_not_implemented(
	struct exchange *exchange, const char *name, const char *message);

#endif
