/* The objects of all parts are placed in one array, each with the number of its part, and sorted by
 * name; files and tensors likewise. Then repeats are neighbours, and a message can name both
 * parts. */
#include "storage/runs/step_part_set.h"

#include <stdlib.h>
#include <string.h>

struct placed_object {
	struct step_object object;
	uint64_t part;
};
struct placed_file {
	struct step_file file;
	uint64_t part;
};
struct placed_tensor {
	struct part_tensor tensor;
	uint64_t part;
};
struct step_part_set {
	struct arena *arena;
	uint64_t parts;
	const struct part_message **messages;
	uint64_t *numbers;
	size_t count;
};

static bool same_forms(const struct step_message *a, const struct step_message *b);
static int merge_form(
	struct step_part_set *set, size_t form, struct step_form *out, struct error *err);
static void merge_publish_ms(const struct step_part_set *set, struct step_message *out);
static int too_large(struct error *err);
static int step_part_set_compare_objects(const void *a, const void *b);
static int twice(
	const char *what, struct span name, uint64_t first, uint64_t second, struct error *err);
static int merge_files(struct step_part_set *set, struct step_message *out, struct error *err);
static int step_part_set_compare_files(const void *a, const void *b);
static bool same_file(const struct step_file *a, const struct step_file *b);
static struct placed_tensor *place_tensors(const struct step_part_set *set, size_t *out_count);
static int step_part_set_compare_tensors(const void *a, const void *b);
static int match(const struct placed_tensor *placed, size_t count, const struct schema *schema,
	struct digest128 *digests, struct error *err);
static int tensor_fault(struct span name, const char *what, struct error *err);

struct step_part_set *step_part_set_new(uint64_t parts, struct arena *arena)
{
	ASSERT(parts > 0 && parts <= PARTS_OF_STEP_MAX);
	struct step_part_set *const set = arena_take(arena, sizeof(*set));
	if (set == NULL)
		return NULL;
	set->arena = arena;
	set->parts = parts;
	set->messages = arena_take_array(arena, parts + 1, sizeof(*set->messages));
	set->numbers = arena_take_array(arena, parts + 1, sizeof(*set->numbers));
	return set->messages == NULL || set->numbers == NULL ? NULL : set;
}

int step_part_set_add(struct step_part_set *set, uint64_t number, const struct part_message *part,
	struct error *err)
{
	if (set->count == set->parts)
		return error_set(err, ERROR_PARTS_MISMATCH, "There are more than %llu parts.",
			(unsigned long long)set->parts);
	if (set->count > 0 && !same_forms(&set->messages[0]->step, &part->step))
		return error_set(err, ERROR_PARTS_MISMATCH,
			"Part %llu has other forms than part %llu.", (unsigned long long)number,
			(unsigned long long)set->numbers[0]);
	set->messages[set->count] = part;
	set->numbers[set->count++] = number;
	return 0;
}

int step_part_set_merge(struct step_part_set *set, struct step_message *out, struct error *err)
{
	if (set->count != set->parts)
		return error_set(err, ERROR_BUSY, "Only %zu of %llu parts are there.", set->count,
			(unsigned long long)set->parts);
	ASSERT(set->count > 0);
	*out = set->messages[0]->step;
	merge_publish_ms(set, out);
	for (size_t form = 0; form < out->form_count; form++)
		if (merge_form(set, form, &out->forms[form], err) != 0)
			return -1;
	return merge_files(set, out, err);
}

int step_part_set_fill(struct step_part_set *set, const struct schema *schema,
	struct step_message *step, struct error *err)
{
	size_t count;
	const struct placed_tensor *const placed = place_tensors(set, &count);
	struct digest128 *const digests =
		arena_take_array(set->arena, schema_count(schema) + 1, sizeof(*digests));
	if (placed == NULL || digests == NULL)
		return too_large(err);
	if (match(placed, count, schema, digests, err) != 0)
		return -1;
	step->tensor_digests = span_of(digests, schema_count(schema) * sizeof(*digests));
	step->digest = schema_checkpoint_digest(schema, digests);
	return 0;
}

/* The step took as long as the slowest of its parts. */
static void merge_publish_ms(const struct step_part_set *set, struct step_message *out)
{
	for (size_t i = 1; i < set->count; i++) {
		const struct step_message *const step = &set->messages[i]->step;
		if (!step->has_publish_ms ||
			(out->has_publish_ms && out->publish_ms >= step->publish_ms))
			continue;
		out->has_publish_ms = true;
		out->publish_ms = step->publish_ms;
	}
}

static bool same_forms(const struct step_message *a, const struct step_message *b)
{
	bool same = a->form_count == b->form_count;
	for (size_t i = 0; same && i < a->form_count; i++)
		same = a->forms[i].kind == b->forms[i].kind &&
			span_equal(a->forms[i].format, b->forms[i].format);
	return same;
}

