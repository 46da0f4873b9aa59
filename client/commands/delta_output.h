/* Output and options that diff, fold and transcode share. */
#ifndef CLIENT_COMMANDS_DELTA_OUTPUT_H
#define CLIENT_COMMANDS_DELTA_OUTPUT_H

#include "client/terminal/options.h"
#include "client/transfer/session.h"
#include "weights/delta/delta.h"

/* Prints the facts of the delta that was written to `out`. */
void delta_output_say(struct session *session, const char *out, const struct delta_stats *stats,
	enum delta_format format);
/* Reads the value `name` of --format or --to; NULL means ulp-class. -1 with a usage error. */
int delta_output_format(struct session *session, const char *flag, const char *name,
	enum delta_format *out_format, struct error *err);
/* Reads --checksum; the default is xxh3-128. -1 with a usage error. */
int delta_output_checksum(
	struct session *session, enum delta_checksum *out_checksum, struct error *err);

#endif
