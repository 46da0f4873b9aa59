/* Dates are written and read from tables, because strftime and strptime follow the locale and these
 * formats do not. The calendar is computed here, because gmtime_r takes a lock that all threads
 * share. */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

enum { MS_PER_SECOND = 1000, US_PER_SECOND = 1000000, NS_PER_US = 1000, NS_PER_MS = 1000000 };

static const char *const day_names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const month_names[] = {
	"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* The types are narrow, so that no value of theirs overflows the fixed texts below. */
struct calendar {
	uint16_t year, ms;
	uint8_t month, day, weekday, hour, minute, second;
};

enum {
	SECONDS_PER_DAY = 86400,
	DAYS_PER_400_YEARS = 146097,
	DAYS_PER_CENTURY = 36524,
	DAYS_PER_4_YEARS = 1461,
	DAYS_PER_YEAR = 365
};

struct date {
	int year, month, day, hour, minute, second, ms;
	int offset_minutes;
};

static int64_t now_ms(clockid_t id);
static int64_t clock_system_wall_ms(const struct clock_source *source);
static int64_t clock_system_monotonic_ms(const struct clock_source *source);
static int64_t clock_fake_ms(const struct clock_source *source);
static struct calendar calendar_of(int64_t wall_ms);
static void set_day(struct calendar *calendar, uint32_t day);
static void set_time(struct calendar *calendar, uint32_t second);
static char *write_text(char *at, const char *text);
static char *write_byte(char *at, char byte);
static char *write_digits(char *at, uint32_t value, size_t digits);
static bool parse_whole(struct span text, const char *pattern, int64_t *out_ms);
static bool read_date(struct span *rest, const char *pattern, struct date *date);
static bool read_field(struct span *rest, char field, struct date *date);
static bool read_number(struct span *rest, size_t digits, int *out);
static bool read_name(struct span *rest, const char *const names[], int count, int *out);
static bool read_literal(struct span *rest, char wanted);
static bool date_to_ms(const struct date *date, int64_t *out_ms);
static int days_in_month(int year, int month);
static bool parse_iso(struct span text, int64_t *out_ms);
static bool read_fraction(struct span *rest, int *out_ms);
static bool read_zone(struct span *rest, int *out_minutes);

int64_t clock_wall_ms(void)
{
	return now_ms(CLOCK_REALTIME);
}

int64_t clock_monotonic_ms(void)
{
	return now_ms(CLOCK_MONOTONIC);
}

int64_t clock_monotonic_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * US_PER_SECOND + now.tv_nsec / NS_PER_US;
}

const struct clock_source *clock_system(void)
{
	static const struct clock_source source = {clock_system_wall_ms, clock_system_monotonic_ms};
	return &source;
}

void clock_fake_init(struct clock_fake *fake, int64_t start_ms)
{
	fake->source = (struct clock_source){clock_fake_ms, clock_fake_ms};
	atomic_init(&fake->now_ms, start_ms);
}

void clock_format_http(int64_t wall_ms, char out[CLOCK_TEXT_BYTES])
{
	const struct calendar c = calendar_of(wall_ms);
	char *at = write_text(write_text(out, day_names[c.weekday]), ", ");
	at = write_byte(write_digits(at, c.day, 2), ' ');
	at = write_byte(write_text(at, month_names[c.month - 1]), ' ');
	at = write_byte(write_digits(at, c.year, 4), ' ');
	at = write_byte(write_digits(at, c.hour, 2), ':');
	at = write_byte(write_digits(at, c.minute, 2), ':');
	at = write_text(write_digits(at, c.second, 2), " GMT");
	*at = '\0';
}

void clock_format_iso(int64_t wall_ms, char out[CLOCK_TEXT_BYTES])
{
	const struct calendar c = calendar_of(wall_ms);
	char *at = write_byte(write_digits(out, c.year, 4), '-');
	at = write_byte(write_digits(at, c.month, 2), '-');
	at = write_byte(write_digits(at, c.day, 2), 'T');
	at = write_byte(write_digits(at, c.hour, 2), ':');
	at = write_byte(write_digits(at, c.minute, 2), ':');
	at = write_byte(write_digits(at, c.second, 2), '.');
	at = write_byte(write_digits(at, c.ms, 3), 'Z');
	*at = '\0';
}

void clock_format_amz(int64_t wall_ms, char out[CLOCK_TEXT_BYTES])
{
	const struct calendar c = calendar_of(wall_ms);
	char *at = write_digits(write_digits(write_digits(out, c.year, 4), c.month, 2), c.day, 2);
	at = write_digits(write_byte(at, 'T'), c.hour, 2);
	at = write_byte(write_digits(write_digits(at, c.minute, 2), c.second, 2), 'Z');
	*at = '\0';
}

