/* Advances from the held step to the wanted step: downloads every link of a path, applies the
 * deltas in order, and makes a new folder that equals the publisher's checkpoint. The folder is
 * proven by digest before it gets its name. The held step is never changed. */
#ifndef CLIENT_TRANSFER_CATCH_UP_H
#define CLIENT_TRANSFER_CATCH_UP_H

#include "client/local/subset.h"
#include "client/remote/remote_run.h"
#include "client/transfer/transfer.h"

struct catch_up_params {
	/* all files are written through its `files`; its `progress` is ignored */
	struct transfer_options transfer;
	const struct run_name *run;
	const struct path_message *path; /* from the server */
	/* the checkpoint folder that the first link starts from; NULL when that is an anchor */
	const char *base;
	/* folder for downloads, on the file system of `out`; kept after a failure, so that a later
	 * call resumes */
	const char *work;
	/* must not exist; appears whole; its content is synced, its name is not */
	const char *out;
	unsigned threads;
	const struct progress_sink *progress_sink; /* NULL: nobody looks */
	/* NULL: all tensors; otherwise `out` and `base` are folders of subset_make */
	const struct subset *subset;
	/* with a subset: the digest of the whole checkpoint that `base` is a part of */
	struct digest128 base_digest;
	struct span tensor_digests; /* with a subset: from the manifest of the wanted step */
	/* the downloads stay in `work` after success, too, until the next catch_up_fetch there */
	bool keeps_downloads;
};

struct catch_up_result {
	uint64_t bytes; /* of all links */
	int64_t fetch_ms;
	int64_t apply_ms;      /* includes proving */
	uint64_t anchor_bytes; /* of the anchor that the path begins with; 0: none */
	uint64_t delta_bytes;
	uint64_t deltas;
};

/* Fails with wrong_base, digest_mismatch, corrupt or invalid when the base or a download does not
 * match the path: a path from an anchor may help. Fails with upstream when the path has no link,
 * and with busy when a signal has come. On success the downloads are removed from `work`, unless
 * they are to be kept. */
int catch_up(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
/* The two halves of catch_up: the first needs the server, the second the processor and the disk.
 * Downloads stay in `work` between them. Both must get the same parameters; each fills its part of
 * the result. catch_up_make must follow a successful catch_up_fetch. */
int catch_up_fetch(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
int catch_up_make(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
/* Whether catch_up makes files or folders of this name in `work`. */
bool catch_up_owns(const char *name);
/* Whether a path from an anchor can cure this failure of catch_up: damage, or a delta in a format
 * that this program does not read. */
bool catch_up_wants_anchor(const struct error *err);

/* Opens a checkpoint folder and computes the digest of its tensors. */
int catch_up_folder_digest(const char *folder, unsigned threads, struct work_watch *watch,
	struct digest128 *out, struct error *err);

#endif
