/* Damages stored chunks of an object on the disk. */
#ifndef TESTS_UNIT_STORAGE_DAMAGE_FIXTURE_H
#define TESTS_UNIT_STORAGE_DAMAGE_FIXTURE_H

#include <sys/types.h>

#include "chunker/chunk.h"
#include "tests/unit/storage/store_fixture.h"

/* Finds the first chunk of the object's segment number `segment`. Returns the path of its pack's
 * file (free() it), and the offset of its record there; the record has a header of
 * PACK_RECORD_HEADER_BYTES. The store must be open. */
char *damage_fixture_find(struct store_fixture *fixture, const char *bucket, const char *key,
	unsigned segment, off_t *out_offset);
/* The same for the first chunk of a xorb. */
char *damage_fixture_find_xorb(
	struct store_fixture *fixture, const struct chunk_id *xorb, off_t *out_offset);
/* Flips one byte of the payload there. */
void damage_fixture_flip(const char *path, off_t offset);
/* Flips a byte of the first chunk of the object's first segment between two starts of the store, so
 * that no read has noticed. */
void damage_fixture_flip_object(struct store_fixture *fixture, const char *bucket, const char *key);
/* Waits until the catalog knows this number of damaged chunks; 0: until all are mended. */
void damage_fixture_await(struct store_fixture *fixture, int64_t chunks);

#endif
