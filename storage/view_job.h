/* The kind of background work that makes views: steps in the layouts of TRL's and slime's readers, as ordinary objects that nobody may write but the
 * server. docs/PROTOCOL.md, "Views". Internal to storage. */
#ifndef STORAGE_VIEW_JOB_H
#define STORAGE_VIEW_JOB_H

#include "storage/step_job.h"
#include "storage/view_key.h"
#include "wire/run_settings_message.h"

extern const struct step_job_kind view_job;
/* The job that makes one view. */
struct step_job view_job_of(const struct view_wanted *wanted);

/* Inside the change that publishes a step: its views are wanted. */
int view_want(struct db *db, const struct run_settings *settings, int64_t step, struct error *err);
/* Inside the change of a run's settings: what was switched on is wanted of all kept steps, what was switched off no more. exists: there are keys
 * in the place of a view that the server has not made. */
struct run_row;
int view_switch(struct db *db, const struct run_row *run, struct span run_name, const struct run_settings *before, struct error *err);
/* Inside a change of a client: denied when the key belongs to a view that is on. */
int view_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
