/* What a window of PULSE (grail) brings: its DELTA folder where that builds on the run's newest
 * step, else its FULL one. JSON lies there gzipped. docs/protocol/steps.md, "Adopted runs".
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
	struct span head; /* what the newest step is called; {NULL,0}: it was not adopted */
};

/* As adopt_objects_find. Of a full checkpoint the SHA-256 of every file is proven here, and JSON is
 * put unpacked beside its gzipped self: a step's objects are what its readers get. head_moved and
 * base_missing: a delta that builds on something else, with what helps; no_key: a file that the
 * manifest names is missing; digest_mismatch; what weights/delta/pulse_metadata.h refuses.
 * Blocking. */
int adopt_pulse_find(const struct adopt_pulse *pulse, struct adopt_objects *out, struct error *err);

#endif
