/* The command line. One table of flags, with the commands that take them, drives the parser and the
 * help text. Endpoint, token and CA come from flags, then from DELTABUCKET_ENDPOINT,
 * DELTABUCKET_TOKEN and DELTABUCKET_CA, then from the config file
 * ($XDG_CONFIG_HOME/deltabucket/config or ~/.config/deltabucket/config). --profile or
 * DELTABUCKET_PROFILE names a profile in that file (profile.h). With --profile the environment does
 * not count. The file's token and CA are used only with the file's endpoint. */
#ifndef CLIENT_TERMINAL_OPTIONS_H
#define CLIENT_TERMINAL_OPTIONS_H

#include "base/buffer.h"

/* Bits, so that a flag can name all commands that take it. */
enum command_bit {
	COMMAND_PUBLISH = 1,
	COMMAND_FOLLOW = 2,
	COMMAND_DIFF = 4,
	COMMAND_APPLY = 8,
	COMMAND_INSPECT = 16,
	COMMAND_PUT = 32,
	COMMAND_GET = 64,
	COMMAND_LS = 128,
	COMMAND_RM = 256,
	COMMAND_RUNS = 512,
	COMMAND_STEPS = 1024,
	COMMAND_HELP = 2048,
	COMMAND_FOLD = 1 << 12,
	COMMAND_TRANSCODE = 1 << 13,
	COMMAND_WATCH = 1 << 14,
	COMMAND_DOCTOR = 1 << 15,
	COMMAND_SYNC = 1 << 16,
	COMMAND_REPLICAS = 1 << 17,
	COMMAND_PINS = 1 << 18,
	COMMAND_STATUS = 1 << 19,
	COMMAND_KEYS = 1 << 20,
	COMMAND_MB = 1 << 21,
	COMMAND_RB = 1 << 22,
	COMMAND_CP = 1 << 23,
	COMMAND_VERSION = 1 << 24,
	COMMAND_LOGIN = 1 << 25,
	COMMAND_LOGOUT = 1 << 26,
	COMMAND_DAMAGE = 1 << 27,
	COMMAND_FLEET = 1 << 28,
	COMMAND_REMOTE = COMMAND_PUBLISH | COMMAND_FOLLOW | COMMAND_PUT | COMMAND_GET | COMMAND_LS |
		COMMAND_RM | COMMAND_RUNS | COMMAND_STEPS | COMMAND_SYNC | COMMAND_REPLICAS |
		COMMAND_PINS | COMMAND_STATUS | COMMAND_KEYS | COMMAND_MB | COMMAND_RB |
		COMMAND_CP | COMMAND_DAMAGE | COMMAND_FLEET | COMMAND_WATCH | COMMAND_DOCTOR,
	/* main finds the server for these; doctor says what is wrong with it. */
	COMMAND_CONNECTED = COMMAND_REMOTE & ~COMMAND_DOCTOR,
	/* These resume where an earlier call ended. */
	COMMAND_GOES_ON =
		COMMAND_PUBLISH | COMMAND_FOLLOW | COMMAND_PUT | COMMAND_GET | COMMAND_SYNC,
	/* These take no file, so when the server calls something invalid, it is a word of the
	 * command line. */
	COMMAND_WORDS_ALONE = COMMAND_LS | COMMAND_RM | COMMAND_MB | COMMAND_RB | COMMAND_RUNS |
		COMMAND_STEPS | COMMAND_REPLICAS | COMMAND_PINS | COMMAND_STATUS | COMMAND_KEYS |
		COMMAND_DAMAGE | COMMAND_FLEET | COMMAND_WATCH,
	COMMAND_ALL = (1 << 29) - 1
};

enum { OPTIONS_LIST_MAX = 64, OPTIONS_ARGUMENTS_MAX = 1024 };

struct option_number {
	bool given;
	uint64_t value;
};

struct option_list {
	const char *items[OPTIONS_LIST_MAX];
	size_t count;
};

struct options {
	const char *endpoint; /* endpoint, token and ca are NULL when given nowhere */
	const char *token;
	const char *ca;
	bool json, quiet, help;
	const char *run, *into, *exec, *state, *label, *format, *anchor, *replica, *glob, *rank,
		*name, *namespace, *base, *to, *checksum, *profile, *fingerprint, *watch_folder,
		*marker;
	bool take_over, create_bucket, once, recursive, tensors, stats, delete, dry_run, plain,
		exist_ok, force, is_volatile, is_long;
	struct option_number step, keep_steps, keep, wait, poll, parallel, threads, retries, limit,
		epoch, ttl, watch;
	struct option_list metadata;                  /* "key=value", checked */
	struct option_list grants;                    /* "bucket/prefix=read,list" */
	struct option_list include;                   /* patterns of file names */
	struct option_list seeds;                     /* paths */
	const char *arguments[OPTIONS_ARGUMENTS_MAX]; /* the words that are not flags */
	size_t argument_count;
	/* endpoint, token and CA from the config file, and the endpoint without slashes at its end;
	 * options_release frees them */
	char *owned[4];
};

/* `words` are the words after the command; the options borrow them. Fails with invalid for an
 * unknown flag, a flag that this command does not take, and a missing or bad value. Flags and
 * arguments may mix; `--flag=value` works too, and so do joined letters (`-lr`); `--` ends the
 * flags. */
int options_parse(struct options *options, enum command_bit command, char *const *words,
	size_t count, struct error *err);
/* Whether --json is among the words: for a command line that could not be read. */
bool options_want_json(char *const *words, size_t count);
/* Sets *out_at to the index of the command among the words; only flags that every command has may
 * precede it, and any other flag is invalid. *out_at is `count` when there is no command. */
int options_find_command(char *const *words, size_t count, size_t *out_at, struct error *err);
/* Fills in endpoint, token and ca where flags did not set them. `config` is the path of the config
 * file, or NULL. A missing file is fine; a profile that the file lacks is invalid. */
int options_complete(struct options *options, const char *config, struct error *err);
/* Whether the endpoint has a scheme, https:// or http://. invalid otherwise, and says what would be
 * right. */
int options_check_endpoint(const char *endpoint, struct error *err);
/* Whether the token came from the config file. */
bool options_has_stored_token(const struct options *options);
/* The name from --profile, else from DELTABUCKET_PROFILE; NULL when neither is set. */
const char *options_profile(const struct options *options);
/* The path of the default config file; the caller frees it. NULL without a home folder. */
char *options_config_path(void);
void options_release(struct options *options);

/* Prints the flags of one command under two headings: its own, then those of every command. */
void options_print_help(enum command_bit command, struct buffer *out);

#endif
