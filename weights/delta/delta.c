/* The names of formats and checksums, delta_diff and delta_inspect. A diff takes the files and
 * tensors of two opened checkpoints and leaves the work to delta_encode. */
#include "weights/delta/delta.h"

#include "weights/delta/delta_encode.h"
#include "weights/delta/delta_reader.h"
#include "weights/model/checkpoint_source.h"

static const char *const format_names[] = {
	[DELTA_ULP_CLASS] = "ulp-class",
	[DELTA_SLIME_XOR] = "slime-xor",
	[DELTA_SLIME_OVERWRITE] = "slime-overwrite",
	[DELTA_TRL_GAP] = "trl-gap",
	[DELTA_TRL_RAW] = "trl-raw",
	[DELTA_TRL_V1] = "trl-v1",
	[DELTA_FULL] = "full",
	[DELTA_SKYRL_XOR] = "skyrl-xor",
	[DELTA_PULSE] = "pulse",
};
static const char *const checksum_names[] = {
	[DELTA_XXH3_128] = "xxh3-128", [DELTA_BLAKE3] = "blake3", [DELTA_ADLER32] = "adler32"};

static struct delta_summary summarise(const struct delta_reader *reader);

const char *delta_format_name(enum delta_format format)
{
	ASSERT((unsigned)format <= DELTA_PULSE);
	return format_names[format];
}

const char *delta_format_list(void)
{
	return "ulp-class, slime-xor, slime-overwrite, trl-gap, trl-raw, trl-v1 or full";
}

bool delta_format_parse(struct span name, enum delta_format *out_format)
{
	for (unsigned i = 0; i < DELTA_FORMATS; i++) {
		if (span_equal_text(name, format_names[i])) {
			*out_format = (enum delta_format)i;
			return true;
		}
	}
	return false;
}

const char *delta_checksum_name(enum delta_checksum checksum)
{
	ASSERT((unsigned)checksum < DELTA_CHECKSUMS);
	return checksum_names[checksum];
}

bool delta_checksum_parse(struct span name, enum delta_checksum *out_checksum)
{
	if (span_equal_text(name, "alder32")) {
		*out_checksum = DELTA_ADLER32;
		return true;
	}
	for (unsigned i = 0; i < DELTA_CHECKSUMS; i++) {
		if (span_equal_text(name, checksum_names[i])) {
			*out_checksum = (enum delta_checksum)i;
			return true;
		}
	}
	return false;
}

int delta_diff(
	const struct delta_diff_params *params, struct delta_stats *out_stats, struct error *err)
{
	struct model_files base_files = {0};
	struct model_files next_files = {0};
	ASSERT(params->base != NULL && params->next != NULL && params->out != NULL);
	struct tensor_source *const base = checkpoint_source_new(params->base);
	struct tensor_source *const next = checkpoint_source_new(params->next);
	int result = model_files_of(&base_files, params->base, err);
	if (result == 0)
		result = model_files_of(&next_files, params->next, err);
	if (result == 0) {
		const struct delta_encode_params encode = {
			.base = base,
			.next = next,
			.base_files = &base_files,
			.next_files = &next_files,
			.format = params->format,
			.checksum = params->checksum,
			.base_digests = params->base_tensor_digests,
			.next_digests = params->next_tensor_digests,
			.model_version = params->model_version,
			.has_base_step = params->has_base_step,
			.base_step = params->base_step,
			.threads = params->threads,
			.watch = params->watch,
			.out = params->out,
			.files = params->files,
		};
		result = delta_encode(&encode, out_stats, err);
	}
	model_files_release(&base_files);
	model_files_release(&next_files);
	tensor_source_free(base);
	tensor_source_free(next);
	return result;
}

int delta_inspect(const char *path, struct delta_summary *out_summary, struct error *err)
{
	struct delta_reader *const reader = delta_reader_open(path, err);
	if (reader == NULL)
		return -1;
	*out_summary = delta_reader_checkpoint(reader) == NULL ? summarise(reader)
							       : (struct delta_summary){0};
	delta_reader_close(reader);
	return 0;
}

static struct delta_summary summarise(const struct delta_reader *reader)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	struct delta_summary summary = {
		.is_delta = true,
		.format = delta_reader_format(reader),
		.has_digests = metadata->has_base_digest && metadata->has_result_digest,
		.has_step = metadata->has_step && metadata->step > 0,
		.step = metadata->step,
		.has_base_step = metadata->has_base_step,
		.base_step = metadata->base_step,
		.bytes = delta_reader_bytes(reader),
		.changed_tensors = delta_reader_changed_tensors(reader),
	};
	summary.has_changed_elements = delta_reader_changed(reader, &summary.changed_elements);
	if (summary.has_digests) {
		summary.base_digest = metadata->base_digest;
		summary.result_digest = metadata->result_digest;
	}
	return summary;
}
