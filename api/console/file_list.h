/* The files of the console, as console/embed.sh found them below console/ when the server was
 * built. */
#ifndef API_CONSOLE_FILE_LIST_H
#define API_CONSOLE_FILE_LIST_H

#include "base/span.h"

struct console_file {
	const char *name; /* the path below console/ */
	const char *content_type;
	const char *digest; /* of the content, 32 hex digits */
	struct span plain;
	struct span packed; /* with gzip; empty where that is not smaller */
};
extern const struct console_file console_files[]; /* by name */
extern const size_t console_file_count;

#endif
