#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

int unit_stride(const int leap)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return leap;
#else
	return leap != 0;
#endif
}

char *unit_scratch_make(void)
{
	const char *const parent = getenv("TMPDIR");
	char *const folder = memory_new(4096);
	snprintf(folder, 4096, "%s/deltabucket-unit-XXXXXX", parent != NULL ? parent : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	return folder;
}

char *unit_scratch_copy(const char *const folder)
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
	ck_assert_msg(file_remove_tree(folder, &err) == 0, "%s", err.text);
	free(folder);
}
