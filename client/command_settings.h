/* What `runs` does when its first word is `settings`. */
#ifndef CLIENT_COMMAND_SETTINGS_H
#define CLIENT_COMMAND_SETTINGS_H

#include "client/commands.h"

command_fn command_settings;

#endif
