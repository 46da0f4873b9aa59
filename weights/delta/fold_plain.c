/* The deltas are opened and checked as a chain. Their entries' names and sizes make a schema and
 * one shard that holds all tensors, so the layout can work as it does for a real checkpoint. The
 * family fills the payload. Files, steps and digests of the result are those that the first and the
 * last delta give. */
#include "weights/delta/fold_plain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/delta_layout.h"
#include "weights/model/parallel.h"
#include "weights/model/zero_source.h"

#define TEXT_CAP_BYTES (UINT64_C(4) << 30)

struct sized_name {
	struct span name;
	uint64_t elements;
};

static int run(struct fold_plain *plain, struct delta_stats *stats, struct error *err);
static int open_readers(struct fold_plain *plain, struct error *err);
static int check_reader(const struct fold_plain *plain, size_t number, struct error *err);
static const struct delta_metadata *metadata_of(const struct fold_plain *plain, size_t number);
static const struct fold_family *family_of(const struct delta_reader *reader);
static int unsupported(const char *what, struct error *err);
static bool changes_files(const struct delta_metadata *metadata);
static int check_link(const struct fold_plain *plain, size_t number, struct error *err);
static int make_schema(
	struct fold_plain *plain, const struct fold_family *family, struct error *err);
static int list_names(const struct fold_plain *plain, const struct fold_family *family,
	struct buffer *out, struct error *err);
static int fold_plain_order_names(const void *left, const void *right);
static void print_row(const struct sized_name *row, enum dtype dtype, struct buffer *out);
static int make_shard(const struct schema *schema, struct buffer *header, struct model_file *file,
	struct error *err);
static enum delta_format own_format(const struct delta_reader *reader);
static int fold_all(struct fold_plain *plain, const struct fold_family *family,
	const struct model_files *files, struct delta_stats *stats, struct error *err);
static int write_delta(struct fold_plain *plain, struct staging *staging, struct delta_stats *stats,
	struct error *err);
static void take_facts(struct fold_plain *plain, struct delta_stats *stats);
static int fold_plain_write_tensor(void *state, size_t item, unsigned worker, struct error *err);

int fold_plain(const struct fold_params *params, struct delta_stats *out_stats, struct error *err)
{
	struct fold_plain plain = {.params = params};
	struct delta_stats stats = {0};
	ASSERT(params->base == NULL && params->count >= 1);
	const int result = run(&plain, &stats, err);
	if (result == 0)
		*out_stats = stats;
	for (size_t i = 0; plain.readers != NULL && i < params->count; i++)
		delta_reader_close(plain.readers[i]);
	tensor_source_free(plain.zeros);
	schema_free(plain.schema);
	free(plain.readers);
	return result;
}

static int run(struct fold_plain *plain, struct delta_stats *stats, struct error *err)
{
	struct buffer header;
	struct model_file shard = {0};
	if (open_readers(plain, err) != 0)
		return -1;
	const struct fold_family *const family = family_of(plain->readers[0]);
	ASSERT(family != NULL); /* check_reader refuses the others */
	if (make_schema(plain, family, err) != 0)
		return -1;
	buffer_init(&header, TEXT_CAP_BYTES);
	int result = make_shard(plain->schema, &header, &shard, err);
	if (result == 0) {
		const struct model_files files = {
			.is_folder = delta_reader_is_folder(plain->readers[0]),
			.files = &shard,
			.count = 1};
		plain->zeros = zero_source_new(plain->schema);
		plain->encode = (struct delta_encode_params){
			.base = plain->zeros,
			.next = plain->zeros,
			.next_files = &files,
			.format = own_format(plain->readers[0]),
			.threads = plain->params->threads,
			.out = plain->params->out,
			.files = plain->params->files,
		};
		result = fold_all(plain, family, &files, stats, err);
	}
	safetensors_free(shard.parsed);
	buffer_release(&header);
	return result;
}

static int open_readers(struct fold_plain *plain, struct error *err)
{
	plain->readers = memory_new_array(plain->params->count, sizeof(plain->readers[0]));
	for (size_t i = 0; i < plain->params->count; i++) {
		plain->readers[i] = delta_reader_open(plain->params->deltas[i], err);
		if (plain->readers[i] == NULL || check_reader(plain, i, err) != 0)
			return -1;
	}
	return 0;
}

static int check_reader(const struct fold_plain *plain, size_t number, struct error *err)
{
	const struct delta_metadata *const metadata = metadata_of(plain, number);
	const struct fold_family *const family = family_of(plain->readers[number]);
	if (family == NULL)
		return unsupported("only slime-xor and TRL deltas fold without a base", err);
	if (family != family_of(plain->readers[0]))
		return unsupported("deltas of two kinds do not fold without a base", err);
	if (changes_files(metadata))
		return unsupported(
			"a delta that changes files or headers does not fold without a base", err);
	if (metadata->has_files != metadata_of(plain, 0)->has_files ||
		metadata->checksum != metadata_of(plain, 0)->checksum)
		return unsupported(
			"deltas that describe their results differently do not fold without a base",
			err);
	return number > 0 ? check_link(plain, number, err) : 0;
}

