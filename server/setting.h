/* The rows of configuration.def as a table, for the code that reads the settings (configuration.c)
 * or prints them (configuration_print.c). */
#ifndef SERVER_SETTING_H
#define SERVER_SETTING_H

#include <stddef.h>
#include <stdint.h>

#include "server/configuration.h"

enum setting_type { SETTING_TEXT, SETTING_LIST, SETTING_FLAG, SETTING_NUMBER };

struct setting {
	const char *name;
	enum setting_type type;
	size_t offset;
	const char *standard;
	uint64_t least;
	uint64_t most;
	const char *unit;
	const char *help;
};

extern const struct setting settings[];
extern const size_t setting_count;

/* Prints "--name", with '-' for each '_'. */
void setting_print_flag(const struct setting *setting, struct buffer *out);
/* Prints the name in upper case, as it follows DELTABUCKET_ in the environment. */
void setting_print_upper(const char *name, struct buffer *out);

#endif
