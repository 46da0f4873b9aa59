/* Says more of an object that is not there: the answer to a HEAD does not tell whether its bucket
 * is, and somebody may have named a folder. */
#ifndef CLIENT_COMMANDS_MISSING_OBJECT_H
#define CLIENT_COMMANDS_MISSING_OBJECT_H

#include "client/transfer/session.h"

/* To be called with the failure of remote_object_head in *err. Asks the server, if that can help,
 * and may replace the sentence and the kind. Always -1. */
int missing_object_explain(
	struct remote *remote, const struct object_name *name, struct error *err);

#endif
