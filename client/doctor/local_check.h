/* What this machine gives: room in the folders that commands write to, open files, and what the
 * environment says to engines. */
#ifndef CLIENT_DOCTOR_LOCAL_CHECK_H
#define CLIENT_DOCTOR_LOCAL_CHECK_H

#include "client/doctor/checkup.h"

/* The folder need not exist. `wanted` is what a checkpoint takes there; 0: not known. */
void local_check_folder(
	struct checkup *checkup, const char *name, const char *folder, uint64_t wanted);
/* The folder in which `publish` keeps its state, without a flag. */
void local_check_state(struct checkup *checkup, uint64_t wanted);
void local_check_limits(struct checkup *checkup);
/* The variables that vLLM's plug-in reads, when one of them is set. */
void local_check_engine(struct checkup *checkup, uint64_t wanted);

#endif
