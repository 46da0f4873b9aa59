/* COMMANDS has a row for each command, in the order in which help lists them. A name that is not in
 * it is first looked up among the names that other programs use, then compared with all command
 * names, to suggest the nearest one. */
#include "client/commands/command_table.h"

#include <string.h>

#include "base/near_word.h"

static const struct command COMMANDS[] = {
	{"publish", COMMAND_PUBLISH, command_publish, 0, 1, 8,
		"--run BUCKET/RUN (CHECKPOINT | --watch FOLDER)",
		"make a checkpoint (file or folder) the run's next step",
		"deltabucket publish --run models/policy --create-bucket checkpoint/\n"
		"deltabucket publish --run models/policy --step 12 --label iter_1200 checkpoint/\n"
		"deltabucket publish --run models/policy --watch outputs/weights --marker STABLE\n"},
	{"follow", COMMAND_FOLLOW, command_follow, 0, 0, 4, "--run BUCKET/RUN --into DIR",
		"keep DIR/current on the newest step",
		"deltabucket follow --run models/policy --into /srv/weights --exec './reload $DELTABUCKET_PATH'\n"
		"deltabucket follow --run models/policy --into /srv/weights --once --wait 60\n"},
	{"diff", COMMAND_DIFF, command_diff, 3, 3, 0, "BASE NEW OUT",
		"write the delta from one checkpoint to another",
		"deltabucket diff step_1.safetensors step_2.safetensors step_2.delta\n"},
	{"apply", COMMAND_APPLY, command_apply, 3, 3, 0, "BASE DELTA OUT",
		"write the checkpoint that a delta makes of its base",
		"deltabucket apply step_1.safetensors step_2.delta step_2.safetensors\n"},
	{"fold", COMMAND_FOLD, command_fold, 2, OPTIONS_ARGUMENTS_MAX, 0,
		"[--base CHECKPOINT] DELTA... OUT",
		"make one delta of several that follow on one another",
		"deltabucket fold --base step_1.safetensors 2.delta 3.delta 1-3.delta\n"},
	{"transcode", COMMAND_TRANSCODE, command_transcode, 2, 2, 0,
		"--base CHECKPOINT --to FORMAT DELTA OUT", "write a delta in another format",
		"deltabucket transcode --base step_1.safetensors --to trl-gap 2.delta 2.trl.safetensors\n"},
	{"inspect", COMMAND_INSPECT, command_inspect, 1, 1, 0, "PATH",
		"say what a checkpoint or delta is",
		"deltabucket inspect --tensors checkpoint/\n"
		"deltabucket inspect --stats --base step_1.safetensors step_2.delta\n"},
	{"put", COMMAND_PUT, command_put, 2, 2, 8, "FILE BUCKET/KEY", "upload a file, or stdin (-)",
		"deltabucket put model.safetensors weights/\n"
		"tar c logs | deltabucket put - weights/logs.tar\n"},
	{"get", COMMAND_GET, command_get, 1, 2, 8, "BUCKET/KEY [FILE]",
		"download an object to a file, or stdout (-)",
		"deltabucket get weights/model.safetensors\n"
		"deltabucket get weights/logs.tar - | tar t\n"},
	{"cp", COMMAND_CP, command_cp, 2, 2, 8, "FROM TO",
		"copy a file to a bucket, an object to a file, or one object to another",
		"deltabucket cp ./model.safetensors weights/\n"
		"deltabucket cp weights/model.safetensors ./\n"
		"deltabucket cp weights/model.safetensors archive/2026/model.safetensors\n"},
	{"sync", COMMAND_SYNC, command_sync, 2, 2, 8, "FROM TO",
		"make a prefix like a folder, or a folder like a prefix",
		"deltabucket sync ./checkpoints weights/checkpoints\n"
		"deltabucket sync weights/checkpoints ./copy --delete\n"},
	{"ls", COMMAND_LS, command_ls, 0, 1, 3, "[BUCKET[/PREFIX]]", "list buckets or objects",
		"deltabucket ls -l\n"
		"deltabucket ls -r weights/checkpoints/\n"},
	{"rm", COMMAND_RM, command_rm, 1, OPTIONS_ARGUMENTS_MAX, 3, "BUCKET/KEY...",
		"remove objects",
		"deltabucket rm weights/model.safetensors\n"
		"deltabucket rm -r weights/checkpoints --dry-run\n"},
	{"mb", COMMAND_MB, command_mb, 1, OPTIONS_ARGUMENTS_MAX, 3, "BUCKET...", "make buckets",
		"deltabucket mb weights\n"},
	{"rb", COMMAND_RB, command_rb, 1, OPTIONS_ARGUMENTS_MAX, 3, "BUCKET...", "remove buckets",
		"deltabucket rb weights\n"
		"deltabucket rb --force weights\n"},
	{"runs", COMMAND_RUNS, command_runs, 0, OPTIONS_ARGUMENTS_MAX, 3,
		"[ls] [BUCKET] | add BUCKET/RUN | settings BUCKET/RUN [KEY=VALUE...] | rm BUCKET/RUN",
		"list runs; add one; show or set the settings of one; end one",
		"deltabucket runs ls\n"
		"deltabucket runs add models/policy\n"
		"deltabucket runs settings models/policy keep_steps=20\n"
		"deltabucket runs rm models/policy\n"},
	{"steps", COMMAND_STEPS, command_steps, 1, 1, 3, "BUCKET/RUN", "list the steps of a run",
		"deltabucket steps models/policy --limit 5\n"},
	{"replicas", COMMAND_REPLICAS, command_replicas, 1, 1, 3, "BUCKET/RUN",
		"list the workers of a run: state, step, how far behind",
		"deltabucket replicas models/policy --watch 5\n"},
	{"watch", COMMAND_WATCH, command_watch, 1, 1, 3, "BUCKET/RUN",
		"show a run and its workers live, the farthest behind first",
		"deltabucket watch models/policy\n"
		"deltabucket watch models/policy --once\n"
		"deltabucket watch models/policy --json | jq .event\n"},
	{"fleet", COMMAND_FLEET, command_fleet, 2, 3, 3,
		"rollback BUCKET/RUN STEP | forward BUCKET/RUN",
		"hold all workers of a run at an earlier step; let them take the newest again",
		"deltabucket fleet rollback models/policy 1200\n"
		"deltabucket fleet forward models/policy\n"},
	{"pins", COMMAND_PINS, command_pins, 1, 4, 3, "BUCKET/RUN [add NAME STEP | rm NAME]",
		"list the steps that are kept by name, or change that",
		"deltabucket pins models/policy add best 1200\n"
		"deltabucket pins models/policy rm best\n"},
	{"status", COMMAND_STATUS, command_status, 0, 1, 3, "[BUCKET | BUCKET/RUN]",
		"the server, its runs and their fleets at a glance",
		"deltabucket status\n"
		"deltabucket status models/policy\n"},
	{"doctor", COMMAND_DOCTOR, command_doctor, 0, 1, 0, "[BUCKET | BUCKET/RUN]",
		"check settings, network, certificate, clock, key, grants and disk, and say what to do",
		"deltabucket doctor\n"
		"deltabucket doctor models/policy --into /srv/weights\n"},
	{"damage", COMMAND_DAMAGE, command_damage, 0, 0, 3, "",
		"the stored bytes that are known to be damaged, and what they touch (root only)",
		"deltabucket damage\n"
		"deltabucket damage --json\n"},
	{"keys", COMMAND_KEYS, command_keys, 0, 2, 3, "[add | rm KEY_ID]",
		"list, make or revoke keys (root only)",
		"deltabucket keys add --name workers --grant models/policy/=read,list\n"},
	{"login", COMMAND_LOGIN, command_login, 1, 1, 0, "ENDPOINT",
		"store a server's endpoint, CA and token (asked for, or on stdin) for later commands",
		"deltabucket login https://bucket.example:9000\n"
		"deltabucket login --profile lab --fingerprint sha256:... https://10.0.0.5:9000 < token\n"},
	{"logout", COMMAND_LOGOUT, command_logout, 0, 0, 0, "", "forget what login stored",
		"deltabucket logout --profile lab\n"},
	{"version", COMMAND_VERSION, command_version, 0, 0, 0, "", "say which version this is",
		"deltabucket version\n"},
};
enum { COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]) };

