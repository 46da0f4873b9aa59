/* The server's settings: one table (configuration.def) read from flags, environment and an INI
 * file, in that order of precedence, and printed as help and as documentation. Immutable once
 * loaded; any thread. */
#ifndef SERVER_CONFIGURATION_H
#define SERVER_CONFIGURATION_H

#include "base/buffer.h"
#include "base/thread/log.h"

struct configuration_list {
	char **items;
	size_t count;
};

/* One field per setting, by type. */
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
};

enum configuration_request {
	CONFIGURATION_RUN,
	CONFIGURATION_HELP,
	CONFIGURATION_VERSION,
	CONFIGURATION_DOCS
};

/* Reads `arguments` (without the program's name; "--name value", "--name=value"), the environment's
 * DELTABUCKET_* and the file named by --config or DELTABUCKET_CONFIG. invalid names the setting,
 * where it came from and what it may be. `environment` is as environ. Release in both cases. */
int configuration_load(struct configuration *configuration, int argument_count,
	char *const *arguments, char *const *environment, enum configuration_request *out_request,
	struct error *err);
void configuration_release(struct configuration *configuration);

/* Warns of each variable DELTABUCKET_* that neither is a setting nor belongs to another program of
 * the project, with the nearest setting. */
void configuration_tell_strays(char *const *environment, struct log *log);

void configuration_print_help(struct buffer *out);
void configuration_print_docs(struct buffer *out); /* a Markdown table, for docs/OPERATIONS.md */

#endif
