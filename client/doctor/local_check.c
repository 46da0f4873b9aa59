#include "client/doctor/local_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/quantity.h"
#include "client/remote/run_name.h"

enum {
	PATH_MAX_BYTES = 4096,
	NO_ROOM_BYTES = 64 * 1024 * 1024,
	LITTLE_ROOM_BYTES = 1024 * 1024 * 1024,
	FILES_WANTED = 1024,
};

static bool find_existing(const char *folder, char out[PATH_MAX_BYTES]);
static void check_room(struct checkup *checkup, const char *name, const char *folder,
	const char *existing, uint64_t wanted);
static bool is_mode(const char *mode);

void local_check_folder(
	struct checkup *checkup, const char *name, const char *folder, uint64_t wanted)
{
	char existing[PATH_MAX_BYTES];
	struct error err = {0};
	if (!find_existing(folder, existing)) {
		errno = ENOENT;
		error_set_errno(&err, "%s", folder);
	} else if (access(existing, W_OK | X_OK) != 0) {
		error_set_errno(&err, "%s cannot be written", existing);
	} else {
		check_room(checkup, name, folder, existing, wanted);
		return;
	}
	checkup_fail(checkup, name, "give the folder to this user, or choose another", &err);
}

/* The folder itself, or the nearest above it that exists. */
static bool find_existing(const char *folder, char out[PATH_MAX_BYTES])
{
	if (strlen(folder) >= PATH_MAX_BYTES || folder[0] == '\0')
		return false;
	snprintf(out, PATH_MAX_BYTES, "%s", folder);
	while (access(out, F_OK) != 0) {
		char *const slash = strrchr(out, '/');
		if (slash == NULL)
			snprintf(out, PATH_MAX_BYTES, ".");
		else
			slash[slash == out ? 1 : 0] = '\0';
		if (errno != ENOENT && errno != ENOTDIR)
			return false;
	}
	return true;
}

static void check_room(struct checkup *checkup, const char *name, const char *folder,
	const char *existing, uint64_t wanted)
{
	struct statvfs room;
	struct error err = {0};
	char free_text[QUANTITY_TEXT_BYTES];
	char wanted_text[QUANTITY_TEXT_BYTES];
	const char *const advice =
		"remove what is not needed there, or choose a folder on another disk";
	if (statvfs(existing, &room) != 0) {
		error_set_errno(&err, "asking for the room in %s", existing);
		checkup_fail(checkup, name, NULL, &err);
		return;
	}
	const uint64_t left = (uint64_t)room.f_bavail * room.f_frsize;
	quantity_format(left, free_text);
	quantity_format(wanted, wanted_text);
	error_set(&err, ERROR_NO_SPACE, "%s has %s free", folder, free_text);
	if (left < NO_ROOM_BYTES)
		checkup_fail(checkup, name, advice, &err);
	else if (wanted > left)
		checkup_warn(
			checkup, name, advice, "%s; a checkpoint has %s", err.text, wanted_text);
	else if (left < LITTLE_ROOM_BYTES)
		checkup_warn(checkup, name, advice, "%s", err.text);
	else
		checkup_ok(checkup, name, "%s", err.text);
}

void local_check_state(struct checkup *checkup, uint64_t wanted)
{
	const char *const state_home = getenv("XDG_STATE_HOME");
	const char *const home = getenv("HOME");
	const bool has_state_home = state_home != NULL && state_home[0] == '/';
	char path[PATH_MAX_BYTES];
	if (!has_state_home && (home == NULL || home[0] != '/')) {
		checkup_warn(checkup, "state", "set HOME, or give publish --state DIR",
			"there is no home folder for publish to keep its state in");
		return;
	}
	snprintf(path, sizeof(path), "%s%s/deltabucket", has_state_home ? state_home : home,
		has_state_home ? "" : "/.local/state");
	local_check_folder(checkup, "state", path, wanted);
}

void local_check_limits(struct checkup *checkup)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	if (files.rlim_cur < FILES_WANTED)
		checkup_warn(checkup, "open files", "ulimit -n 4096",
			"a process may have %" PRIu64
			" open; many shards and connections need more",
			(uint64_t)files.rlim_cur);
	else
		checkup_ok(checkup, "open files", "a process may have %" PRIu64,
			(uint64_t)files.rlim_cur);
}

void local_check_engine(struct checkup *checkup, uint64_t wanted)
{
	const char *const run = getenv("DELTABUCKET_RUN");
	const char *const into = getenv("DELTABUCKET_INTO");
	const char *const mode = getenv("DELTABUCKET_PAUSE");
	struct run_name name = {0};
	struct error err = {0};
	if (run != NULL && run[0] != '\0' && run_name_init(&name, run, &err) != 0)
		checkup_fail(checkup, "engine", "set DELTABUCKET_RUN=BUCKET/RUN", &err);
	run_name_release(&name);
	if (mode != NULL && !is_mode(mode)) {
		error_set(&err, ERROR_INVALID, "DELTABUCKET_PAUSE is \"%s\"", mode);
		checkup_fail(checkup, "engine", "set it to keep, wait or abort", &err);
	}
	if (into != NULL && into[0] != '\0')
		local_check_folder(checkup, "engine", into, wanted);
	if (into != NULL && into[0] != '\0' && (run == NULL || run[0] == '\0'))
		checkup_warn(checkup, "engine", "set DELTABUCKET_RUN=BUCKET/RUN too",
			"DELTABUCKET_INTO is set without DELTABUCKET_RUN: vLLM's plug-in does nothing");
}

static bool is_mode(const char *mode)
{
	return strcmp(mode, "keep") == 0 || strcmp(mode, "wait") == 0 || strcmp(mode, "abort") == 0;
}
