/* Checks of what settings name: folders, files, and whether a certificate fits its key. They open
 * no socket and change nothing, so they may run beside a server. Any thread. */
#ifndef SERVER_CONFIGURATION_CHECK_H
#define SERVER_CONFIGURATION_CHECK_H

#include "server/configuration.h"

struct configuration_check {
	const char *setting; /* that a message begins with */
	/* 0 also when the setting is not set, or so wrong that the reading has said so. */
	int (*run)(const struct configuration *configuration, struct error *err);
};
extern const struct configuration_check configuration_checks[];
extern const size_t configuration_check_count;

#endif
