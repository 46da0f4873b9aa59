/* `runs settings`, which command_runs calls. There are at least two arguments. */
#ifndef CLIENT_COMMANDS_COMMAND_SETTINGS_H
#define CLIENT_COMMANDS_COMMAND_SETTINGS_H

#include "client/commands/commands.h"

command_fn command_settings;

#endif
