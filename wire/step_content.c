/* The content digest hashes every number as 8 bytes little-endian, every text as its length and its
 * bytes, and every list as its length and its elements, in the order of the functions below.
 * Catalogs hold the result: after a change here, every republish would differ. */
#include "wire/step_message_internal.h"

static void add_facts(struct xxh3_stream *stream, const struct step_message *step);
static void add_digest(struct xxh3_stream *stream, const struct digest128 *digest);
static void add_files(struct xxh3_stream *stream, const struct step_message *step);
static void add_form(struct xxh3_stream *stream, const struct step_form *form);

void message_hash_u64(struct xxh3_stream *stream, uint64_t value)
{
	uint8_t bytes[8];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	xxh3_stream_add(stream, span_of(bytes, sizeof(bytes)));
}

void message_hash_text(struct xxh3_stream *stream, struct span text)
{
	message_hash_u64(stream, text.len);
	xxh3_stream_add(stream, text);
}

struct digest128 step_message_content_digest(const struct step_message *step)
{
	ASSERT(step->form_count <= STEP_FORMS_MAX);
	struct xxh3_stream *const stream = xxh3_stream_new();
	add_facts(stream, step);
	add_files(stream, step);
	message_hash_u64(stream, step->form_count);
	for (size_t i = 0; i < step->form_count; i++)
		add_form(stream, &step->forms[i]);
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

static void add_facts(struct xxh3_stream *stream, const struct step_message *step)
{
	message_hash_u64(stream, step->step);
	message_hash_u64(stream, step->has_base ? 1 : 0);
	message_hash_u64(stream, step->base_step);
	add_digest(stream, &step->base_digest);
	add_digest(stream, &step->digest);
	add_digest(stream, &step->schema_digest);
	message_hash_text(stream, step->label);
	message_hash_text(stream, step->metadata);
	message_hash_text(stream, step->tensor_digests);
}

static void add_digest(struct xxh3_stream *stream, const struct digest128 *digest)
{
	xxh3_stream_add(stream, span_of(digest->bytes, sizeof(digest->bytes)));
}

static void add_files(struct xxh3_stream *stream, const struct step_message *step)
{
	message_hash_u64(stream, step->file_count);
	for (size_t i = 0; i < step->file_count; i++) {
		message_hash_text(stream, step->files[i].path);
		message_hash_u64(stream, step->files[i].size);
		add_digest(stream, &step->files[i].digest);
	}
}

static void add_form(struct xxh3_stream *stream, const struct step_form *form)
{
	message_hash_u64(stream, form->kind);
	message_hash_text(stream, form->format);
	message_hash_u64(stream, form->object_count);
	for (size_t i = 0; i < form->object_count; i++) {
		message_hash_text(stream, form->objects[i].name);
		message_hash_u64(stream, form->objects[i].size);
		add_digest(stream, &form->objects[i].digest);
	}
}
