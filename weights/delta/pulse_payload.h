/* PULSE's delta_sparse.bin.zst: one zstd frame with a JSON header and, tensor by tensor, positions
 * and values. docs/FORMAT.md, "PULSE's deltas". Opening decodes only the header. A caller unpacks
 * the rest once it knows that the tensors are those of the base, because a small file may unpack to
 * a large one. One thread until it is unpacked, then any. */
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
	uint64_t count;          /* changed elements; at most those of the shape */
	struct index_code index; /* the form of its positions */
	uint64_t at;             /* place of the positions in the unpacked bytes */
	uint64_t index_bytes;
	uint64_t value_bytes; /* the values follow the positions */
};

struct pulse_payload;

/* `frame` is borrowed. `path` names the file in messages. Fails with invalid when the header is
 * malformed, its sizes do not add up, or it has a version or dtype that is not the codec's, and
 * with too_large when the header is too large. */
struct pulse_payload *pulse_payload_open(
	struct span frame, enum pulse_codec codec, const char *path, struct error *err);
void pulse_payload_free(struct pulse_payload *payload); /* NULL is fine */

size_t pulse_payload_count(const struct pulse_payload *payload);
const struct pulse_tensor *pulse_payload_tensor(const struct pulse_payload *payload, size_t index);

/* Unpacks into an unnamed file in `folder`, or below TMPDIR if the folder cannot be written. A
 * second call does nothing. The sections below exist once this has succeeded. */
int pulse_payload_unpack(struct pulse_payload *payload, const char *folder, struct error *err);
struct span pulse_payload_index(const struct pulse_payload *payload, size_t index);
struct span pulse_payload_values(const struct pulse_payload *payload, size_t index);

#endif
