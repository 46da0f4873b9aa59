/* The settings of a run: one JSON object, in requests, in answers and in the catalog.
 * docs/protocol/steps.md, "RunSettings", is the normative text. A setting is a member of the struct
 * and a row of the table in the .c file. The table parses, bounds and prints it and gives its name
 * in messages. */
#ifndef WIRE_RUN_SETTINGS_MESSAGE_H
#define WIRE_RUN_SETTINGS_MESSAGE_H

#include "base/format/json_node.h"

enum { RUN_SETTINGS_MAX_BYTES = 16 * 1024, RUN_KEEP_STEPS_DEFAULT = 64, RUN_LEASE_S_DEFAULT = 120 };
enum { RUN_PREFIX_MAX_BYTES = 512, RUN_DEPLOYMENT_MAX_BYTES = 128, RUN_WEBHOOK_MAX_BYTES = 1024 };

/* The convention of a trainer that does not know steps. The numbers are the places in the table of
 * words. The catalog stores them, so they never change. */
enum adopt_convention {
	ADOPT_NONE,
	ADOPT_TRL,
	ADOPT_SLIME,
	ADOPT_STITCH,
	ADOPT_HOT_LOAD, /* never a setting */
	ADOPT_MODELEXPRESS,
	ADOPT_SKYRL,
	ADOPT_PULSE
};

struct run_settings {
	uint64_t keep_steps; /* steps that retention keeps; 0: all */
	uint64_t lease_s;    /* seconds that a lease holds after a replica's report; 10 to 86400 */
	bool verify;         /* the server proves published steps in the background */
	bool view_trl;       /* the server keeps views of the steps for TRL's readers */
	bool view_slime;     /* the same for slime's readers */
	uint64_t adopt;      /* enum adopt_convention */
	/* the beginning of the keys of an adopted trainer's objects; "{run}" in it stands for the
	 * run's name */
	char adopt_prefix[RUN_PREFIX_MAX_BYTES + 1];
	/* the deployment whose hot-loads are steps of this run; "": none */
	char hot_load[RUN_DEPLOYMENT_MAX_BYTES + 1];
	/* as adopt_prefix, for the objects of hot-loads */
	char hot_load_prefix[RUN_PREFIX_MAX_BYTES + 1];
	char webhook[RUN_WEBHOOK_MAX_BYTES + 1]; /* URL that gets events about steps; "": none */
};

/* The settings of a new run. */
struct run_settings run_settings_default(void);
/* Changes the settings that are members of `object`. `strict` refuses unknown members, as requests
 * need it; otherwise they are ignored, as documents of a later version need it. Fails with invalid
 * when `object` is not an object, or a member is unknown, of another type or out of bounds;
 * *settings may then be half changed. */
int run_settings_merge(struct run_settings *settings, const struct json_node *object, bool strict,
	struct error *err);
/* The same from text. */
int run_settings_parse(
	struct run_settings *settings, struct span json, bool strict, struct error *err);
/* Prints all settings as an object. */
void run_settings_print(
	const struct run_settings *settings, const char *name, struct json_writer *writer);

/* Writes a prefix setting with the run's name in the place of the first "{run}" and returns its
 * length. A name over 512 bytes, which no run has, is cut. */
size_t run_settings_prefix(const char *setting, struct span run,
	char out[RUN_PREFIX_MAX_BYTES + RUN_PREFIX_MAX_BYTES]);

#endif
