/* Reads the form of the configuration file: headings, lines name = value, comments and quotes. The
 * meaning of the names is up to the caller. One thread.
 *
 *   # a comment; it may also begin with ;
 *   [heading]                  # the names below it are heading_name
 *   name = value               ; a comment after a value needs a blank before # or ;
 *   name = "a value; # and all"  between quotes, " or ', all characters belong to the value;
 *                              two quotes of that kind stand for one */
#ifndef SERVER_SETTING_FILE_H
#define SERVER_SETTING_FILE_H

#include "base/error.h"

/* Valid during the call. */
struct setting_line {
	const char *heading; /* "" before the first heading */
	const char *name;
	const char *value;
	const char *from; /* "PATH:N" */
};
typedef int setting_line_fn(void *owner, const struct setting_line *line, struct error *err);
/* Takes what was wrong with a line. */
typedef void setting_fault_fn(void *owner, const struct error *fault);

struct setting_taker {
	setting_line_fn *take;
	setting_fault_fn *note; /* NULL: the first fault ends the reading */
	void *owner;
};

/* Calls `take` for each line, until the file ends. A line that is wrong, or that `take` refuses,
 * ends the reading with a failure; with `note` it is noted there, and the next line is read.
 * Messages about the file name the line. */
int setting_file_read(const char *path, const struct setting_taker *taker, struct error *err);

#endif
