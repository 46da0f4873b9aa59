#include "storage/backup/backup_target.h"

#include <string.h>
#include <strings.h>

static const char S3[] = "s3://";

static bool begins(const char *text, const char *front);
static bool has_scheme(const char *place);

/* A path of that form would be a folder "s3:" where the command was started. */
int backup_place_check(const char *place, struct error *err)
{
	static const char *const addresses[] = {"http:", "https:"};
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		if (begins(place, addresses[i]))
			return error_set(err, ERROR_INVALID,
				"%.200s is not a place. A bucket is s3://BUCKET/PREFIX, and the address of"
				" its service goes into AWS_ENDPOINT_URL_S3.",
				place);
	if (strncmp(place, S3, sizeof(S3) - 1) == 0 && strchr("/", place[sizeof(S3) - 1]) != NULL)
		return error_set(err, ERROR_INVALID,
			"%.200s names no bucket. A bucket is s3://BUCKET/PREFIX.", place);
	if (strncmp(place, S3, sizeof(S3) - 1) != 0 && (begins(place, "s3:") || has_scheme(place)))
		return error_set(err, ERROR_INVALID,
			"%.200s is not a place. A bucket is s3://BUCKET/PREFIX, and a folder of that name"
			" ./%.200s.",
			place, place);
	return 0;
}

struct backup_target *backup_target_open(
	const char *place, bool makes, const struct file_ops *files, struct error *err)
{
	if (backup_place_check(place, err) != 0)
		return NULL;
	if (strncmp(place, S3, sizeof(S3) - 1) == 0)
		return target_s3_open(place + sizeof(S3) - 1, err);
	return target_folder_open(place, makes, files, err);
}

void backup_target_free(struct backup_target *target)
{
	if (target != NULL)
		target->ops->free(target);
}

static bool begins(const char *text, const char *front)
{
	return strncasecmp(text, front, strlen(front)) == 0;
}

/* gs://, for example. */
static bool has_scheme(const char *place)
{
	const char *end = strstr(place, "://");
	return end != NULL && (size_t)(end - place) < strcspn(place, "/.");
}
