/* The HTTP status of each error kind and its code on each face. All faces use this one table, so
 * that they never disagree about a failure. */
#ifndef API_EXCHANGE_ERROR_MAP_H
#define API_EXCHANGE_ERROR_MAP_H

#include <stdbool.h>

#include "base/error.h"

struct error_row {
	enum error_kind kind;
	int status;      /* on the S3 face */
	int json_status; /* on the other faces: as on S3, but 401 for unknown callers */
	const char *s3_code;
	const char *json_code; /* steps and admin faces */
};
/* Never NULL: unknown kinds give the internal-error row. */
const struct error_row *error_map_find(enum error_kind kind);
/* The text of the error that a client may read. Texts of internal failures are only for the log,
 * under the same request id, because they may name files of the server. */
const char *error_map_text(const struct error *err, const struct error_row *row);
const struct error_row *error_map_rows(size_t *out_count); /* for tests and docs */

/* One of the protocols: how it reports errors and what it checks. */
struct exchange;
struct face {
	const char *name; /* "s3", "steps", "hub", "xet" */
	/* callers that may not know of a bucket are told that it does not exist, and unknown paths
	 * are 404 for all methods */
	bool hides;
	int busy_status; /* for `busy`, unless the server is stopping; 0: the table's status */
	int full_status; /* for `no_space`; 0: the table's status */
	/* Sets body and content type for `err` on the exchange. The status is set already, from the
	 * table. The transport drops bodies of HEAD. */
	void (*write_error)(
		struct exchange *exchange, const struct error *err, const struct error_row *row);
	/* Adds headers that each reply must carry. Called before the caller is identified, with the
	 * parameters still encoded (without parameters when no row fits). NULL: none. */
	void (*prepare)(struct exchange *exchange);
	/* Called once the caller is authorised, before the row's `begin`. Fails when the request
	 * asks for more than the row's access covers. NULL: never. */
	int (*check)(struct exchange *exchange, struct error *err);
};
extern const struct face face_s3;    /* api/s3/s3_routes.c */
extern const struct face face_hub;   /* api/hub/hub_error.c */
extern const struct face face_xet;   /* api/xet/xet_error.c */
extern const struct face face_steps; /* api/steps/steps_error.c; the admin face uses it too */

#endif
