/* Puts an object: makes a new version from the bytes of one request. */
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
	bool has_content_md5; /* bad_digest when the body has another MD5 */
	uint8_t content_md5[16];
	enum checksum_algorithm checksum; /* to compute and store; CHECKSUM_NONE: CRC64NVME */
	void (*room)(void *owner);        /* a write that answered SINK_WAIT may be tried again */
	void *owner;                      /* of room */
};
/* Checks the key's length and the metadata's size, and that the bucket exists. From here on the put
 * belongs to that bucket, whichever has the name later. NULL with the error set. */
struct object_put *object_put_open(
	struct store *store, const struct object_put_params *params, struct error *err);
enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err);
/* Before the call starts, for a checksum in a header or trailer: the call fails with bad_digest
 * unless the body has it. Its algorithm is the one that was asked for. */
void object_put_expect(struct object_put *put, const struct checksum *checksum);
/* The put as a call (storage/core/call.h). Start it when the body is whole, and free it in any
 * case; call_free without a start aborts the put. */
struct call *object_put_call(struct object_put *put);
/* After the call: 0 and the committed version, whose texts live as long as the call, or -1 with the
 * call's failure. */
int object_put_result(const struct call *call, struct object *out, struct error *err);
/* After a bad_digest: gives the checksum that was expected and the body's own. False when the MD5
 * differed, or nothing did. */
bool object_put_bad_checksum(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual);

#endif
