/* Where the command line has its settings from: the config file, its mode and profile, the
 * environment, and variables that nothing reads. */
#ifndef CLIENT_DOCTOR_SETTINGS_CHECK_H
#define CLIENT_DOCTOR_SETTINGS_CHECK_H

#include "client/doctor/checkup.h"
#include "client/terminal/options.h"

/* Completes the options (options_complete). False when there is no server to ask: the config file
 * is wrong, or no endpoint is set. */
bool settings_check(struct checkup *checkup, struct options *options);

#endif
