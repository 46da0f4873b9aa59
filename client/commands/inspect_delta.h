/* What `inspect` says of a delta. */
#ifndef CLIENT_COMMANDS_INSPECT_DELTA_H
#define CLIENT_COMMANDS_INSPECT_DELTA_H

#include "client/transfer/session.h"
#include "weights/delta/delta.h"

/* `path` is a delta with this summary. */
int inspect_delta(struct session *session, const char *path, const struct delta_summary *summary,
	struct error *err);

#endif