/* Names that other programs have for the same. */
static const struct {
	const char *word;
	const char *name;
} OTHER_NAMES[] = {
	{"upload", "put"},
	{"download", "get"},
	{"list", "ls"},
	{"dir", "ls"},
	{"remove", "rm"},
	{"delete", "rm"},
	{"del", "rm"},
	{"copy", "cp"},
	{"push", "publish"},
	{"pull", "follow"},
	{"top", "watch"},
	{"monitor", "watch"},
	{"check", "doctor"},
	{"workers", "replicas"},
	{"mkdir", "mb"},
	{"create", "mb"},
	{"rmdir", "rb"},
	{"tags", "pins"},
	{"rollback", "fleet"},
	{"forward", "fleet"},
	{"show", "inspect"},
	{"patch", "apply"},
	{"merge", "fold"},
};

static void find_near(struct near_word *near, const char *name);

const struct command *command_table(size_t *out_count)
{
	*out_count = COMMAND_COUNT;
	return COMMANDS;
}

const struct command *command_table_find(const char *name, struct error *err)
{
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	find_near(&near, name);
	error_set(err, ERROR_INVALID, "there is no command %.100s%s%s", name,
		near_word_hint(&near, hint),
		near.best == NULL ? "; `deltabucket help` lists them" : "");
	return NULL;
}

static void find_near(struct near_word *near, const char *name)
{
	near_word_begin(near, span_text(name));
	for (size_t i = 0; i < sizeof(OTHER_NAMES) / sizeof(OTHER_NAMES[0]); i++)
		if (strcmp(OTHER_NAMES[i].word, name) == 0) {
			near->best = OTHER_NAMES[i].name;
			return;
		}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		near_word_offer(near, COMMANDS[i].name);
	near_word_offer(near, "help");
}
