/* Each entry of the folder must be one that a follower makes: a link into generations/, what a
 * command has told, the folder incoming/ with downloads, or generations/ with generations whose
 * sidecars name this endpoint and run. The sidecar is what proves a generation, because a
 * generation's name is only a number. */
#include "client/follow/follow_leftovers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/follow/hook_report.h"
#include "client/local/folder_files.h"
#include "client/transfer/catch_up.h"

struct leftovers {
	const char *folder;
	const char *endpoint;
	const char *run;
};

typedef int check_fn(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err);

static int check_each(
	const struct leftovers *leftovers, const char *folder, check_fn *check, struct error *err);
static int follow_leftovers_check_entry(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err);
static bool leads_to_generation(const char *link);
static int follow_leftovers_check_download(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err);
static int refuse(const struct leftovers *leftovers, const char *what, struct error *err);
static int follow_leftovers_check_generation(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err);
static bool is_from_run(const struct leftovers *leftovers, const char *sidecar);

int follow_leftovers_check(
	const char *folder, const char *endpoint, const char *run, struct error *err)
{
	ASSERT(folder != NULL && endpoint != NULL && run != NULL);
	const struct leftovers leftovers = {folder, endpoint, run};
	return check_each(&leftovers, folder, follow_leftovers_check_entry, err);
}

/* Checks each entry of a folder, up to the first one that is refused. */
static int check_each(
	const struct leftovers *leftovers, const char *folder, check_fn *check, struct error *err)
{
	char **names;
	size_t count;
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = folder_files_join(folder, names[i]);
		result = check(leftovers, path, names[i], err);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static int follow_leftovers_check_entry(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err)
{
	const bool is_link = strcmp(name, "current") == 0 || strcmp(name, "current.new") == 0;
	if (strcmp(name, "lost+found") == 0 || strcmp(name, HOOK_REPORT_NAME) == 0 ||
		(is_link && leads_to_generation(path)))
		return 0;
	if (strcmp(name, "incoming") == 0)
		return check_each(leftovers, path, follow_leftovers_check_download, err);
	if (strcmp(name, "generations") == 0)
		return check_each(leftovers, path, follow_leftovers_check_generation, err);
	return refuse(leftovers, name, err);
}

static bool leads_to_generation(const char *link)
{
	static const char START[] = "generations/";
	char target[sizeof(START)];
	const ssize_t length = readlink(link, target, sizeof(target));
	return length == (ssize_t)sizeof(target) && memcmp(target, START, sizeof(START) - 1) == 0;
}

/* Downloads and half-made checkpoints may be of any run: they are not used until they are
 * proven. */
static int follow_leftovers_check_download(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err)
{
	(void)path;
	return catch_up_owns(name) ? 0 : refuse(leftovers, name, err);
}

static int refuse(const struct leftovers *leftovers, const char *what, struct error *err)
{
	return error_set(err, ERROR_EXISTS,
		"%s holds files that deltabucket follow did not put there (%s); give an empty folder",
		leftovers->folder, what);
}

static int follow_leftovers_check_generation(
	const struct leftovers *leftovers, const char *path, const char *name, struct error *err)
{
	(void)name;
	const bool is_sidecar = span_ends_text(span_text(path), ".json");
	char sidecar[PATH_MAX];
	const int length =
		snprintf(sidecar, sizeof(sidecar), "%s%s", path, is_sidecar ? "" : ".json");
	if (length < (int)sizeof(sidecar) && is_from_run(leftovers, sidecar))
		return 0;
	return error_set(err, ERROR_EXISTS,
		"%s/.deltabucket, which names the run that is followed there, is missing, and "
		"nothing else says that %s belongs to run %s at %s; give an empty folder",
		leftovers->folder, path, leftovers->run, leftovers->endpoint);
}

/* Whether the sidecar says that its generation belongs to this run. */
static bool is_from_run(const struct leftovers *leftovers, const char *sidecar)
{
	struct buffer text;
	struct error ignored = {0};
	struct span endpoint;
	struct span run;
	buffer_init(&text, STEP_MESSAGE_MAX_BYTES);
	struct json_node *const root = file_read_all(sidecar, &text, &ignored) == 0
		? json_node_parse(buffer_span(&text), sidecar, &ignored)
		: NULL;
	const bool is = json_node_text(json_node_member(root, "endpoint"), &endpoint) &&
		json_node_text(json_node_member(root, "run"), &run) &&
		span_equal_text(endpoint, leftovers->endpoint) &&
		span_equal_text(run, leftovers->run);
	json_node_free(root);
	buffer_release(&text);
	return is;
}
