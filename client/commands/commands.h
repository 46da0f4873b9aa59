/* One function for each command. It returns 0, or -1 with the error, which main prints and turns
 * into an exit code. main has checked the number of arguments against command_table.h. */
#ifndef CLIENT_COMMANDS_COMMANDS_H
#define CLIENT_COMMANDS_COMMANDS_H

#include "client/terminal/options.h"
#include "client/transfer/session.h"

typedef int command_fn(struct session *session, struct error *err);

command_fn command_publish;
command_fn command_follow;
command_fn command_diff;
command_fn command_fold;
command_fn command_transcode;
command_fn command_apply;
command_fn command_inspect;
command_fn command_put;
command_fn command_get;
command_fn command_cp;
command_fn command_ls;
command_fn command_rm;
command_fn command_mb;
command_fn command_rb;
command_fn command_runs;
command_fn command_steps;
command_fn command_sync;
command_fn command_replicas;
command_fn command_fleet;
command_fn command_pins;
command_fn command_status;
command_fn command_keys;
command_fn command_damage;
command_fn command_login;
command_fn command_logout;
command_fn command_doctor;
command_fn command_watch;
command_fn command_version;

#endif
