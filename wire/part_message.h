/* A part of a step that many ranks publish together, as JSON: the objects that one rank has put and
 * the tensors that it has. docs/protocol/steps.md, "PutPart", is the normative text. Everything
 * parsed lies in the given arena. */
#ifndef WIRE_PART_MESSAGE_H
#define WIRE_PART_MESSAGE_H

#include "wire/step_message.h"

enum { PARTS_OF_STEP_MAX = 4096 };

struct part_tensor {
	struct span name;
	struct digest128 digest;
};
struct part_message {
	/* without digest and tensor_digests: a rank does not know those of the whole step */
	struct step_message step;
	struct part_tensor *tensors;
	size_t tensor_count;
};
/* `step` is the step's number from the path of the request. */
int part_message_parse(struct span json, uint64_t step, struct arena *arena,
	struct part_message *out, struct error *err);
void part_message_print(const struct part_message *part, struct buffer *out);
/* XXH3-128 of all that a repeated request must repeat: the facts of step_message_content_digest,
 * `parts`, and the tensors in the order given. The server keeps it. */
struct digest128 part_message_content_digest(const struct part_message *part, uint64_t parts);

/* Answer of PUT .../parts/{part}. */
struct part_answer {
	uint64_t step;
	uint64_t part;
	uint64_t parts;
	uint64_t received; /* distinct parts so far, this one included */
	bool published;
};
void part_answer_print(const struct part_answer *answer, struct buffer *out);

#endif
