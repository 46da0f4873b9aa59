/* The form of the configuration file: headings, lines name = value, comments and quotes. What the
 * names mean is the taker's. One thread.
 *
 *   # a comment, as behind ;
 *   [heading]                  # the names below it are heading_name
 *   name = value               ; a blank before # or ; begins a comment
 *   name = "a value; # and all" as it stands between the quotes, " or ' */
#ifndef SERVER_SETTING_FILE_H
#define SERVER_SETTING_FILE_H

#include "base/error.h"

/* Alive during the call. */
struct setting_line {
	const char *heading; /* "" above the first */
	const char *name;
	const char *value;
	const char *from; /* "PATH, line N" */
};
typedef int setting_line_fn(void *taker, const struct setting_line *line, struct error *err);

/* Hands all lines to `take`, up to the first mistake, be it the file's or the taker's, which is
 * named with its line. -1: err says. */
int setting_file_read(const char *path, setting_line_fn *take, void *taker, struct error *err);

#endif
