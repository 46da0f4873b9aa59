/* Reads the form of the configuration file: headings, lines name = value, comments and quotes. The
 * meaning of the names is up to the caller. One thread.
 *
 *   # a comment; it may also begin with ;
 *   [heading]                  # the names below it are heading_name
 *   name = value               ; a comment after a value needs a blank before # or ;
 *   name = "a value; # and all"  between quotes, " or ', all characters belong to the value */
#ifndef SERVER_SETTING_FILE_H
#define SERVER_SETTING_FILE_H

#include "base/error.h"

/* Valid during the call. */
struct setting_line {
	const char *heading; /* "" before the first heading */
	const char *name;
	const char *value;
	const char *from; /* "PATH, line N" */
};
typedef int setting_line_fn(void *taker, const struct setting_line *line, struct error *err);

/* Calls `take` for each line, until the file ends or has a fault, or `take` fails. Messages about
 * the file name the line. */
int setting_file_read(const char *path, setting_line_fn *take, void *taker, struct error *err);

#endif
