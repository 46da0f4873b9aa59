/* BUCKET/RUN as a person writes it, checked, and the request target that it stands for. */
#ifndef CLIENT_REMOTE_RUN_NAME_H
#define CLIENT_REMOTE_RUN_NAME_H

#include "base/error.h"
#include "base/span.h"

struct run_name {
	char *text; /* "bucket/run" */
	char *bucket;
	char *run;
	char *target; /* "/v1/runs/bucket/run" */
};

/* Fails with bad_name. `text` may be NULL: the error then says which flag is missing. */
int run_name_init(struct run_name *name, const char *text, struct error *err);
void run_name_release(struct run_name *name); /* a zeroed one is fine */

#endif
