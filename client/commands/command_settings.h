/* What `runs` does when its first word is `settings`. */
#ifndef CLIENT_COMMANDS_COMMAND_SETTINGS_H
#define CLIENT_COMMANDS_COMMAND_SETTINGS_H

#include "client/commands/commands.h"

command_fn command_settings;

#endif
