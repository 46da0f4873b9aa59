/* The config file has `key = value` lines (endpoint, token, ca); # begins a comment. Lines before
 * the first [NAME] belong to the profile `default`, lines after [NAME] to the profile NAME. The
 * file holds tokens, so it is written with mode 0600. */
#ifndef CLIENT_TERMINAL_PROFILE_H
#define CLIENT_TERMINAL_PROFILE_H

#include "base/file.h"

struct profile {
	char *endpoint; /* each of the three is NULL when the profile lacks it */
	char *token;
	char *ca; /* a path */
};

/* A name has up to 64 letters, digits, '.', '_' and '-' and does not begin with '.'; anything else
 * is invalid. */
int profile_check_name(const char *name, struct error *err);
/* Reads the profile `name`; NULL means `default`. Checks the whole file; an invalid error names the
 * line. 1 when the file has the profile; 0 when it has not, or does not exist. */
int profile_read(const char *path, const char *name, struct profile *out, struct error *err);
/* Writes the profile into the file and leaves everything else in it unchanged. Makes the folder
 * when it is missing. */
int profile_write(const struct file_ops *files, const char *path, const char *name,
	const struct profile *profile, struct error *err);
/* Removes the profile from the file. 1 when the file had it, 0 when it had not. */
int profile_remove(
	const struct file_ops *files, const char *path, const char *name, struct error *err);
/* Whether users other than its owner may read the file. */
bool profile_is_exposed(const char *path);
void profile_release(struct profile *profile); /* a zeroed one is fine */

#endif
