/* The metadata that a delta's writer makes. A list copies its pairs into an arena, so callers may
 * build values in memory of their own. One printer for each family of formats adds that family's
 * keys in the order that its readers know; digests and files of ours follow. */
#include "weights/delta/delta_metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "weights/model/relative_path.h"

/* A safetensors header has at most 100 MB, so a list of values that is larger cannot be written. */
enum { LIST_CAP_BYTES = 256 << 20 };

static void print_ulp_class(struct delta_metadata_list *list, const struct delta_facts *facts);
static void add_text(struct delta_metadata_list *list, const char *key, const char *value);
static void add_u64(struct delta_metadata_list *list, const char *key, uint64_t value);
static void print_counts(struct delta_metadata_list *list, const struct delta_stats *stats);
static void print_slime(struct delta_metadata_list *list, const struct delta_facts *facts);
static void print_trl(struct delta_metadata_list *list, const struct delta_facts *facts);
static void add_python_float(struct delta_metadata_list *list, const char *key, double value);
static double sparsity(const struct delta_stats *stats);
static void add_digest(
	struct delta_metadata_list *list, const char *key, const struct digest128 *digest);
static void print_file(const struct delta_result_file *file, struct buffer *out);

void delta_metadata_list_init(struct delta_metadata_list *list)
{
	list->arena = arena_new(LIST_CAP_BYTES);
	buffer_init(&list->items, LIST_CAP_BYTES);
}

void delta_metadata_list_release(struct delta_metadata_list *list)
{
	arena_free(list->arena);
	buffer_release(&list->items);
	list->arena = NULL;
}

void delta_metadata_list_add(struct delta_metadata_list *list, const char *key, struct span value)
{
	delta_metadata_list_add_span(list, span_text(key), value);
}

void delta_metadata_list_add_span(
	struct delta_metadata_list *list, struct span key, struct span value)
{
	const struct safetensors_metadata item = {
		.key = arena_copy(list->arena, key),
		.value = arena_copy(list->arena, value),
	};
	buffer_add(&list->items, &item, sizeof(item));
}

size_t delta_metadata_list_count(const struct delta_metadata_list *list)
{
	return list->items.len / sizeof(struct safetensors_metadata);
}

const struct safetensors_metadata *delta_metadata_list_items(const struct delta_metadata_list *list)
{
	return (const struct safetensors_metadata *)list->items.data;
}

int delta_metadata_list_check(const struct delta_metadata_list *list, struct error *err)
{
	if (arena_overflowed(list->arena))
		return error_set(err, ERROR_TOO_LARGE,
			"the delta's metadata would have over %d bytes", LIST_CAP_BYTES);
	return buffer_check(&list->items, "the delta's metadata", err);
}

void delta_metadata_print(struct delta_metadata_list *list, const struct delta_facts *facts)
{
	static void (*const printers[DELTA_FORMATS])(
		struct delta_metadata_list *, const struct delta_facts *) = {
		[DELTA_ULP_CLASS] = print_ulp_class,
		[DELTA_SLIME_XOR] = print_slime,
		[DELTA_SLIME_OVERWRITE] = print_slime,
		[DELTA_TRL_GAP] = print_trl,
		[DELTA_TRL_RAW] = print_trl,
		[DELTA_TRL_V1] = print_trl,
	};
	ASSERT((unsigned)facts->format < DELTA_FORMATS && printers[facts->format] != NULL);
	printers[facts->format](list, facts);
	if (!facts->has_digests)
		return;
	add_digest(list, "base_digest", &facts->stats->base_digest);
	add_digest(list, "result_digest", &facts->stats->result_digest);
}

void delta_metadata_print_files(struct delta_metadata_list *list, bool result_is_folder,
	const struct delta_result_file *files, size_t count)
{
	struct buffer text;
	buffer_init(&text, DELTA_METADATA_FILES_MAX_BYTES);
	buffer_add_byte(&text, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_add_byte(&text, ',');
		print_file(&files[i], &text);
	}
	buffer_add_byte(&text, ']');
	/* 30,000 files with paths of 1 KiB are within the limit. */
	ASSERT(!buffer_failed(&text));
	add_text(list, "result_kind", result_is_folder ? "folder" : "file");
	delta_metadata_list_add(list, "result_files", buffer_span(&text));
	buffer_release(&text);
	for (size_t i = 0; i < count; i++) {
		if (!files[i].is_shard || !files[i].from_delta)
			continue;
		char key[sizeof(DELTA_METADATA_HEADER_PREFIX) + RELATIVE_PATH_MAX_BYTES];
		snprintf(key, sizeof(key), "%s%.*s", DELTA_METADATA_HEADER_PREFIX,
			(int)files[i].path.len, files[i].path.data);
		delta_metadata_list_add(list, key, files[i].header);
	}
}

