/* Deltas between two checkpoints of one schema, as files. delta_diff makes them and delta_apply
 * applies them. docs/FORMAT.md, "Delta files", has all formats. Our own deltas of any format carry
 * base_digest, result_digest, the result's shard headers if they differ from the base's, and the
 * list of the result's files. So the result is the publisher's checkpoint byte for byte. Foreign
 * deltas without those keys can be read too; their result has the base's files and headers. */
#ifndef WEIGHTS_DELTA_DELTA_H
#define WEIGHTS_DELTA_DELTA_H

#include "base/file.h"
#include "weights/model/checkpoint.h"

enum delta_format {
	DELTA_ULP_CLASS, /* the default: blocks of weights/codec/block_code.h */
	DELTA_SLIME_XOR, /* a zstd frame for each tensor, as slime, miles and stitch read it */
	DELTA_SLIME_OVERWRITE,
	/* positions and values of BF16 tensors, as TRL's delta weight sync reads them */
	DELTA_TRL_GAP,
	DELTA_TRL_RAW,
	DELTA_TRL_V1,
	DELTA_FULL,    /* the new checkpoint itself */
	DELTA_FORMATS, /* count of the formats that are written; those below are only read: */
	DELTA_SKYRL_XOR = DELTA_FORMATS, /* slime-xor's tensors with SkyRL's manifest */
	DELTA_PULSE                      /* PULSE's positions and values in one frame */
};

/* "ulp-class", "slime-xor", "slime-overwrite", "trl-gap", "trl-raw", "trl-v1", "full", "skyrl-xor",
 * "pulse" */
const char *delta_format_name(enum delta_format format);
/* False unless `name` is a format that is written. */
bool delta_format_parse(struct span name, enum delta_format *out_format);
const char *delta_format_list(void); /* the names of these formats with commas, for messages */

/* The checksums that prove the tensors of a slime directory. */
enum delta_checksum { DELTA_XXH3_128, DELTA_BLAKE3, DELTA_ADLER32, DELTA_CHECKSUMS };
const char *delta_checksum_name(enum delta_checksum checksum); /* "xxh3-128", "blake3", "adler32" */
/* Accepts "alder32" too, which other programs write. */
bool delta_checksum_parse(struct span name, enum delta_checksum *out_checksum);

enum { DELTA_STATS_STEPS = 5 };
struct delta_stats {
	uint64_t elements;
	uint64_t changed_elements;
	uint64_t tensors;
	uint64_t changed_tensors;
	uint64_t delta_bytes; /* of all files written */
	/* bytes of the encoded tensors with block headers, without the safetensors around them;
	 * only delta_diff sets it */
	uint64_t payload_bytes;
	/* changed float elements by the length of their step: 1, 2, 3, 4, and 5 or more ulps; only
	 * ulp-class counts them */
	uint64_t ulp_steps[DELTA_STATS_STEPS];
	uint64_t full_bytes; /* of the new checkpoint's files */
	/* zeros when apply had nothing to compare the base with: the delta names no digest and the
	 * caller gave none */
	struct digest128 base_digest;
	struct digest128 result_digest;
};

struct delta_diff_params {
	const struct checkpoint *base;
	const struct checkpoint *next;
	const struct digest128 *base_tensor_digests; /* schema order; NULL: computed here */
	const struct digest128 *next_tensor_digests; /* schema order; NULL: computed here */
	enum delta_format format;
	enum delta_checksum checksum; /* for the slime formats */
	uint64_t model_version;       /* the result's step: TRL's counter, slime's version */
	bool has_base_step;           /* otherwise the base step is model_version - 1 */
	uint64_t base_step;
	unsigned threads;             /* 0: one per core */
	struct work_watch *watch;     /* NULL: none */
	const char *out;              /* must not exist; built beside it and renamed */
	const struct file_ops *files; /* NULL: file_system() */
};
/* Fails with schema_mismatch when the tensors differ, with exists when `out` exists, and with
 * unsupported and the tensor's name when the format cannot hold a change: the TRL formats hold only
 * BF16. Nothing is left of `out` after a failure. */
int delta_diff(
	const struct delta_diff_params *params, struct delta_stats *out_stats, struct error *err);

struct delta_apply_params {
	const struct checkpoint *base;
	/* a file or folder of any format; also a full checkpoint, which must have the base's
	 * tensors */
	const char *delta;
	/* several deltas instead of `delta`, each made from the result of the one before; applied
	 * in one pass */
	const char *const *deltas;
	size_t delta_count;
	/* must not exist; built, synced and verified beside it, then renamed */
	const char *out;
	unsigned threads;
	struct work_watch *watch; /* NULL: none */
	/* the digest that the result must have, whatever the delta says; NULL: any */
	const struct digest128 *expected_result;
	/* proven tensor digests of the base in schema order; NULL: computed here to check
	 * base_digest */
	const struct digest128 *base_tensor_digests;
	/* the base's files do not change as long as they have a name, so files that the result
	 * shares with the base are linked, not written */
	bool shares_files;
	const struct file_ops *files; /* NULL: file_system() */
};
/* Fails with wrong_base when the delta was made from another base; with digest_mismatch when the
 * result, a tensor or a block has another digest than the delta says; with invalid for a malformed
 * or truncated delta; with unsupported for encodings that this program does not know
 * (nvcomp_cascaded, arc_v2). The text names the delta, its step and the tensor. Never changes the
 * base. Nothing is left of `out` after a failure. */
int delta_apply(
	const struct delta_apply_params *params, struct delta_stats *out_stats, struct error *err);

/* The facts that inspect shows about a file or folder. */
struct delta_summary {
	bool is_delta; /* otherwise it is a full checkpoint, and nothing below is set */
	enum delta_format format;
	/* it names the digests of base and result; otherwise both are zeros */
	bool has_digests;
	struct digest128 base_digest;
	struct digest128 result_digest;
	bool has_step;
	uint64_t step;
	bool has_base_step;
	uint64_t base_step;
	uint64_t bytes;            /* of its safetensors files and index */
	bool has_changed_elements; /* foreign deltas may lack it, and a count needs the base */
	uint64_t changed_elements; /* includes all elements of tensors that are stored whole */
	uint64_t changed_tensors;
};
/* Checks all that can be checked without the base. */
int delta_inspect(const char *path, struct delta_summary *out_summary, struct error *err);

#endif
