/* From what is held to the wanted step: downloads every link of a path, applies deltas one after
 * the other, and gives a new folder that is the publisher's checkpoint, proven by digest before it
 * gets its name. What is held is never touched. */
#ifndef CLIENT_TRANSFER_CATCH_UP_H
#define CLIENT_TRANSFER_CATCH_UP_H

#include "client/local/subset.h"
#include "client/remote/remote_run.h"
#include "client/transfer/transfer.h"

struct catch_up_params {
	struct transfer_options transfer; /* its `files` write all; its progress is made here */
	const struct run_name *run;
	const struct path_message *path; /* at least one link */
	/* checkpoint folder that the first link starts from; NULL when that is an anchor */
	const char *base;
	/* for downloads: kept over failures, so that a later call resumes; on `out`'s file
	 * system */
	const char *work;
	/* must not exist; appears whole and synced, but for its name */
	const char *out;
	unsigned threads;
	bool show_progress;
	/* NULL: all tensors; otherwise subset_make's folder comes out, and `base` is one */
	const struct subset *subset;
	/* with a subset: of the whole checkpoint that `base` is a part of */
	struct digest128 base_digest;
	struct span tensor_digests; /* with a subset: of the wanted step's manifest */
};

struct catch_up_result {
	uint64_t bytes; /* of all links */
	int64_t fetch_ms;
	int64_t apply_ms;      /* with proving */
	uint64_t anchor_bytes; /* of the anchor that the path begins with; 0: none */
	uint64_t delta_bytes;
	uint64_t deltas;
};

/* wrong_base, digest_mismatch, corrupt or invalid when the base or what came is not what the path
 * says: a path from an anchor may help. busy when a signal came. On success the downloads are
 * removed from `work`. */
int catch_up(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
/* Its two halves: first what needs the server, then what needs the processor and the disk.
 * Downloads stay in `work` between them. Both take the same parameters and fill their part of the
 * result. */
int catch_up_fetch(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
int catch_up_make(const struct catch_up_params *params, struct catch_up_result *out_result,
	struct error *err);
/* Whether a file or folder of this name in `work` is one of catch_up's own. */
bool catch_up_owns(const char *name);
/* Whether a failure of catch_up is of the kind that an anchor cures: damage, or a delta of a kind
 * that this program does not read. */
bool catch_up_wants_anchor(const struct error *err);

/* Opens a checkpoint folder and computes the digest of its tensors. */
int catch_up_folder_digest(const char *folder, unsigned threads, struct work_watch *watch,
	struct digest128 *out, struct error *err);

#endif