static const struct delta_metadata *metadata_of(const struct fold_plain *plain, size_t number)
{
	return delta_reader_metadata(plain->readers[number]);
}

static const struct fold_family *family_of(const struct delta_reader *reader)
{
	const enum delta_encoding encoding = delta_reader_metadata(reader)->encoding;
	if (encoding == DELTA_ENCODING_XOR)
		return &fold_family_xor;
	return encoding <= DELTA_ENCODING_GAP ? &fold_family_trl : NULL;
}

static int unsupported(const char *what, struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED, "%s: give --base", what);
}

static bool changes_files(const struct delta_metadata *metadata)
{
	for (size_t i = 0; i < metadata->file_count; i++)
		if (metadata->files[i].from_delta)
			return true;
	return false;
}

static int check_link(const struct fold_plain *plain, size_t number, struct error *err)
{
	const struct delta_metadata *const before = metadata_of(plain, number - 1);
	const struct delta_metadata *const after = metadata_of(plain, number);
	const char *const *const paths = plain->params->deltas;
	const bool digests = before->has_result_digest && after->has_base_digest;
	if (digests && !digest128_equal(&before->result_digest, &after->base_digest))
		return error_set(err, ERROR_WRONG_BASE,
			"'%s' was not made from the result of '%s': a delta is missing, or the"
			" order is wrong",
			paths[number], paths[number - 1]);
	if (!digests && delta_metadata_ids_differ(before, after))
		return error_set(err, ERROR_WRONG_BASE,
			"'%s' was made from another version than the one that '%s' gives",
			paths[number], paths[number - 1]);
	if (!digests && before->has_step && after->has_base_step &&
		before->step != after->base_step)
		return error_set(err, ERROR_WRONG_BASE,
			"'%s' was made from step %" PRIu64 ", and '%s' gives step %" PRIu64,
			paths[number], after->base_step, paths[number - 1], before->step);
	if (!digests && before->has_step && after->has_step && after->step > 0 &&
		after->step <= before->step)
		return error_set(err, ERROR_WRONG_BASE,
			"'%s' is step %" PRIu64 " and does not follow '%s', step %" PRIu64,
			paths[number], after->step, paths[number - 1], before->step);
	return 0;
}

/* Makes the schema of all names that occur, each with its largest size. */
static int make_schema(
	struct fold_plain *plain, const struct fold_family *family, struct error *err)
{
	struct buffer names;
	struct buffer text;
	buffer_init(&names, TEXT_CAP_BYTES);
	buffer_init(&text, TEXT_CAP_BYTES);
	int result = list_names(plain, family, &names, err);
	struct sized_name *const rows = (struct sized_name *)names.data;
	const size_t count = result == 0 ? names.len / sizeof(rows[0]) : 0;
	if (count > 0)
		qsort(rows, count, sizeof(rows[0]), fold_plain_order_names);
	for (size_t i = 0; i < count && result == 0; i++) {
		const bool same = i + 1 < count && span_equal(rows[i].name, rows[i + 1].name);
		if (same && family->exact && rows[i].elements != rows[i + 1].elements)
			result = error_set(err, ERROR_INVALID, "tensor '%.*s' has two sizes",
				(int)(rows[i].name.len < 120 ? rows[i].name.len : 120),
				rows[i].name.data);
		else if (same)
			rows[i + 1].elements = rows[i].elements > rows[i + 1].elements
				? rows[i].elements
				: rows[i + 1].elements;
		else
			print_row(&rows[i], family->dtype, &text);
	}
	if (result == 0)
		result = buffer_check(&text, "the table of tensors", err);
	if (result == 0)
		plain->schema = schema_parse(buffer_span(&text), err);
	buffer_release(&names);
	buffer_release(&text);
	return plain->schema != NULL ? 0 : -1;
}

static int list_names(const struct fold_plain *plain, const struct fold_family *family,
	struct buffer *out, struct error *err)
{
	for (size_t i = 0; i < plain->params->count; i++) {
		for (size_t k = 0; k < delta_reader_count(plain->readers[i]); k++) {
			const struct delta_entry *const entry =
				delta_reader_entry(plain->readers[i], k);
			struct sized_name row = {.name = entry->name};
			if (span_find(entry->name, 0) >= 0)
				return error_set(err, ERROR_INVALID,
					"a tensor of the delta has a zero byte in its name");
			if (family->size(entry, &row.elements, err) != 0)
				return error_wrap(err, "tensor '%.*s'",
					(int)(entry->name.len < 120 ? entry->name.len : 120),
					entry->name.data);
			buffer_add(out, &row, sizeof(row));
		}
	}
	return buffer_check(out, "the table of tensors", err);
}