bool clock_parse_http(struct span text, int64_t *out_ms)
{
	return parse_whole(text, "%a, %d %b %Y %H:%M:%S GMT", out_ms) || parse_iso(text, out_ms);
}

bool clock_parse_amz(struct span text, int64_t *out_ms)
{
	return parse_whole(text, "%Y%m%dT%H%M%SZ", out_ms);
}

static int64_t now_ms(clockid_t id)
{
	struct timespec now;
	const int result = clock_gettime(id, &now);
	ASSERT(result == 0);
	return (int64_t)now.tv_sec * MS_PER_SECOND + now.tv_nsec / NS_PER_MS;
}

static int64_t clock_system_wall_ms(const struct clock_source *source)
{
	(void)source;
	return clock_wall_ms();
}

static int64_t clock_system_monotonic_ms(const struct clock_source *source)
{
	(void)source;
	return clock_monotonic_ms();
}

static int64_t clock_fake_ms(const struct clock_source *source)
{
	return atomic_load(&((const struct clock_fake *)source)->now_ms);
}

/* Times outside the years 0 to 9999, which no format here can hold, become the nearest time
 * inside. */
static struct calendar calendar_of(int64_t wall_ms)
{
	const int64_t first_ms = INT64_C(-62167219200000);
	const int64_t last_ms = INT64_C(253402300799999);
	const int64_t bounded = wall_ms < first_ms ? first_ms
		: wall_ms > last_ms                ? last_ms
						   : wall_ms;
	const int64_t ms = (bounded % MS_PER_SECOND + MS_PER_SECOND) % MS_PER_SECOND;
	/* since the year 0: never negative */
	const int64_t seconds = (bounded - first_ms - ms) / MS_PER_SECOND;
	ASSERT(seconds >= 0);
	struct calendar calendar = {.ms = (uint16_t)ms};
	set_day(&calendar, (uint32_t)(seconds / SECONDS_PER_DAY));
	set_time(&calendar, (uint32_t)(seconds % SECONDS_PER_DAY));
	return calendar;
}

/* Sets the date from days since 1 January of the year 0, a Saturday. Years are counted from March
 * here, so that the leap day is the last day of its year, of its four years, of its century and of
 * its 400 years. */
static void set_day(struct calendar *calendar, uint32_t day)
{
	/* 60: January and February of the year 0, a leap year */
	const uint32_t since_march = day + DAYS_PER_400_YEARS - 60;
	uint32_t rest = since_march % DAYS_PER_400_YEARS;
	const uint32_t century = rest / DAYS_PER_CENTURY < 3 ? rest / DAYS_PER_CENTURY : 3;
	rest -= century * DAYS_PER_CENTURY;
	const uint32_t four = rest / DAYS_PER_4_YEARS;
	rest -= four * DAYS_PER_4_YEARS;
	const uint32_t one = rest / DAYS_PER_YEAR < 3 ? rest / DAYS_PER_YEAR : 3;
	rest -= one * DAYS_PER_YEAR;
	/* five months from March, and again from August, have 153 days */
	const uint32_t month = (5 * rest + 2) / 153;
	const uint32_t year = since_march / DAYS_PER_400_YEARS * 400 + century * 100 + four * 4 +
		one + (month >= 10 ? 1 : 0);
	calendar->year = (uint16_t)(year - 400);
	calendar->month = (uint8_t)(month < 10 ? month + 3 : month - 9);
	calendar->day = (uint8_t)(rest - (153 * month + 2) / 5 + 1);
	calendar->weekday = (uint8_t)((day + 6) % 7);
}

static void set_time(struct calendar *calendar, uint32_t second)
{
	calendar->hour = (uint8_t)(second / 3600);
	calendar->minute = (uint8_t)(second / 60 % 60);
	calendar->second = (uint8_t)(second % 60);
}

static char *write_text(char *at, const char *text)
{
	const size_t len = strlen(text);
	memcpy(at, text, len);
	return at + len;
}

static char *write_byte(char *at, char byte)
{
	*at = byte;
	return at + 1;
}

/* The fields have fixed widths, and a page of a listing has a thousand dates: storing digits is
 * faster than printing them. */
static char *write_digits(char *at, uint32_t value, size_t digits)
{
	uint32_t rest = value;
	for (size_t i = digits; i > 0; i--) {
		at[i - 1] = (char)('0' + rest % 10);
		rest /= 10;
	}
	return at + digits;
}

