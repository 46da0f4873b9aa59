/* The config file: `key = value` lines (endpoint, token, ca), # begins a comment. Lines before any
 * [NAME] are the profile `default`, those behind it the profile NAME. It holds tokens: written
 * 0600. */
#ifndef CLIENT_TERMINAL_PROFILE_H
#define CLIENT_TERMINAL_PROFILE_H

#include "base/file.h"

struct profile {
	char *endpoint; /* NULL: not said */
	char *token;
	char *ca; /* path */
};

/* Letters, digits, '.', '_' and '-', up to 64; invalid otherwise. */
int profile_check_name(const char *name, struct error *err);
/* `name` NULL: default. The whole file is checked: invalid names the line. 1: the profile is there,
 * 0: not, or there is no file. */
int profile_read(const char *path, const char *name, struct profile *out, struct error *err);
/* Puts the profile into the file; all else stays as it is. The folder is made when it is
 * missing. */
int profile_write(const struct file_ops *files, const char *path, const char *name,
	const struct profile *profile, struct error *err);
/* 1: it was there, 0: not. */
int profile_remove(
	const struct file_ops *files, const char *path, const char *name, struct error *err);
/* Whether others than its owner may read the file. */
bool profile_is_exposed(const char *path);
void profile_release(struct profile *profile); /* a zeroed one is fine */

#endif
