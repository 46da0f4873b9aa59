/* PULSE's delta_sparse.bin.zst: one zstd frame of a JSON header and, tensor by tensor, positions
 * and values. docs/FORMAT.md, "PULSE's deltas". Opening decodes the header alone; what
 * follows is unpacked once somebody knows that the tensors are those of the base, so that a small
 * file does not become a large one unasked. One thread until it is unpacked, then any. */
#ifndef WEIGHTS_DELTA_PULSE_PAYLOAD_H
#define WEIGHTS_DELTA_PULSE_PAYLOAD_H

#include "weights/codec/dtype.h"
#include "weights/codec/index_code.h"
#include "weights/delta/pulse_metadata.h"

struct pulse_tensor {
	struct span name;
	enum dtype dtype;
	unsigned rank;
	const uint64_t *shape;
	uint64_t count;          /* of changed elements; at most what the shape has */
	struct index_code index; /* how its positions are written */
	/* of the positions, in the unpacked bytes; the values follow them */
	uint64_t at;
	uint64_t index_bytes;
	uint64_t value_bytes;
};

struct pulse_payload;

/* `frame` is borrowed. invalid: malformed, sizes that do not add up, a version or dtype that the
 * codec does not have; too_large: the header. `path` names the file in messages. */
struct pulse_payload *pulse_payload_open(
	struct span frame, enum pulse_codec codec, const char *path, struct error *err);
void pulse_payload_free(struct pulse_payload *payload); /* NULL is fine */

size_t pulse_payload_count(const struct pulse_payload *payload);
const struct pulse_tensor *pulse_payload_tensor(const struct pulse_payload *payload, size_t index);

/* Unpacks into an unnamed file in `folder`, or below TMPDIR where that cannot be written. Nothing
 * the second time. */
int pulse_payload_unpack(struct pulse_payload *payload, const char *folder, struct error *err);
struct span pulse_payload_index(const struct pulse_payload *payload, size_t index);
struct span pulse_payload_values(const struct pulse_payload *payload, size_t index);

#endif
