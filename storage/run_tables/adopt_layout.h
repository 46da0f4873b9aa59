/* The keys of trainers that do not know steps, by convention: which key completes a publish, and
 * where its objects lie. The conventions are those of TRL, slime, ModelExpress, SkyRL and PULSE,
 * and the pointer of stitch; docs/protocol/steps.md, "Adopted runs". Pure; any thread. */
#ifndef STORAGE_RUN_TABLES_ADOPT_LAYOUT_H
#define STORAGE_RUN_TABLES_ADOPT_LAYOUT_H

#include "base/span.h"
#include "wire/run_settings_message.h"

enum { ADOPT_IDENTITY_MAX_BYTES = 256 };

struct adopt_mark {
	/* the name of the publish: "step_000007", "weight_v000007"; empty for a pointer, whose
	 * content names it */
	struct span identity;
	struct span objects; /* the beginning of the keys of its objects; borrowed from the key */
	uint64_t version;    /* the trainer's number */
	/* the object contains "{run id}/weight_v%06d": all versions up to that one are published */
	bool is_pointer;
};

/* Whether `key` completes a publish of this convention below `prefix`. */
bool adopt_layout_match(enum adopt_convention convention, struct span prefix, struct span key,
	struct adopt_mark *out);
/* The folder below the prefix into which such a trainer puts objects, if the folder has the name of
 * one of the server's own (view_key.h): "deltas/" or "updates/". Otherwise "". */
const char *adopt_layout_folder(enum adopt_convention convention);
/* The number at the end of an identity: "step_000007", "run/weight_v000007". False for the
 * identities of conventions without numbers. */
bool adopt_layout_number(struct span identity, uint64_t *out_number);
/* Parses the content of a pointer: the run id and the number of the version. Ignores white space at
 * the end. False when the content is malformed. */
bool adopt_layout_pointer(struct span content, struct span *out_run_id, uint64_t *out_version);

#endif
