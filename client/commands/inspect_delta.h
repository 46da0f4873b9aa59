/* `inspect` of a delta. */
#ifndef CLIENT_COMMANDS_INSPECT_DELTA_H
#define CLIENT_COMMANDS_INSPECT_DELTA_H

#include "client/terminal/options.h"
#include "client/transfer/session.h"
#include "weights/delta/delta.h"

/* Prints the delta at `path`, which has this summary. */
int inspect_delta(struct session *session, const char *path, const struct delta_summary *summary,
	struct error *err);

#endif
