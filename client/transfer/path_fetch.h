/* Downloads the objects of a path's links into a work folder. Each object is proven by its digest;
 * downloads resume. */
#ifndef CLIENT_TRANSFER_PATH_FETCH_H
#define CLIENT_TRANSFER_PATH_FETCH_H

#include "client/remote/run_name.h"
#include "client/transfer/transfer.h"
#include "wire/step_message.h"

struct path_fetch {
	struct transfer_options transfer; /* its `progress` is ignored */
	const struct run_name *run;
	const struct path_message *path;
	/* made if it does not exist; kept after a failure, so that a later call resumes */
	const char *work;
	const struct progress_sink *progress_sink; /* NULL: nobody looks */
};

/* Downloads the objects of all links that are not in `work` yet. It uses the downloads that earlier
 * calls left for the same link, even if they were for another path. *out_bytes is the size of all
 * objects. */
int path_fetch_all(const struct path_fetch *fetch, uint64_t *out_bytes, struct error *err);
/* Removes everything from `work` that does not belong to a link of `path`. */
int path_fetch_clean(const struct file_ops *files, const char *work,
	const struct path_message *path, struct error *err);
/* Removes the links of `path` from `work`. */
int path_fetch_drop(const struct file_ops *files, const char *work, const struct path_message *path,
	struct error *err);
/* Whether `name` has the form of a link's folder in a work folder. */
bool path_fetch_owns(const char *name);
/* The folder with a link's objects, which have their names in the form. The caller frees it. */
char *path_fetch_files(const char *work, const struct path_link *link);

#endif
