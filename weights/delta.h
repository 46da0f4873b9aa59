/* Deltas between two checkpoints of one schema, as files: made by delta_diff, undone by delta_apply. docs/FORMAT.md, "Delta files". A
 * delta is one safetensors file where the checkpoint is one file; where the checkpoint is a folder it is a folder: delta.safetensors
 * (or delta-NNNNN-of-NNNNN.safetensors per shard with delta.safetensors.index.json) and, under files/, each file without tensors that
 * is new or changed. Its metadata carries base_digest, result_digest, the result's shard headers where they differ from the base's, and
 * the list of the result's files, so that the result is the publisher's checkpoint byte for byte. TRL files without those keys are read
 * too: their result has the base's files and headers. BF16 tensors of less than 2^31 elements are stored as changed positions and
 * values, all others whole when they changed, so that every dtype comes back exact. */
#ifndef WEIGHTS_DELTA_H
#define WEIGHTS_DELTA_H

#include "base/file.h"
#include "weights/checkpoint.h"

enum delta_format { DELTA_TRL_GAP, DELTA_TRL_RAW, DELTA_TRL_V1 };

const char *delta_format_name(enum delta_format format); /* "trl-gap", "trl-raw", "trl-v1" */
bool delta_format_parse(struct span name, enum delta_format *out_format);

struct delta_stats {
	uint64_t elements;
	uint64_t changed_elements;
	uint64_t tensors;
	uint64_t changed_tensors;
	uint64_t delta_bytes;   /* of all files written */
	uint64_t full_bytes;    /* of the new checkpoint's files */
	struct digest128 base_digest; /* zero: apply had none to check, for the delta names none and the caller gave no digests */
	struct digest128 result_digest;
};

struct delta_diff_params {
	const struct checkpoint *base;
	const struct checkpoint *next;
	const struct digest128 *base_tensor_digests; /* schema order; NULL: computed here */
	const struct digest128 *next_tensor_digests; /* schema order; NULL: computed here */
	enum delta_format format;
	uint64_t model_version; /* TRL's counter in the metadata */
	unsigned threads;       /* 0: one per core */
	const char *out;        /* must not exist; written beside and renamed */
	const struct file_ops *files; /* NULL: file_system() */
};
/* schema_mismatch when the tensors differ, exists when `out` does; on any failure nothing is left of `out`. */
int delta_diff(const struct delta_diff_params *params, struct delta_stats *out_stats, struct error *err);

struct delta_apply_params {
	const struct checkpoint *base;
	const char *delta; /* file or folder */
	const char *out;   /* must not exist: made whole, synced and verified beside it, then renamed */
	unsigned threads;
	/* When not NULL, the result must have this digest, whatever the delta says. */
	const struct digest128 *expected_result;
	/* Tensor digests of the base in schema order when already proven; NULL: computed here to check base_digest. */
	const struct digest128 *base_tensor_digests;
	const struct file_ops *files; /* NULL: file_system() */
};
/* wrong_base before anything is written when base_digest differs; digest_mismatch when the result does; invalid for a malformed delta and
 * for a full checkpoint in its place; unsupported for encodings that need more than this program (nvcomp_cascaded). The base is never
 * touched; on any failure nothing is left of `out`. */
int delta_apply(const struct delta_apply_params *params, struct delta_stats *out_stats, struct error *err);

/* What a file or folder is: for inspect and for refusing a full checkpoint where a delta belongs, and the other way round. */
struct delta_summary {
	bool is_delta;
	enum delta_format format;
	bool has_digests;          /* it names base and result; what follows of them is zero otherwise */
	struct digest128 base_digest;
	struct digest128 result_digest;
	uint64_t changed_elements; /* of a tensor stored whole: all */
	uint64_t changed_tensors;
};
/* Checks all that can be checked without the base. */
int delta_inspect(const char *path, struct delta_summary *out_summary, struct error *err);

#endif
