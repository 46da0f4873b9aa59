/* The catalog's migrations, embedded: migration_list.c is made from migrations/ by
 * migrations/embed.sh. Forward only, numbered 1, 2, ... */
#ifndef STORAGE_START_MIGRATION_LIST_H
#define STORAGE_START_MIGRATION_LIST_H

#include <stddef.h>

struct migration {
	int number;       /* user_version once it has run */
	const char *name; /* the file's stem */
	const char *sql;
};
extern const struct migration migration_list[];
extern const size_t migration_count;

#endif
