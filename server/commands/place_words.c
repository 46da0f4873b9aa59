#include "server/commands/place_words.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/backup/backup_target.h"

static bool is_bucket(const char *place);
static bool is_in(const char *path, const char *folder);
static void real_path(const char *path, char out[PATH_MAX]);
static bool cut_name(char *path);

int place_words_check_to(const char *place, const char *data, struct error *err)
{
	if (backup_place_check(place, err) != 0)
		return -1;
	return is_bucket(place) || !is_in(place, data)
		? 0
		: error_set(err, ERROR_INVALID,
			  "%.200s is the data folder, or lies in it: name a place elsewhere, best on"
			  " another disk",
			  place);
}

int place_words_check_from(const char *place, const char *data, struct error *err)
{
	if (backup_place_check(place, err) != 0)
		return -1;
	if (is_bucket(place))
		return 0;
	if (is_in(place, data))
		return error_set(err, ERROR_INVALID,
			"the backup %.200s lies in the data folder %.200s: restore to a folder elsewhere",
			place, data);
	return !is_in(data, place)
		? 0
		: error_set(err, ERROR_INVALID,
			  "the data folder %.200s lies in the backup %.200s: restore to a folder elsewhere",
			  data, place);
}

static bool is_bucket(const char *place)
{
	return strncmp(place, "s3://", 5) == 0;
}

/* Or is that folder. */
static bool is_in(const char *path, const char *folder)
{
	char inner[PATH_MAX];
	char outer[PATH_MAX];
	real_path(path, inner);
	real_path(folder, outer);
	const size_t len = strcmp(outer, "/") == 0 ? 0 : strlen(outer);
	return strncmp(inner, outer, len) == 0 && (inner[len] == '/' || inner[len] == '\0');
}

/* What is not there yet follows on what is. */
static void real_path(const char *path, char out[PATH_MAX])
{
	char front[PATH_MAX];
	char found[PATH_MAX];
	snprintf(front, sizeof(front), "%s", path);
	while (realpath(front[0] != '\0' ? front : ".", found) == NULL && cut_name(front))
		;
	const char *rest = path + strlen(front);
	rest += strspn(rest, "/");
	const bool ends = *rest == '\0' || strcmp(found, "/") == 0;
	if (snprintf(out, PATH_MAX, "%s%s%s", found, ends ? "" : "/", rest) >= PATH_MAX)
		snprintf(out, PATH_MAX, "%s", path);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
}

/* False when there is none left: the path begins in the working folder. */
static bool cut_name(char *path)
{
	char *slash = strrchr(path, '/');
	const bool had_one = path[0] != '\0';
	if (slash == NULL)
		path[0] = '\0';
	else
		slash[slash == path && slash[1] != '\0' ? 1 : 0] = '\0';
	return had_one;
}