static bool parse_whole(struct span text, const char *pattern, int64_t *out_ms)
{
	struct date date = {0};
	struct span rest = text;
	return read_date(&rest, pattern, &date) && rest.len == 0 && date_to_ms(&date, out_ms);
}

/* Reads from the front by a pattern in the letters of strptime. Unlike there, every field has its
 * full width and a space matches only itself. */
static bool read_date(struct span *rest, const char *pattern, struct date *date)
{
	for (const char *at = pattern; *at != '\0'; at++) {
		const bool is_field = *at == '%';
		if (is_field)
			at++;
		if (!(is_field ? read_field(rest, *at, date) : read_literal(rest, *at)))
			return false;
	}
	return true;
}

static bool read_field(struct span *rest, char field, struct date *date)
{
	int ignored;
	bool read;
	switch (field) {
	case 'Y':
		return read_number(rest, 4, &date->year);
	case 'm':
		return read_number(rest, 2, &date->month);
	case 'd':
		return read_number(rest, 2, &date->day);
	case 'H':
		return read_number(rest, 2, &date->hour);
	case 'M':
		return read_number(rest, 2, &date->minute);
	case 'S':
		return read_number(rest, 2, &date->second);
	case 'a':
		return read_name(rest, day_names, 7, &ignored);
	case 'b':
		read = read_name(rest, month_names, 12, &date->month);
		date->month++;
		return read;
	default:
		return false;
	}
}

static bool read_number(struct span *rest, size_t digits, int *out)
{
	uint64_t value = 0;
	if (rest->len < digits || !span_parse_u64(span_slice(*rest, 0, digits), &value))
		return false;
	*out = (int)value;
	*rest = span_slice(*rest, digits, rest->len);
	return true;
}

static bool read_name(struct span *rest, const char *const names[], int count, int *out)
{
	enum { NAME_BYTES = 3 };
	for (int i = 0; i < count; i++) {
		if (!span_equal_text(span_slice(*rest, 0, NAME_BYTES), names[i]))
			continue;
		*out = i;
		*rest = span_slice(*rest, NAME_BYTES, rest->len);
		return true;
	}
	return false;
}

static bool read_literal(struct span *rest, char wanted)
{
	if (rest->len == 0 || rest->data[0] != (uint8_t)wanted)
		return false;
	*rest = span_slice(*rest, 1, rest->len);
	return true;
}

/* Second 60 is a leap second, which counts as the first second of the next minute. */
static bool date_to_ms(const struct date *date, int64_t *out_ms)
{
	if (date->month < 1 || date->month > 12 || date->day < 1 ||
		date->day > days_in_month(date->year, date->month))
		return false;
	if (date->hour > 23 || date->minute > 59 || date->second > 60)
		return false;
	struct tm parts = {
		.tm_year = date->year - 1900,
		.tm_mon = date->month - 1,
		.tm_mday = date->day,
		.tm_hour = date->hour,
		.tm_min = date->minute - date->offset_minutes,
		.tm_sec = date->second,
	};
	*out_ms = (int64_t)timegm(&parts) * MS_PER_SECOND + date->ms;
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	ASSERT(month >= 1 && month <= 12);
	const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static bool parse_iso(struct span text, int64_t *out_ms)
{
	struct date date = {0};
	struct span rest = text;
	if (!read_date(&rest, "%Y-%m-%dT%H:%M:%S", &date))
		return false;
	if (read_literal(&rest, '.') && !read_fraction(&rest, &date.ms))
		return false;
	return read_zone(&rest, &date.offset_minutes) && rest.len == 0 && date_to_ms(&date, out_ms);
}

/* Reads ".123456" as 123: digits after the third are dropped. */
static bool read_fraction(struct span *rest, int *out_ms)
{
	int ms = 0;
	size_t digits = 0;
	for (; digits < rest->len && rest->data[digits] >= '0' && rest->data[digits] <= '9';
		digits++)
		if (digits < 3)
			ms = ms * 10 + (rest->data[digits] - '0');
	for (size_t i = digits; i < 3; i++)
		ms *= 10;
	*rest = span_slice(*rest, digits, rest->len);
	*out_ms = ms;
	return digits > 0;
}

static bool read_zone(struct span *rest, int *out_minutes)
{
	struct date offset = {0};
	if (read_literal(rest, 'Z'))
		return true;
	const bool west = rest->len > 0 && rest->data[0] == '-';
	if (!read_literal(rest, west ? '-' : '+') || !read_date(rest, "%H:%M", &offset) ||
		offset.hour > 23 || offset.minute > 59)
		return false;
	*out_minutes = (west ? -1 : 1) * (60 * offset.hour + offset.minute);
	return true;
}
