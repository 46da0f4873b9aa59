#include "server/folder_entry.h"

#include <stddef.h>
#include <string.h>

/* `tls` may have been opened on purpose for clients on the same machine, and its key has mode 0600
 * anyway; data_folder checks the master key. */
static const struct folder_entry {
	const char *name;
	bool is_private;
} entries[] = {
	{"acknowledged", true},
	{"backup", true},
	{"backup-holds", true},
	{"before-migration", true},
	{"cache", true},
	{"catalog.db", true},
	{"chunks.db", true},
	{"control.sock", false},
	{"journal", true},
	{"lock", true},
	{"master.key", false},
	{"packs", true},
	{"packs.place", true},
	{"rebuilding.db", true},
	{"restoring", true},
	{"scratch", true},
	{"scrub", true},
	{"set-aside", true},
	{"tls", false},
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

/* Behind the name of an entry. */
static const char *const endings[] = {"-wal", "-shm", "-journal", ".damaged", ".tmp-"};

static bool is_ending(const char *text);

bool folder_entry_is_known(const char *name)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		const size_t len = strlen(entries[i].name);
		if (strncmp(name, entries[i].name, len) == 0 &&
			(name[len] == '\0' || is_ending(name + len)))
			return true;
	}
	return false;
}

bool folder_entry_is_private(const char *name)
{
	for (size_t i = 0; i < ENTRIES; i++)
		if (entries[i].is_private &&
			strncmp(name, entries[i].name, strlen(entries[i].name)) == 0)
			return true;
	return false;
}

static bool is_ending(const char *text)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strncmp(text, endings[i], strlen(endings[i])) == 0)
			return true;
	return false;
}
