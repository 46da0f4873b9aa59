/* The rollback of a fleet, as JSON: the step that all followers of a run are to serve instead of
 * the head. docs/protocol/steps.md, "Rollback", is the normative text. */
#ifndef WIRE_ROLLBACK_MESSAGE_H
#define WIRE_ROLLBACK_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct json_node;
struct json_writer;

enum { ROLLBACK_MESSAGE_MAX_BYTES = 4096 };

struct rollback_message {
	bool is_on; /* false: the fleet takes the head */
	uint64_t step;
	int64_t created_ms; /* answers only */
};

/* Body of PUT rollback. */
int rollback_message_parse(struct span json, struct rollback_message *out, struct error *err);
/* Reads the member "rollback" of an answer. is_on is false when it is absent or null. */
int rollback_message_read(
	const struct json_node *answer, struct rollback_message *out, struct error *err);
/* Adds it to an answer, if it is on. */
void rollback_message_print(const struct rollback_message *rollback, struct json_writer *writer);

#endif
