/* Stored chunks of an object, damaged on the disk. */
#ifndef TESTS_UNIT_STORAGE_DAMAGE_FIXTURE_H
#define TESTS_UNIT_STORAGE_DAMAGE_FIXTURE_H

#include <sys/types.h>

#include "chunker/chunk.h"
#include "tests/unit/storage/store_fixture.h"

/* Where the first chunk of the object's segment number `segment` begins in its pack's file, and
 * that file; free(). With the store open. The record's header is `PACK_RECORD_HEADER_BYTES`
 * long. */
char *damage_fixture_find(struct store_fixture *fixture, const char *bucket, const char *key,
	unsigned segment, off_t *out_offset);
/* The same of a xorb. */
char *damage_fixture_find_xorb(
	struct store_fixture *fixture, const struct chunk_id *xorb, off_t *out_offset);
/* One byte of the payload there, flipped. */
void damage_fixture_flip(const char *path, off_t offset);
/* The first chunk of the object's first segment, between two starts of the store: nobody has read
 * it since. */
void damage_fixture_flip_object(struct store_fixture *fixture, const char *bucket, const char *key);
/* Waits until the catalog knows of so many damaged chunks; of none: until they are mended for
 * everybody. */
void damage_fixture_await(struct store_fixture *fixture, int64_t chunks);

#endif
