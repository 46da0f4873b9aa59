#include "tests/unit/unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_stat.h"

enum { MEMORY_BYTES = 64 * 1024 * 1024, HOUR_MS = 60 * 60 * 1000 };

START_TEST(what_the_system_counts_is_read)
{
	struct process_stat before, after;
	process_stat_read(&before);
	void *const memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	const int fd = open("/dev/null", O_RDONLY);
	process_stat_read(&after);
	close(fd);
	munmap(memory, MEMORY_BYTES);
	ck_assert_int_eq(after.open_fds, before.open_fds + 1);
	ck_assert_int_gt(after.max_fds, after.open_fds);
	ck_assert_int_gt(after.resident_bytes, before.resident_bytes + MEMORY_BYTES / 2);
	ck_assert_int_gt(after.virtual_bytes, after.resident_bytes);
	ck_assert_int_ge(after.cpu_us, before.cpu_us);
	ck_assert_int_le(after.started_ms, clock_wall_ms() + 1000);
	ck_assert_int_gt(after.started_ms, clock_wall_ms() - HOUR_MS);
}
END_TEST

START_TEST(what_is_unknown_is_left_out)
{
	const struct process_stat stat = {.cpu_us = 1500000,
		.virtual_bytes = -1,
		.resident_bytes = 4096,
		.started_ms = -1,
		.open_fds = -1,
		.max_fds = -1};
	struct buffer out;
	buffer_init(&out, 10000);
	process_stat_print(&stat, &out);
	ck_assert_ptr_nonnull(strstr(buffer_text(&out), "\nprocess_cpu_seconds_total 1.500000\n"));
	ck_assert_ptr_nonnull(strstr(buffer_text(&out), "\nprocess_resident_memory_bytes 4096\n"));
	ck_assert_ptr_null(strstr(buffer_text(&out), "virtual"));
	ck_assert_ptr_null(strstr(buffer_text(&out), "start_time"));
	ck_assert_ptr_null(strstr(buffer_text(&out), "fds"));
	buffer_release(&out);
}
END_TEST

Suite *test_process_stat_suite(void);
Suite *test_process_stat_suite(void)
{
	Suite *const suite = suite_create("process_stat");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, what_the_system_counts_is_read);
	tcase_add_test(tc, what_is_unknown_is_left_out);
	suite_add_tcase(suite, tc);
	return suite;
}
