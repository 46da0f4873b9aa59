/* The kind of background work that makes steps of foreign publishes (storage/adopt_note.h, storage/hot_load.h). Internal to storage. */
#ifndef STORAGE_ADOPT_JOB_H
#define STORAGE_ADOPT_JOB_H

#include "storage/step_job.h"

extern const struct step_job_kind adopt_job;

#endif
