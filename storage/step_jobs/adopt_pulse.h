/* Finds what a window of PULSE (grail) brings: its DELTA folder if that builds on the run's newest
 * step, otherwise its FULL folder. JSON lies there gzipped. docs/protocol/steps.md, "Adopted runs".
 * Internal to storage. */
#ifndef STORAGE_STEP_JOBS_ADOPT_PULSE_H
#define STORAGE_STEP_JOBS_ADOPT_PULSE_H

#include "storage/step_jobs/adopt_objects.h"
#include "storage/step_jobs/step_job.h"

struct adopt_pulse {
	struct step_work *work;
	const struct adoption *adoption;
	struct adopt_place place;
	struct span run_name;
	bool has_head;
	struct span head; /* the identity of the newest step; {NULL,0}: it was not adopted */
};

/* As adopt_objects_find. For a full checkpoint this proves the SHA-256 of every file, and puts the
 * unpacked form of JSON beside the gzipped one, because readers get a step's objects as they are.
 * head_moved, base_missing: a delta that builds on something else; the text says what helps.
 * no_key: a file that the manifest names is missing. digest_mismatch. What
 * weights/delta/pulse_metadata.h refuses. Blocking. */
int adopt_pulse_find(const struct adopt_pulse *pulse, struct adopt_objects *out, struct error *err);

#endif
