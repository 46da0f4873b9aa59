/* A new version, out of the bytes of one request. */
#ifndef STORAGE_OBJECTS_OBJECT_PUT_H
#define STORAGE_OBJECTS_OBJECT_PUT_H

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"

struct object_put;
struct object_put_params { /* texts are copied */
	struct span bucket;
	struct span key;
	struct object_facts facts;
	struct object_conditions conditions;
	bool has_content_md5; /* bad_digest when the body's differs */
	uint8_t content_md5[16];
	enum checksum_algorithm checksum; /* to be computed and stored; CHECKSUM_NONE: CRC64NVME */
	void (*room)(void *owner);        /* a write that answered SINK_WAIT may be tried again */
	void (*done)(void *owner);        /* the outcome is known; from the committer or a helper */
	void *owner;
};
/* Checks key length, metadata size and that the bucket exists. */
struct object_put *object_put_open(
	struct store *store, const struct object_put_params *params, struct error *err);
enum sink_result object_put_write(struct object_put *put, struct span bytes, struct error *err);
/* Before finish: bad_digest unless the body has this checksum (of the algorithm that was asked
 * for): header or trailer said so. */
void object_put_expect(struct object_put *put, const struct checksum *checksum);
/* then done comes once, possibly before this returns */
void object_put_finish(struct object_put *put);
/* 0 and the committed version (texts live until free), or the error. */
int object_put_outcome(struct object_put *put, struct object *out, struct error *err);
/* After a bad_digest: what was expected and what the body has; false when MD5 or nothing was at
 * fault. */
bool object_put_bad_checksum(
	const struct object_put *put, struct checksum *out_expected, struct checksum *out_actual);
/* Before finish: aborts. After finish: only after done. */
void object_put_free(struct object_put *put);

#endif
