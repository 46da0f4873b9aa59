/* Deltas between two checkpoints of one schema, as files: made by delta_diff, undone by
 * delta_apply. docs/FORMAT.md, "Delta files", has all formats. Our own deltas of any format carry
 * base_digest, result_digest, the result's shard headers where they differ from the base's, and the
 * list of the result's files, so that the result is the publisher's checkpoint byte for byte.
 * Foreign ones without those keys are read too: their result has the base's files and headers. */
#ifndef WEIGHTS_DELTA_DELTA_H
#define WEIGHTS_DELTA_DELTA_H

#include "base/file.h"
#include "weights/model/checkpoint.h"

enum delta_format {
	DELTA_ULP_CLASS, /* the default: blocks of weights/codec/block_code.h */
	DELTA_SLIME_XOR, /* a zstd frame per tensor, as slime, miles and stitch read */
	DELTA_SLIME_OVERWRITE,
	/* positions and values of BF16 tensors, as TRL's delta weight sync reads */
	DELTA_TRL_GAP,
	DELTA_TRL_RAW,
	DELTA_TRL_V1,
	DELTA_FULL,                      /* the new checkpoint itself */
	DELTA_FORMATS,                   /* that are written */
	DELTA_SKYRL_XOR = DELTA_FORMATS, /* slime-xor's tensors with SkyRL's manifest: read alone */
	DELTA_PULSE                      /* PULSE's positions and values in one frame: read alone */
};

/* "ulp-class", "slime-xor", "slime-overwrite", "trl-gap", "trl-raw", "trl-v1", "full", "skyrl-xor",
 * "pulse" */
const char *delta_format_name(enum delta_format format);
/* One that is written. */
bool delta_format_parse(struct span name, enum delta_format *out_format);
const char *delta_format_list(void); /* all names with commas, for messages */

/* What proves the tensors of a slime directory. */
enum delta_checksum { DELTA_XXH3_128, DELTA_BLAKE3, DELTA_ADLER32, DELTA_CHECKSUMS };
const char *delta_checksum_name(enum delta_checksum checksum); /* "xxh3-128", "blake3", "adler32" */
bool delta_checksum_parse(
	struct span name, enum delta_checksum *out_checksum); /* "alder32" too: it is in the wild */

enum { DELTA_STATS_STEPS = 5 };
struct delta_stats {
	uint64_t elements;
	uint64_t changed_elements;
	uint64_t tensors;
	uint64_t changed_tensors;
	uint64_t delta_bytes; /* of all files written */
	/* of what is coded of tensors, block headers included, without the safetensors around it;
	 * delta_diff alone sets it */
	uint64_t payload_bytes;
	/* changed elements by |ulp| of 1, 2, 3, 4, 5 and more, of floats; ulp-class alone counts
	 * them */
	uint64_t ulp_steps[DELTA_STATS_STEPS];
	uint64_t full_bytes; /* of the new checkpoint's files */
	/* zero: apply had none to check, for the delta names none and the caller gave no digests */
	struct digest128 base_digest;
	struct digest128 result_digest;
};

struct delta_diff_params {
	const struct checkpoint *base;
	const struct checkpoint *next;
	const struct digest128 *base_tensor_digests; /* schema order; NULL: computed here */
	const struct digest128 *next_tensor_digests; /* schema order; NULL: computed here */
	enum delta_format format;
	enum delta_checksum checksum; /* of the slime formats */
	uint64_t model_version;       /* the result's step: TRL's counter, slime's version */
	bool has_base_step;           /* otherwise model_version - 1 */
	uint64_t base_step;
	unsigned threads;             /* 0: one per core */
	struct work_watch *watch;     /* NULL: nobody */
	const char *out;              /* must not exist; written beside and renamed */
	const struct file_ops *files; /* NULL: file_system() */
};
/* schema_mismatch when the tensors differ, exists when `out` does, unsupported when the format
 * cannot hold a change (the TRL ones: BF16 alone), naming the tensor; on any failure nothing is
 * left of `out`. */
int delta_diff(
	const struct delta_diff_params *params, struct delta_stats *out_stats, struct error *err);

struct delta_apply_params {
	const struct checkpoint *base;
	/* file or folder, of any format: a full checkpoint too, which must have the base's
	 * tensors */
	const char *delta;
	/* instead of `delta`: several, each made from the result of the one before; applied in one
	 * pass */
	const char *const *deltas;
	size_t delta_count;
	/* must not exist: made whole, synced and verified beside it, then renamed */
	const char *out;
	unsigned threads;
	struct work_watch *watch; /* NULL: nobody */
	/* When not NULL, the result must have this digest, whatever the delta says. */
	const struct digest128 *expected_result;
	/* Tensor digests of the base in schema order when already proven; NULL: computed here to
	 * check base_digest. */
	const struct digest128 *base_tensor_digests;
	/* Nobody changes the base's files as long as they have a name: those that the result has
	 * too are linked, not written. */
	bool shares_files;
	const struct file_ops *files; /* NULL: file_system() */
};
/* wrong_base when the base is not the one that the delta was made from; digest_mismatch when the
 * result, a tensor or a block is not what the delta says; invalid for a malformed or truncated
 * delta; unsupported for encodings that this program does not know (nvcomp_cascaded, arc_v2). The
 * text names the delta, its step and the tensor. The base is never touched; on any failure nothing
 * is left of `out`. */
int delta_apply(
	const struct delta_apply_params *params, struct delta_stats *out_stats, struct error *err);

/* What a file or folder is: for inspect. */
struct delta_summary {
	bool is_delta; /* otherwise a full checkpoint, and nothing below is set */
	enum delta_format format;
	/* it names base and result; what follows of them is zero otherwise */
	bool has_digests;
	struct digest128 base_digest;
	struct digest128 result_digest;
	bool has_step;
	uint64_t step;
	bool has_base_step;
	uint64_t base_step;
	uint64_t bytes;            /* of its safetensors files and index */
	bool has_changed_elements; /* a foreign delta need not say, and counting needs the base */
	uint64_t changed_elements; /* of a tensor stored whole: all */
	uint64_t changed_tensors;
};
/* Checks all that can be checked without the base. */
int delta_inspect(const char *path, struct delta_summary *out_summary, struct error *err);

#endif
