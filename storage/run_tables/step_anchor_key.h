/* The keys of anchors that the server makes: "{run}/anchors/step_%06d/{file}". Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_STEP_ANCHOR_KEY_H
#define STORAGE_RUN_TABLES_STEP_ANCHOR_KEY_H

#include "storage/db/db.h"
#include "wire/step_message.h"

enum {
	STEP_ANCHOR_KEY_BYTES = RUN_NAME_MAX_BYTES + sizeof("/anchors/step_18446744073709551615/") +
		STEP_NAME_MAX_BYTES
};
/* Writes the key, NUL-terminated, and returns its length in bytes. */
size_t step_anchor_key(
	struct span run, uint64_t step, struct span file, char out[STEP_ANCHOR_KEY_BYTES]);
/* The reverse; false when the key is not of this form. Texts are borrowed from the key. */
bool step_anchor_key_parse(
	struct span key, struct span *out_run, uint64_t *out_step, struct span *out_file);

/* For a change of a client: denied when the key lies below "{run}/anchors/" of an existing run. In
 * a run that adopts a trainer's convention only the keys of made anchors belong to the server. */
int step_anchor_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
