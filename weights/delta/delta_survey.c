/* Without a base, the counts are those of the delta's entries. With one, a walk over base and
 * result counts the differences; one thread walks each tensor, so its row needs no lock. */
#include "weights/delta/delta_survey.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta/delta_source.h"
#include "weights/model/tensor_pass.h"

struct walk {
	const struct schema *schema;
	struct delta_survey_row **rows; /* one for each tensor; NULL: unchanged */
};

static void list_rows(struct delta_survey *survey, const struct delta_reader *reader);
static uint64_t payload_bytes(const struct delta_entry *entry);
static int walk_base(struct delta_survey *survey, const struct delta_reader *reader,
	struct tensor_source *base, unsigned threads, struct error *err);
static int delta_survey_count_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);
static void add_up(struct delta_survey *survey);

int delta_survey_make(struct delta_survey *survey, const struct delta_reader *reader,
	struct tensor_source *base, unsigned threads, struct error *err)
{
	*survey = (struct delta_survey){.has_base = base != NULL};
	list_rows(survey, reader);
	if (base != NULL && walk_base(survey, reader, base, threads, err) != 0)
		return -1;
	add_up(survey);
	if (base == NULL) {
		uint64_t changed = 0;
		survey->elements = delta_reader_metadata(reader)->total_elements;
		if (delta_reader_changed(reader, &changed))
			survey->total.stats.changed = changed;
	}
	return 0;
}

void delta_survey_release(struct delta_survey *survey)
{
	free(survey->rows);
	*survey = (struct delta_survey){0};
}

static void list_rows(struct delta_survey *survey, const struct delta_reader *reader)
{
	survey->rows = memory_new_array(delta_reader_count(reader), sizeof(survey->rows[0]));
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		const struct delta_entry *const entry = delta_reader_entry(reader, i);
		if (entry->kind == DELTA_ENTRY_SPARSE && entry->count == 0)
			continue;
		survey->rows[survey->count++] = (struct delta_survey_row){
			.name = entry->name,
			.payload_bytes = payload_bytes(entry),
			.stats = {.changed = entry->count},
		};
	}
}

/* Computed for sparse entries, because PULSE's are still packed when there is no base. */
static uint64_t payload_bytes(const struct delta_entry *entry)
{
	if (entry->kind != DELTA_ENTRY_SPARSE)
		return entry->data.len + entry->values.len;
	return entry->count * (index_code_bytes(&entry->code) + dtype_bits(entry->dtype) / 8);
}

static int walk_base(struct delta_survey *survey, const struct delta_reader *reader,
	struct tensor_source *base, unsigned threads, struct error *err)
{
	struct tensor_source *const next = delta_source_new(reader, base, err);
	if (next == NULL)
		return -1;
	struct walk walk = {.schema = base->schema,
		.rows = memory_new_array(schema_count(base->schema), sizeof(walk.rows[0]))};
	for (size_t i = 0; i < survey->count; i++) {
		const ptrdiff_t at = schema_find(base->schema, survey->rows[i].name);
		ASSERT(at >= 0); /* delta_source_new has bound all entries */
		survey->rows[i].dtype = schema_tensor(base->schema, (size_t)at)->dtype;
		survey->rows[i].stats = (struct block_code_stats){0};
		walk.rows[at] = &survey->rows[i];
	}
	for (size_t i = 0; i < schema_count(base->schema); i++)
		survey->elements += schema_tensor(base->schema, i)->bytes * 8 /
			dtype_bits(schema_tensor(base->schema, i)->dtype);
	const struct tensor_pass pass = {
		.base = base,
		.next = next,
		.threads = threads,
		.keeps_tensors = true,
		.block = delta_survey_count_block,
		.state = &walk,
	};
	const int result = tensor_pass_run(&pass, err);
	free(walk.rows);
	tensor_source_free(next);
	return result;
}

static int delta_survey_count_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	const struct walk *const walk = state;
	struct delta_survey_row *const row = walk->rows[block->tensor];
	(void)worker;
	(void)err;
	if (row != NULL)
		block_code_count(row->dtype, block->base, block->next, &row->stats);
	return 0;
}

static void add_up(struct delta_survey *survey)
{
	struct delta_survey_row *const total = &survey->total;
	for (size_t i = 0; i < survey->count; i++) {
		const struct delta_survey_row *const row = &survey->rows[i];
		total->payload_bytes += row->payload_bytes;
		total->stats.elements += row->stats.elements;
		total->stats.changed += row->stats.changed;
		for (size_t k = 0;
			k < sizeof(total->stats.ulp_steps) / sizeof(total->stats.ulp_steps[0]); k++)
			total->stats.ulp_steps[k] += row->stats.ulp_steps[k];
	}
}
