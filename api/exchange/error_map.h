/* Each error kind's HTTP status and its codes on the faces: one table, so that the faces never
 * disagree about one failure. */
#ifndef API_EXCHANGE_ERROR_MAP_H
#define API_EXCHANGE_ERROR_MAP_H

#include <stdbool.h>

#include "base/error.h"

struct error_row {
	enum error_kind kind;
	int status;      /* on the S3 face */
	int json_status; /* on the others: as on S3, but 401 for whoever is unknown */
	const char *s3_code;
	const char *json_code; /* steps and admin faces */
};
/* Never NULL: unknown kinds give the internal-error row. */
const struct error_row *error_map_find(enum error_kind kind);
/* What a client may read of it. What broke inside is for the log, under the same request id: its
 * text may name files of the server. */
const char *error_map_text(const struct error *err, const struct error_row *row);
const struct error_row *error_map_rows(size_t *out_count); /* for tests and docs */

/* A face knows how its clients want errors. */
struct exchange;
struct face {
	const char *name; /* "s3", "steps", "hub", "xet" */
	/* who may not know of a bucket is told that there is none, and unknown paths are 404
	 * whatever the method */
	bool hides;
	int busy_status; /* how it says `busy` while the server goes on; 0: as the table has it */
	int full_status; /* and `no_space`; 0: as the table has it */
	/* Sets body and content type for `err` on the exchange; the status is set already, from the
	 * table. HEAD bodies are dropped by the transport. */
	void (*write_error)(
		struct exchange *exchange, const struct error *err, const struct error_row *row);
	/* Before the caller is identified, with the parameters still encoded (none when no row
	 * fits): adds headers that each reply shall carry. NULL: none. */
	void (*prepare)(struct exchange *exchange);
	/* Once the caller is authorised, before the row's `begin`: fails when the request asks for
	 * more than the row does. NULL: never. */
	int (*check)(struct exchange *exchange, struct error *err);
};
extern const struct face face_s3;    /* api/s3/s3_routes.c */
extern const struct face face_hub;   /* api/hub/hub_error.c */
extern const struct face face_xet;   /* api/xet/xet_error.c */
extern const struct face face_steps; /* api/steps/steps_error.c; the admin face uses it too */

#endif