static void print_ulp_class(struct delta_metadata_list *list, const struct delta_facts *facts)
{
	add_text(list, "delta_encoding", "ulp-class");
	add_text(list, "compression_format", "none");
	if (facts->in_shard)
		return;
	if (facts->step > 0)
		add_u64(list, "step", facts->step);
	if (facts->has_base_step)
		add_u64(list, "base_step", facts->base_step);
	print_counts(list, facts->stats);
}

static void add_text(struct delta_metadata_list *list, const char *key, const char *value)
{
	delta_metadata_list_add(list, key, span_text(value));
}

static void add_u64(struct delta_metadata_list *list, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	add_text(list, key, text);
}

static void print_counts(struct delta_metadata_list *list, const struct delta_stats *stats)
{
	add_u64(list, "total_changed_elements", stats->changed_elements);
	add_u64(list, "total_elements", stats->elements);
}

/* The first five keys are those that every reader of such directories needs. */
static void print_slime(struct delta_metadata_list *list, const struct delta_facts *facts)
{
	char version[24];
	const uint64_t step = facts->step > 0 ? facts->step : 1;
	snprintf(version, sizeof(version), "%06llu", (unsigned long long)step);
	add_text(list, "version", version);
	snprintf(version, sizeof(version), "%06llu",
		(unsigned long long)(facts->has_base_step ? facts->base_step : step - 1));
	add_text(list, "base_version", version);
	add_text(list, "delta_encoding", facts->format == DELTA_SLIME_XOR ? "xor" : "overwrite");
	add_text(list, "compression_format", "zstd");
	add_text(list, "checksum_format", delta_checksum_name(facts->checksum));
	if (facts->stats->elements > 0)
		print_counts(list, facts->stats);
}

static void print_trl(struct delta_metadata_list *list, const struct delta_facts *facts)
{
	static const char *const encodings[DELTA_FORMATS] = {
		[DELTA_TRL_GAP] = "gap_delta", [DELTA_TRL_RAW] = "raw"};
	add_text(list, "format", "sparse_weight_patch");
	add_text(list, "version", "1");
	add_text(list, "sparse", "True");
	add_u64(list, "model_version", facts->step);
	if (encodings[facts->format] != NULL)
		add_text(list, "encoding", encodings[facts->format]);
	if (facts->has_base_step)
		add_u64(list, "base_step", facts->base_step);
	add_u64(list, "num_changed_params", facts->stats->changed_tensors);
	print_counts(list, facts->stats);
	add_python_float(list, "sparsity", sparsity(facts->stats));
}

/* Adds the shortest decimal that reads back as the same double, with ".0" where Python puts it. For
 * values from 1e-16 to 1 this is Python's str(float). */
static void add_python_float(struct delta_metadata_list *list, const char *key, double value)
{
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) >= value && strtod(text, NULL) <= value)
			break;
	}
	char whole[sizeof(text) + 2];
	snprintf(whole, sizeof(whole), "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
	add_text(list, key, whole);
}

static double sparsity(const struct delta_stats *stats)
{
	return stats->elements > 0 ? 1.0 - (double)stats->changed_elements / (double)stats->elements
				   : 1.0;
}

static void add_digest(
	struct delta_metadata_list *list, const char *key, const struct digest128 *digest)
{
	char text[DIGEST128_TEXT_BYTES];
	digest128_format(digest, text);
	add_text(list, key, text);
}

static void print_file(const struct delta_result_file *file, struct buffer *out)
{
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&file->digest, digest);
	buffer_add_text(out, "{\"path\":");
	json_scan_quote(file->path, out);
	buffer_format(out, ",\"size\":%llu,\"kind\":\"%s\",\"from\":\"%s\",\"digest\":\"%s\"}",
		(unsigned long long)file->size, file->is_shard ? "shard" : "file",
		file->from_delta ? "delta" : "base", digest);
}
