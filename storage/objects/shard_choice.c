#include "storage/objects/shard_choice.h"

#include "storage/objects/object_read.h"
#include "weights/model/shard_rule.h"

enum { INDEX_MAX_BYTES = 64 * 1024 * 1024 };

static int read_index(struct store *store, const struct object *object, struct buffer *text,
	struct shard_index **out, struct error *err);
static bool has_its_files(
	const struct shard_index *index, const struct span *names, size_t count);

int shard_choice_mark(struct store *store, const struct object *index, const struct span *names,
	size_t count, bool *out_is_shard, struct error *err)
{
	struct buffer text;
	struct shard_index *parsed = NULL;
	bool any = false;
	buffer_init(&text, INDEX_MAX_BYTES);
	const int result = index == NULL ? 0 : read_index(store, index, &text, &parsed, err);
	const bool counts = parsed != NULL && has_its_files(parsed, names, count);
	for (size_t i = 0; i < count && result == 0; i++) {
		out_is_shard[i] = shard_rule_takes(counts ? parsed : NULL, names[i]);
		any = any || out_is_shard[i];
	}
	if (result == 0 && !any)
		(void)shard_choice_mark_all(names, count, out_is_shard);
	shard_index_free(parsed);
	buffer_release(&text);
	return result;
}

bool shard_choice_mark_all(const struct span *names, size_t count, bool *is_shard)
{
	bool changed = false;
	for (size_t i = 0; i < count; i++) {
		const bool marks = span_ends_text(names[i], ".safetensors");
		changed = changed || marks != is_shard[i];
		is_shard[i] = marks;
	}
	return changed;
}

/* *out is NULL if the object is not an index. */
static int read_index(struct store *store, const struct object *object, struct buffer *text,
	struct shard_index **out, struct error *err)
{
	struct error ignored = {0};
	if (object->size > INDEX_MAX_BYTES || object->size == 0)
		return 0;
	uint8_t *const into = buffer_reserve(text, (size_t)object->size);
	if (into == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for an index ran out.");
	struct body_source *const source = object_open(store, object, 0, object->size, err);
	if (source == NULL)
		return -1;
	const int result = body_source_read_whole(source, into, (size_t)object->size, err);
	source->close(source);
	if (result != 0)
		return -1;
	buffer_commit(text, (size_t)object->size);
	*out = shard_index_parse(buffer_span(text), SHARD_RULE_INDEX_NAME, &ignored);
	return 0;
}

/* No name is there twice, so counting is enough. */
static bool has_its_files(const struct shard_index *index, const struct span *names, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		found += shard_index_names(index, names[i]);
	return found > 0 && found == shard_index_file_count(index);
}
