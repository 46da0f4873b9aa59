/* S3's error body, with the children that clients and people who debug them use. Children that
 * follow from the request are added to every error. A handler that knows more replies with
 * s3_error_reply or a function below it. */
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
	const struct s3_error_field *fields; /* after the usual ones; NULL when there are none */
	size_t field_count;
};
/* The S3 face's `write_error` (api/exchange/error_map.h). */
void s3_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row);
/* Replies without logging, so only for failures of the client's making: statuses below 500, and
 * 501. */
enum next s3_error_reply(struct exchange *exchange, const struct s3_error *error);
/* Replies 400 InvalidArgument, with the argument's name and value. */
enum next s3_error_argument(
	struct exchange *exchange, const char *name, struct span value, const char *message);
/* Replies 501 NotImplemented, with the name of the header or query parameter. */
enum next s3_error_not_implemented(
	struct exchange *exchange, const char *name, const char *message);

#endif
