/* What the token may do with one bucket or run, asked without changing anything, and how fast
 * content comes from there. */
#ifndef CLIENT_DOCTOR_PLACE_CHECK_H
#define CLIENT_DOCTOR_PLACE_CHECK_H

#include "client/doctor/checkup.h"
#include "client/remote/remote.h"
#include "client/remote/run_name.h"

void place_check_bucket(struct checkup *checkup, struct remote *remote, struct span bucket);
/* Returns the bytes of the run's newest checkpoint; 0 when that is not known. */
uint64_t place_check_run(
	struct checkup *checkup, struct remote *remote, const struct run_name *run);

#endif
