/* The settings of a run: one JSON object, in requests, in answers and as the catalog keeps it.
 * docs/PROTOCOL.md, "Settings of a run", is the normative text. A setting is a member of the struct
 * and a row of the table in the .c, which parses, bounds, prints and names it in refusals. */
#ifndef WIRE_RUN_SETTINGS_MESSAGE_H
#define WIRE_RUN_SETTINGS_MESSAGE_H

#include "base/format/json_node.h"

enum { RUN_SETTINGS_MAX_BYTES = 16 * 1024, RUN_KEEP_STEPS_DEFAULT = 64, RUN_LEASE_S_DEFAULT = 120 };
enum { RUN_PREFIX_MAX_BYTES = 512, RUN_DEPLOYMENT_MAX_BYTES = 128, RUN_WEBHOOK_MAX_BYTES = 1024 };

/* Whose convention a trainer follows that never heard of steps: numbers are those of the table of
 * words, and stored in the catalog. */
enum adopt_convention {
	ADOPT_NONE,
	ADOPT_TRL,
	ADOPT_SLIME,
	ADOPT_STITCH,
	ADOPT_HOT_LOAD /* never a setting */,
	ADOPT_MODELEXPRESS,
	ADOPT_SKYRL,
	ADOPT_PULSE
};

struct run_settings {
	uint64_t keep_steps; /* retention; 0: all */
	uint64_t lease_s;    /* how long a replica counts after it was last heard of; 10 to 86400 */
	bool verify;         /* published steps are decoded and proven in the background */
	bool view_trl;       /* steps are kept as TRL's readers want them, too */
	bool view_slime;     /* the same for slime's */
	uint64_t adopt;      /* enum adopt_convention */
	/* Where such a trainer's objects lie, and those of hot-loads: keys begin with it. "{run}"
	 * in it is the run's name. */
	char adopt_prefix[RUN_PREFIX_MAX_BYTES + 1];
	char hot_load[RUN_DEPLOYMENT_MAX_BYTES +
		1]; /* the deployment whose hot-loads are steps of this run; "": none */
	char hot_load_prefix[RUN_PREFIX_MAX_BYTES + 1];
	char webhook[RUN_WEBHOOK_MAX_BYTES + 1]; /* URL that is told of steps; "": none */
};

/* What a new run has. */
struct run_settings run_settings_default(void);
/* Changes the members that the object has, and no others. `strict` refuses unknown members, as a
 * request does; otherwise they are passed over, as in documents of a later version. invalid: no
 * object, unknown, of another type, out of bounds; then *settings may be half changed. */
int run_settings_merge(struct run_settings *settings, const struct json_node *object, bool strict,
	struct error *err);
/* The same from text. */
int run_settings_parse(
	struct run_settings *settings, struct span json, bool strict, struct error *err);
/* All of them, as an object. */
void run_settings_print(
	const struct run_settings *settings, const char *name, struct json_writer *writer);

/* A prefix setting with the run's name (at most 512 bytes) in the place of the first "{run}"; gives
 * its length. */
size_t run_settings_prefix(const char *setting, struct span run,
	char out[RUN_PREFIX_MAX_BYTES + RUN_PREFIX_MAX_BYTES]);

#endif
