/* Readers and printers that the messages share: single fields of a JSON object, and parts that more
 * than one message has. Every reader returns 0, or -1 with invalid; too_large says that the arena
 * or the limit of the metadata is exceeded. docs/protocol/steps.md says which messages they refuse.
 * Texts are copied into the arena. */
#ifndef WIRE_STEP_MESSAGE_INTERNAL_H
#define WIRE_STEP_MESSAGE_INTERNAL_H

#include "base/format/json_node.h"
#include "wire/step_message.h"

int message_u64(const struct json_node *object, const char *name, uint64_t *out, struct error *err);
int message_digest(
	const struct json_node *object, const char *name, struct digest128 *out, struct error *err);
/* *out_has is false when the member is absent or null. */
int message_optional_digest(const struct json_node *object, const char *name, bool *out_has,
	struct digest128 *out, struct error *err);
int message_text(const struct json_node *object, const char *name, size_t max_bytes,
	struct arena *arena, struct span *out, struct error *err);
/* Gives the empty text when the member is absent or null. */
int message_optional_text(const struct json_node *object, const char *name, size_t max_bytes,
	struct arena *arena, struct span *out, struct error *err);
/* Reads an ISO time. Gives 0 when the member is absent or null. */
int message_time(
	const struct json_node *object, const char *name, int64_t *out_ms, struct error *err);
/* Reads a relative path. step_message.h says which are unsafe. */
int message_name(const struct json_node *object, const char *name, struct arena *arena,
	struct span *out, struct error *err);
/* Finds an array of at most `max` elements. */
int message_array(const struct json_node *object, const char *name, size_t max,
	const struct json_node **out, struct error *err);
/* True when the member is absent or null. */
bool message_absent(const struct json_node *object, const char *name);
/* Fails with too_large when the arena ran out. */
int message_arena_check(const struct arena *arena, struct error *err);
int message_too_large_for_arena(struct error *err);

int message_files(const struct json_node *object, const char *name, struct arena *arena,
	struct step_file **out, size_t *out_count, struct error *err);
/* Reads one form. Refuses an anchor without objects. */
int message_form(const struct json_node *node, struct arena *arena, struct step_form *out,
	struct error *err);

/* Fields that the step manifest shares with the parts of steps. `base` is checked against the
 * step's number; `forms` are ordered and checked. */
int message_step_base(const struct json_node *root, struct step_message *out, struct error *err);
int message_step_metadata(
	const struct json_node *root, struct arena *arena, struct span *out, struct error *err);
int message_step_forms(const struct json_node *root, struct arena *arena, struct step_message *out,
	struct error *err);
/* Refuses a time over STEP_PUBLISH_MAX_MS. */
int message_publish_ms(const struct json_node *root, struct step_message *out, struct error *err);
void message_print_base(struct json_writer *writer, const struct step_message *step);

/* Input of content digests: a number is 8 bytes little-endian, a text its length and its bytes. */
void message_hash_u64(struct xxh3_stream *stream, uint64_t value);
void message_hash_text(struct xxh3_stream *stream, struct span text);

void message_print_digest(
	struct json_writer *writer, const char *name, const struct digest128 *digest);
void message_print_time(struct json_writer *writer, const char *name, int64_t wall_ms);
void message_print_files(
	struct json_writer *writer, const char *name, const struct step_file *files, size_t count);
void message_print_form(struct json_writer *writer, const char *name, const struct step_form *form);

#endif
