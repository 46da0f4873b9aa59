/* A new version, out of the bytes of one request. */
#ifndef STORAGE_OBJECTS_OBJECT_PUT_H
#define STORAGE_OBJECTS_OBJECT_PUT_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"

struct object_put;
struct object_put_params { /* texts are copied */
	struct bucket_ref bucket;
	struct span key;
	struct object_facts facts;
	struct object_conditions conditions;
	bool has_content_md5; /* bad_digest when the body's differs */
	uint8_t content_md5[16];
	enum checksum_algorithm checksum; /* to be computed and stored; CHECKSUM_NONE: CRC64NVME */
	void (*room)(void *owner);        /* a write that answered SINK_WAIT may be tried again */
	void *owner;                      /* of room */
};
/* Checks key length, metadata size and that the bucket exists: it is that bucket's from here on. */
struct object_put *object_put_open(
	struct store *store, const struct object_put_params *params, struct error *err);
enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err);
/* Before the call starts: bad_digest unless the body has this checksum (of the algorithm that was
 * asked for); header or trailer said so. */
void object_put_expect(struct object_put *put, const struct checksum *checksum);
/* The put as a call (storage/core/call.h): started when the body is whole, freed in any case.
 * call_free before that aborts the put. */
struct call *object_put_call(struct object_put *put);
/* After it: 0 and the committed version, whose texts live as long as the call; or -1 with the
 * call's failure. */
int object_put_result(const struct call *call, struct object *out, struct error *err);
/* After a bad_digest: what was expected and what the body has; false when MD5 or nothing was at
 * fault. */
bool object_put_bad_checksum(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual);

#endif
