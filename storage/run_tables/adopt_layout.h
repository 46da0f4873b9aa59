/* The keys of trainers that never heard of steps, by convention: which key completes a publish, and
 * where its objects lie. TRL's, slime's, ModelExpress', SkyRL's and PULSE's, and stitch's pointer;
 * docs/protocol/steps.md, "Adopted runs". Pure; any thread. */
#ifndef STORAGE_RUN_TABLES_ADOPT_LAYOUT_H
#define STORAGE_RUN_TABLES_ADOPT_LAYOUT_H

#include "base/span.h"
#include "wire/run_settings_message.h"

enum { ADOPT_IDENTITY_MAX_BYTES = 256 };

struct adopt_mark {
	struct span
		identity; /* what the publish is called: "step_000007", "weight_v000007"; of a pointer: empty, its bytes tell */
	struct span objects; /* its objects: all keys that begin so; lies in the key */
	uint64_t version;    /* the trainer's number */
	bool is_pointer; /* the key holds "{run id}/weight_v%06d": all versions up to there are published */
};

/* Whether `key` completes a publish of this convention below `prefix`. */
bool adopt_layout_match(enum adopt_convention convention, struct span prefix, struct span key,
	struct adopt_mark *out);
/* The folder below the prefix in which such a trainer puts objects, if it is called as one of the
 * server's own (view_key.h): "deltas/", "updates/"; else "". */
const char *adopt_layout_folder(enum adopt_convention convention);
/* Reads "weight_v%06d", or what stands before it and a slash in a pointer: false when it is not so.
 * `out_version` gets the number. */
bool adopt_layout_version(struct span name, uint64_t *out_version);
/* The number at the end of an identity of such conventions: "step_000007", "run/weight_v000007". */
bool adopt_layout_number(struct span identity, uint64_t *out_number);
/* The content of a pointer: the run id and the version's name. White space at its end is passed
 * over. */
bool adopt_layout_pointer(struct span content, struct span *out_run_id, uint64_t *out_version);

#endif
