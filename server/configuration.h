/* The server's settings. One table (configuration.def) names them. They are read from flags, the
 * environment and an INI file, in this order of precedence. Immutable once loaded; any thread. */
#ifndef SERVER_CONFIGURATION_H
#define SERVER_CONFIGURATION_H

#include "base/buffer.h"
#include "base/thread/log.h"

struct configuration_list {
	char **items;
	size_t count;
};

/* One field for each setting. */
struct configuration {
#define FIELD_TEXT(name)                                       char *name; /* NULL: not set */
#define FIELD_LIST(name)                                       struct configuration_list name;
#define FIELD_FLAG(name)                                       bool name;
#define FIELD_NUMBER(name)                                     uint64_t name;
#define SETTING(name, TYPE, standard, least, most, unit, help) FIELD_##TYPE(name)
#include "server/configuration.def"
#undef SETTING
#undef FIELD_TEXT
#undef FIELD_LIST
#undef FIELD_FLAG
#undef FIELD_NUMBER
	char *settings_file; /* that was read; NULL: none */
	char *faults;        /* CONFIGURATION_CHECK: a line for each, "" when there are none */
};

enum configuration_request {
	CONFIGURATION_RUN,
	CONFIGURATION_HELP,
	CONFIGURATION_VERSION,
	CONFIGURATION_DOCS,
	CONFIGURATION_PRINT, /* print the settings as a file */
	CONFIGURATION_CHECK
};

/* Reads `arguments` (without the program's name; "--name value" or "--name=value"), the variables
 * DELTABUCKET_* of `environment` (in the form of environ), and the file named by --config or
 * DELTABUCKET_CONFIG. Fails with invalid; the message names the setting, its source and the values
 * that it may have. CONFIGURATION_CHECK reads everything, also the files that settings name
 * (configuration_check.h), and puts all that is wrong into `faults`; CONFIGURATION_PRINT needs no
 * data folder. Must be released also after a failure. */
int configuration_load(struct configuration *configuration, int argument_count,
	char *const *arguments, char *const *environment, enum configuration_request *out_request,
	struct error *err);
void configuration_release(struct configuration *configuration);

/* Logs a warning for each variable DELTABUCKET_* that is not a setting and does not belong to
 * another program of the project. The warning names a similar setting. */
void configuration_warn_unknown(char *const *environment, struct log *log);

void configuration_print_help(struct buffer *out);
void configuration_print_docs(struct buffer *out); /* the Markdown table of docs/OPERATIONS.md */
/* A file for --config with every setting and its meaning. Those at their defaults are commented
 * out. */
void configuration_print_file(const struct configuration *configuration, struct buffer *out);

#endif
