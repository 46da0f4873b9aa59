#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

static const char seeds_variable[] = "DELTABUCKET_UNIT_SEEDS";

int unit_stride(int leap)
{
#ifdef DELTABUCKET_SANITIZED
	return leap;
#else
	return leap == 0 ? 0 : getenv("DELTABUCKET_UNIT_LEAPS") != NULL ? leap : 1;
#endif
}

/* Its path; whether it is there is for the caller to see. */
static char *make_folder(void)
{
	const char *const parent = getenv("TMPDIR");
	char *const folder = memory_new(4096);
	snprintf(folder, 4096, "%s/deltabucket-unit-XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(folder) == NULL)
		perror(folder);
	return folder;
}

char *unit_scratch_make(void)
{
	char *const folder = make_folder();
	ck_assert(file_exists(folder));
	return folder;
}

char *unit_seeds_make(void)
{
	if (getenv(seeds_variable) != NULL)
		return NULL;
	char *const folder = make_folder();
	setenv(seeds_variable, folder, 1);
	return folder;
}

void unit_seeds_remove(char *folder)
{
	struct error err = {0};
	if (folder == NULL)
		return;
	if (file_remove_tree(file_system(), folder, &err) != 0)
		fprintf(stderr, "%s\n", err.text);
	free(folder);
}

void unit_scratch_seed(const char *folder, const char *name, unit_make_fn *make)
{
	struct error err = {0};
	char seed[4200];
	char begun[sizeof(seed) + 32];
	char wanted[4200];
	snprintf(seed, sizeof(seed), "%s/%s", getenv(seeds_variable), name);
	snprintf(begun, sizeof(begun), "%s.%ld", seed, (long)getpid());
	snprintf(wanted, sizeof(wanted), "%s/%s", folder, name);
	if (!file_exists(seed)) {
		ck_assert_msg(make(begun, &err) == 0, "%s", err.text);
		ck_assert_int_eq(rename(begun, seed), 0);
	}
	ck_assert_msg(file_clone(file_system(), seed, wanted, &err) == 0, "%s", err.text);
}

char *unit_scratch_copy(const char *folder)
{
	char command[2400];
	char *const copy = unit_scratch_make();
	snprintf(command, sizeof(command), "cp -a %s/. %s", folder, copy);
	ck_assert_int_eq(system(command), 0);
	return copy;
}

void unit_scratch_remove(char *folder)
{
	struct error err = {0};
	ck_assert_msg(file_remove_tree(file_system(), folder, &err) == 0, "%s", err.text);
	free(folder);
}
