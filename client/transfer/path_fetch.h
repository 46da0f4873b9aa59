/* The objects of a path's links on the local disk, in a work folder: downloaded, each proven by its
 * digest, resumable. */
#ifndef CLIENT_TRANSFER_PATH_FETCH_H
#define CLIENT_TRANSFER_PATH_FETCH_H

#include "client/remote/run_name.h"
#include "client/transfer/transfer.h"
#include "wire/step_message.h"

struct path_fetch {
	struct transfer_options transfer; /* the progress in it is made here */
	const struct run_name *run;
	const struct path_message *path;
	/* kept over failures, so that a later call resumes; made where needed */
	const char *work;
	bool show_progress;
};

/* Brings every object of every link that is not there yet. What other calls for the same link left
 * is used, whatever path it was of. */
int path_fetch_all(const struct path_fetch *fetch, uint64_t *out_bytes, struct error *err);
/* Removes from `work` all that belongs to no link of `path`. */
int path_fetch_clean(const struct file_ops *files, const char *work,
	const struct path_message *path, struct error *err);
/* Removes the links of `path` from `work`. */
int path_fetch_drop(const struct file_ops *files, const char *work, const struct path_message *path,
	struct error *err);
/* Whether `name` in a work folder is one that the folder of a link has. */
bool path_fetch_owns(const char *name);
/* The folder of a link's objects, by their names in the form. Heap, the caller's. */
char *path_fetch_files(const char *work, const struct path_link *link);

#endif
