/* A named pin, as JSON: a step that retention keeps. docs/protocol/steps.md, "PutPin". Parsed texts
 * lie in the given arena. */
#ifndef WIRE_PIN_MESSAGE_H
#define WIRE_PIN_MESSAGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

enum { PIN_MESSAGE_MAX_BYTES = 4096, PINS_OF_RUN_MAX = 1000 };

struct pin_message {
	uint64_t step;
	uint64_t ttl_s; /* requests only; 0: the pin never expires */
	/* answers only: */
	struct span name;
	int64_t created_ms;
	int64_t expires_ms; /* 0: never */
};
int pin_message_parse(
	struct span json, struct arena *arena, struct pin_message *out, struct error *err);
void pin_message_print(const struct pin_message *pin, struct buffer *out);

/* Answer of GET pins: all pins of a run, in byte order of their names. */
int pin_list_parse(struct span json, struct arena *arena, struct pin_message **out,
	size_t *out_count, struct error *err);
void pin_list_print(const struct pin_message *pins, size_t count, struct buffer *out);

#endif
