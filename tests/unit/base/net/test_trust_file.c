#include "tests/unit/unit.h"

#include <stdio.h>

#include "base/net/trust_file.h"

static char paths[3][4096];
static const char *const PLACES[] = {paths[0], paths[1], paths[2], NULL};

static void touch(const char *path)
{
	FILE *const file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
}

START_TEST(the_first_place_that_can_be_read_is_taken)
{
	char *const scratch = unit_scratch_make();
	for (int i = 0; i < 3; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.pem", scratch, i);
	ck_assert_ptr_null(trust_file_instead("/of/another/system.pem", PLACES));
	touch(paths[2]);
	ck_assert_ptr_eq(trust_file_instead("/of/another/system.pem", PLACES), paths[2]);
	touch(paths[1]);
	ck_assert_ptr_eq(trust_file_instead("/of/another/system.pem", PLACES), paths[1]);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(a_file_of_its_own_that_can_be_read_stays)
{
	char *const scratch = unit_scratch_make();
	char own[4096];
	snprintf(own, sizeof(own), "%s/own.pem", scratch);
	snprintf(paths[0], sizeof(paths[0]), "%s/0.pem", scratch);
	touch(paths[0]);
	ck_assert_ptr_eq(trust_file_instead(own, PLACES), paths[0]);
	touch(own);
	ck_assert_ptr_null(trust_file_instead(own, PLACES));
	ck_assert_ptr_null(trust_file_instead(scratch, PLACES)); /* a folder of CAs */
	ck_assert_ptr_null(trust_file_instead(NULL, PLACES));
	unit_scratch_remove(scratch);
}
END_TEST

Suite *test_trust_file_suite(void);

Suite *test_trust_file_suite(void)
{
	Suite *const suite = suite_create("trust_file");
	TCase *const tcase = tcase_create("trust_file");
	tcase_add_test(tcase, the_first_place_that_can_be_read_is_taken);
	tcase_add_test(tcase, a_file_of_its_own_that_can_be_read_stays);
	suite_add_tcase(suite, tcase);
	return suite;
}