static int fold_plain_order_names(const void *left, const void *right)
{
	return span_compare(
		((const struct sized_name *)left)->name, ((const struct sized_name *)right)->name);
}

static void print_row(const struct sized_name *row, enum dtype dtype, struct buffer *out)
{
	buffer_add_span(out, row->name);
	buffer_add_byte(out, 0);
	buffer_add_text(out, dtype_name(dtype));
	buffer_add_byte(out, 0);
	buffer_format(out, "%" PRIu64, row->elements);
	buffer_add_byte(out, 0);
}

/* Makes one shard that holds all tensors, because the layout needs one. */
static int make_shard(const struct schema *schema, struct buffer *header, struct model_file *file,
	struct error *err)
{
	struct buffer table;
	buffer_init(&table, TEXT_CAP_BYTES);
	for (size_t i = 0; i < schema_count(schema); i++) {
		const struct schema_tensor *const from = schema_tensor(schema, i);
		const struct safetensors_tensor tensor = {.name = from->name,
			.dtype = from->dtype,
			.rank = from->rank,
			.shape = from->shape};
		buffer_add(&table, &tensor, sizeof(tensor));
	}
	int result = buffer_check(&table, "the table of tensors", err);
	if (result == 0)
		result = safetensors_write_header((struct safetensors_tensor *)table.data,
			schema_count(schema), NULL, 0, header, err);
	buffer_release(&table);
	if (result != 0)
		return -1;
	*file = (struct model_file){.path = span_text("model.safetensors"),
		.is_shard = true,
		.size = header->len + schema_bytes(schema)};
	file->json = span_slice(buffer_span(header), 8, header->len);
	file->parsed =
		safetensors_parse(file->json, schema_bytes(schema), "model.safetensors", err);
	return file->parsed != NULL ? 0 : -1;
}

/* The format that the fold writes. SkyRL's is only read; slime-xor has the same tensors. */
static enum delta_format own_format(const struct delta_reader *reader)
{
	const enum delta_format format = delta_reader_format(reader);
	return format == DELTA_SKYRL_XOR ? DELTA_SLIME_XOR : format;
}

static int fold_all(struct fold_plain *plain, const struct fold_family *family,
	const struct model_files *files, struct delta_stats *stats, struct error *err)
{
	const struct fold_params *const params = plain->params;
	const struct file_ops *const ops = params->files != NULL ? params->files : file_system();
	const bool is_folder = delta_layout_is_folder(plain->encode.format, files);
	struct staging *const staging = staging_begin(ops, params->out, is_folder, err);
	if (staging == NULL)
		return -1;
	payload_init(&plain->payload, &plain->encode, ops, staging,
		parallel_workers(params->threads, schema_count(plain->schema)));
	int result = family->fill(plain, err);
	if (result == 0)
		result = write_delta(plain, staging, stats, err);
	payload_release(&plain->payload);
	staging_free(staging);
	return result;
}

static int write_delta(struct fold_plain *plain, struct staging *staging, struct delta_stats *stats,
	struct error *err)
{
	const struct delta_metadata *const last = metadata_of(plain, plain->params->count - 1);
	payload_sum(&plain->payload, stats);
	take_facts(plain, stats);
	struct delta_layout layout = {
		.payload = &plain->payload,
		.staging = staging,
		.params = &plain->encode,
		.stats = stats,
		.has_digests = metadata_of(plain, 0)->has_base_digest && last->has_result_digest,
		.is_told = true,
		.told = last->has_files ? last->files : NULL,
		.told_count = last->file_count,
		.told_folder = last->result_is_folder,
	};
	if (delta_layout_make(&layout, err) != 0)
		return -1;
	const size_t count = schema_count(plain->schema);
	const unsigned workers = parallel_workers(plain->payload.worker_count, count);
	return parallel_run(workers, count, fold_plain_write_tensor, &plain->payload, err) != 0
		? -1
		: staging_commit(staging, err);
}

static void take_facts(struct fold_plain *plain, struct delta_stats *stats)
{
	const struct delta_metadata *const first = metadata_of(plain, 0);
	const struct delta_metadata *const last = metadata_of(plain, plain->params->count - 1);
	plain->encode.model_version = last->has_step ? last->step : 0;
	plain->encode.has_base_step = first->has_base_step;
	plain->encode.base_step = first->base_step;
	plain->encode.checksum = last->checksum;
	/* The walk over XOR entries saw bytes and not elements, so the fold gives no count. */
	stats->elements = last->encoding == DELTA_ENCODING_XOR ? 0 : last->total_elements;
	if (first->has_base_digest && last->has_result_digest) {
		stats->base_digest = first->base_digest;
		stats->result_digest = last->result_digest;
	}
}

static int fold_plain_write_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	struct payload *const payload = state;
	return payload->tensors[item].changed > 0
		? payload->ops->write(payload, worker, &payload->tensors[item], err)
		: 0;
}
