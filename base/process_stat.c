#include "base/process_stat.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric_text.h"

enum { STAT_MAX_BYTES = 2048, MS_PER_SECOND = 1000, US_PER_SECOND = 1000000 };

static int64_t read_cpu_us(void);
static void read_stat(struct process_stat *out);
static int64_t started_at(unsigned long long ticks);
static int64_t count_fds(void);
static int64_t read_max_fds(void);
static void print(struct buffer *out, const char *name, const char *help, int64_t value);
static void print_seconds(
	struct buffer *out, const char *name, const char *type, const char *help, int64_t us);

void process_stat_read(struct process_stat *out)
{
	*out = (struct process_stat){.virtual_bytes = -1, .resident_bytes = -1, .started_ms = -1};
	out->cpu_us = read_cpu_us();
	read_stat(out);
	out->open_fds = count_fds();
	out->max_fds = read_max_fds();
}

void process_stat_print(const struct process_stat *stat, struct buffer *out)
{
	print_seconds(out, "process_cpu_seconds_total", "counter",
		"Time of processors that the process has used.", stat->cpu_us);
	print(out, "process_virtual_memory_bytes", "Address space of the process.",
		stat->virtual_bytes);
	print(out, "process_resident_memory_bytes", "Memory of the process that is in RAM.",
		stat->resident_bytes);
	print_seconds(out, "process_start_time_seconds", "gauge",
		"When the process began, in seconds since 1970.",
		stat->started_ms < 0 ? -1 : stat->started_ms * MS_PER_SECOND);
	print(out, "process_open_fds", "Open file descriptors.", stat->open_fds);
	print(out, "process_max_fds", "Most file descriptors that may be open.", stat->max_fds);
}

static int64_t read_cpu_us(void)
{
	struct rusage used;
	if (getrusage(RUSAGE_SELF, &used) != 0)
		return -1;
	return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_SECOND +
		used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* proc(5): fields 22 to 24 of /proc/self/stat. The second field is the name in parentheses, which
 * may have blanks in it. */
static void read_stat(struct process_stat *out)
{
	char text[STAT_MAX_BYTES];
	unsigned long long ticks = 0;
	unsigned long bytes = 0;
	long pages = 0;
	FILE *const file = fopen("/proc/self/stat", "re");
	if (file == NULL)
		return;
	const char *const line = fgets(text, sizeof(text), file);
	const char *const name_end = line != NULL ? strrchr(line, ')') : NULL;
	fclose(file);
	if (name_end == NULL ||
		sscanf(name_end + 1,
			" %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
			" %llu %lu %ld",
			&ticks, &bytes, &pages) != 3)
		return;
	out->started_ms = started_at(ticks);
	out->virtual_bytes = (int64_t)bytes;
	out->resident_bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* `ticks` count from the machine's start. */
static int64_t started_at(unsigned long long ticks)
{
	const long per_second = sysconf(_SC_CLK_TCK);
	struct timespec up;
	if (per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
		return -1;
	const int64_t up_ms = (int64_t)up.tv_sec * MS_PER_SECOND + up.tv_nsec / (US_PER_SECOND);
	return clock_wall_ms() - up_ms +
		(int64_t)(ticks * MS_PER_SECOND / (unsigned long)per_second);
}

/* Without the one that reads the folder. */
static int64_t count_fds(void)
{
	int64_t count = 0;
	DIR *const folder = opendir("/proc/self/fd");
	if (folder == NULL)
		return -1;
	for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count - 1;
}

static int64_t read_max_fds(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return -1;
	return (int64_t)limit.rlim_cur;
}

static void print(struct buffer *out, const char *name, const char *help, int64_t value)
{
	if (value < 0)
		return;
	metric_text_family(out, name, "gauge", help);
	metric_text_number(out, name, span_of(NULL, 0), value);
}

static void print_seconds(
	struct buffer *out, const char *name, const char *type, const char *help, int64_t us)
{
	if (us < 0)
		return;
	metric_text_family(out, name, type, help);
	metric_text_millionths(out, name, span_of(NULL, 0), us);
}