static int merge_form(
	struct step_part_set *set, size_t form, struct step_form *out, struct error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < set->count; i++)
		total += set->messages[i]->step.forms[form].object_count;
	if (total > STEP_OBJECTS_MAX)
		return error_set(err, ERROR_PARTS_MISMATCH,
			"The parts have %zu objects in one form, over the limit of %d.", total,
			STEP_OBJECTS_MAX);
	struct placed_object *const placed =
		arena_take_array(set->arena, total + 1, sizeof(*placed));
	struct step_object *const objects =
		arena_take_array(set->arena, total + 1, sizeof(*objects));
	if (placed == NULL || objects == NULL)
		return too_large(err);
	size_t at = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->messages[i]->step.forms[form].object_count; j++)
			placed[at++] = (struct placed_object){
				set->messages[i]->step.forms[form].objects[j], set->numbers[i]};
	ASSERT(at == total);
	qsort(placed, total, sizeof(*placed), step_part_set_compare_objects);
	for (size_t i = 0; i < total; i++) {
		if (i > 0 && span_equal(placed[i - 1].object.name, placed[i].object.name))
			return twice("object", placed[i].object.name, placed[i - 1].part,
				placed[i].part, err);
		objects[i] = placed[i].object;
	}
	*out = set->messages[0]->step.forms[form];
	out->objects = objects;
	out->object_count = total;
	return 0;
}

static int too_large(struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "The parts of the step are too large together.");
}

static int step_part_set_compare_objects(const void *a, const void *b)
{
	const struct placed_object *const left = a;
	const struct placed_object *const right = b;
	return span_compare(left->object.name, right->object.name);
}

static int twice(
	const char *what, struct span name, uint64_t first, uint64_t second, struct error *err)
{
	return error_set(err, ERROR_PARTS_MISMATCH,
		"The %s '%.*s' is in part %llu and in part %llu.", what,
		(int)span_slice(name, 0, 200).len, (const char *)name.data,
		(unsigned long long)first, (unsigned long long)second);
}

static int merge_files(struct step_part_set *set, struct step_message *out, struct error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < set->count; i++)
		total += set->messages[i]->step.file_count;
	struct placed_file *const placed = arena_take_array(set->arena, total + 1, sizeof(*placed));
	struct step_file *const files = arena_take_array(set->arena, total + 1, sizeof(*files));
	if (placed == NULL || files == NULL)
		return too_large(err);
	size_t at = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->messages[i]->step.file_count; j++)
			placed[at++] = (struct placed_file){
				set->messages[i]->step.files[j], set->numbers[i]};
	ASSERT(at == total);
	qsort(placed, total, sizeof(*placed), step_part_set_compare_files);
	size_t kept = 0;
	for (size_t i = 0; i < total; i++) {
		const bool repeated =
			i > 0 && span_equal(placed[i - 1].file.path, placed[i].file.path);
		if (repeated && !same_file(&placed[i - 1].file, &placed[i].file))
			return twice("file", placed[i].file.path, placed[i - 1].part,
				placed[i].part, err);
		if (!repeated)
			files[kept++] = placed[i].file;
	}
	if (kept > STEP_OBJECTS_MAX)
		return error_set(err, ERROR_PARTS_MISMATCH,
			"The parts have %zu files, over the limit of %d.", kept, STEP_OBJECTS_MAX);
	out->files = files;
	out->file_count = kept;
	return 0;
}

static int step_part_set_compare_files(const void *a, const void *b)
{
	const struct placed_file *const left = a;
	const struct placed_file *const right = b;
	return span_compare(left->file.path, right->file.path);
}

static bool same_file(const struct step_file *a, const struct step_file *b)
{
	return a->size == b->size && digest128_equal(&a->digest, &b->digest);
}

static struct placed_tensor *place_tensors(const struct step_part_set *set, size_t *out_count)
{
	size_t total = 0;
	size_t at = 0;
	for (size_t i = 0; i < set->count; i++)
		total += set->messages[i]->tensor_count;
	struct placed_tensor *const placed =
		arena_take_array(set->arena, total + 1, sizeof(*placed));
	for (size_t i = 0; placed != NULL && i < set->count; i++)
		for (size_t j = 0; j < set->messages[i]->tensor_count; j++)
			placed[at++] = (struct placed_tensor){
				set->messages[i]->tensors[j], set->numbers[i]};
	if (placed != NULL)
		qsort(placed, total, sizeof(*placed), step_part_set_compare_tensors);
	*out_count = total;
	return placed;
}

static int step_part_set_compare_tensors(const void *a, const void *b)
{
	const struct placed_tensor *const left = a;
	const struct placed_tensor *const right = b;
	const int order = span_compare(left->tensor.name, right->tensor.name);
	return order != 0 ? order : left->part < right->part ? -1 : left->part > right->part;
}

/* Both lists are sorted by name, so the first difference is the fault. */
static int match(const struct placed_tensor *placed, size_t count, const struct schema *schema,
	struct digest128 *digests, struct error *err)
{
	const size_t wanted = schema_count(schema);
	for (size_t i = 0; i < count || i < wanted; i++) {
		const struct span name =
			i < wanted ? schema_tensor(schema, i)->name : span_of(NULL, 0);
		const int order = i >= count ? 1
			: i >= wanted        ? -1
					     : span_compare(placed[i].tensor.name, name);
		if (i > 0 && i < count &&
			span_equal(placed[i - 1].tensor.name, placed[i].tensor.name)) {
			twice("tensor", placed[i].tensor.name, placed[i - 1].part, placed[i].part,
				err);
			err->kind = ERROR_SCHEMA_MISMATCH;
			return -1;
		}
		if (order > 0)
			return tensor_fault(name, "is in no part", err);
		if (order < 0)
			return tensor_fault(
				placed[i].tensor.name, "of a part is not in the run's schema", err);
		digests[i] = placed[i].tensor.digest;
	}
	return 0;
}

static int tensor_fault(struct span name, const char *what, struct error *err)
{
	return error_set(err, ERROR_SCHEMA_MISMATCH, "The tensor '%.*s' %s.",
		(int)span_slice(name, 0, 200).len, (const char *)name.data, what);
}
