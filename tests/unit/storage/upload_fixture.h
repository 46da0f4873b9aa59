/* The calls of storage/uploads/upload.h, made blocking. */
#ifndef TESTS_UNIT_STORAGE_UPLOAD_FIXTURE_H
#define TESTS_UNIT_STORAGE_UPLOAD_FIXTURE_H

#include "storage/uploads/upload.h"

/* Each returns 0, or -1 with the error. */
int fixture_upload_create(struct store *store, const struct upload_create_params *params,
	struct upload_ref *out, struct error *err);
/* `expected` may be NULL; `out` too. */
int fixture_upload_put(struct store *store, const struct upload_ref *ref, uint32_t number,
	struct span bytes, const struct checksum *expected, struct uploaded_part *out,
	struct error *err);
int fixture_upload_copy(struct store *store, const struct upload_ref *ref, uint32_t number,
	const struct object *source, uint64_t offset, uint64_t length, struct uploaded_part *out,
	struct error *err);
int fixture_upload_complete(struct store *store, const struct upload_complete_params *params,
	struct upload_result *out, struct upload_fault *out_fault, struct error *err);
/* The part in the form that a completion names it. */
struct upload_listed_part fixture_upload_listed(const struct uploaded_part *part);
/* Completes with only these parts, and without conditions. */
int fixture_upload_complete_parts(struct store *store, const struct upload_ref *ref,
	const struct upload_listed_part *parts, size_t count, struct error *err);
int fixture_upload_abort(struct store *store, const struct upload_ref *ref, struct error *err);

#endif
