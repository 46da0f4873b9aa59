/* What diff, fold and transcode say of the delta they wrote. */
#ifndef CLIENT_COMMANDS_DELTA_OUTPUT_H
#define CLIENT_COMMANDS_DELTA_OUTPUT_H

#include "client/transfer/session.h"
#include "weights/delta/delta.h"

void delta_output_say(struct session *session, const char *out, const struct delta_stats *stats,
	enum delta_format format);
/* --format or --to, and --checksum; `name` NULL: ulp-class. -1: a usage error. */
int delta_output_format(struct session *session, const char *flag, const char *name,
	enum delta_format *out_format, struct error *err);
int delta_output_checksum(
	struct session *session, enum delta_checksum *out_checksum, struct error *err);

#endif
