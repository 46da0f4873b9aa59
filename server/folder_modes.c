/* The files are those of folder_entry.h. Others in the folder are not changed. */
#include "server/folder_modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "server/data_folder.h"
#include "server/folder_entry.h"

enum { OTHERS = S_IRWXG | S_IRWXO, MODE_TEXT_BYTES = 8 };

static void warn(struct log *log, const char *event, const char *path, mode_t mode);
static void narrow(const char *path, struct log *log);

void folder_modes_begin(void)
{
	umask(umask(OTHERS) | OTHERS);
}

void folder_modes_narrow(const char *folder, struct log *log)
{
	struct stat facts;
	struct error ignored = {0};
	char **names;
	size_t count;
	if (stat(folder, &facts) == 0 && (facts.st_mode & OTHERS) != 0)
		warn(log, "data_folder_open_to_others", folder, facts.st_mode);
	if (file_list(folder, &names, &count, &ignored) !=
		0) /* Opening the store will report it. */
		return;
	for (size_t i = 0; i < count; i++) {
		char *const path = data_folder_path(folder, names[i]);
		if (folder_entry_is_private(names[i]))
			narrow(path, log);
		free(path);
	}
	file_names_free(names, count);
}

static void warn(struct log *log, const char *event, const char *path, mode_t mode)
{
	char text[MODE_TEXT_BYTES];
	snprintf(text, sizeof(text), "%04o", mode & 07777U);
	const struct log_field fields[] = {log_text("path", path), log_text("mode", text)};
	if (log != NULL)
		log_event(log, LOG_WARNING, NULL, event, fields, sizeof(fields) / sizeof(*fields));
}

static void narrow(const char *path, struct log *log)
{
	struct stat facts;
	struct error err = {0};
	if (stat(path, &facts) != 0 || (facts.st_mode & OTHERS) == 0)
		return;
	if (chmod(path, facts.st_mode & 07777U & ~(mode_t)OTHERS) == 0) {
		warn(log, "file_was_open_to_others", path, facts.st_mode);
		return;
	}
	error_set_errno(&err, "%s is open to others and its mode cannot be changed", path);
	if (log != NULL)
		log_failure(log, LOG_WARNING, NULL, "file_stays_open_to_others", &err);
}
