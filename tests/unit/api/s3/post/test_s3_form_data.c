#include "tests/unit/unit.h"

#include <string.h>

#include "api/s3/post/form_data.h"
#include "base/buffer.h"

#define PART(name, value) \
	"--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define FILE_PART(value)                                                                                                     \
	"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n" value \
	"\r\n"

struct reader {
	struct buffer notes; /* the events: name=value; name=value; [file name]content */
	unsigned busy;       /* how often it gives SINK_WAIT before each piece of the file */
	unsigned waited;
};

static int take_field(void *owner, struct span name, struct span value, struct error *err)
{
	struct reader *const reader = owner;
	(void)err;
	buffer_format(&reader->notes, "%.*s=%.*s; ", (int)name.len, (const char *)name.data,
		(int)value.len, (const char *)value.data);
	return 0;
}

static int take_file(void *owner, struct span file_name, struct error *err)
{
	(void)err;
	buffer_format(&((struct reader *)owner)->notes, "[%.*s]", (int)file_name.len,
		(const char *)file_name.data);
	return 0;
}

static enum sink_result take_bytes(void *owner, struct span bytes, struct error *err)
{
	struct reader *const reader = owner;
	(void)err;
	if (reader->waited < reader->busy) {
		reader->waited++;
		return SINK_WAIT;
	}
	reader->waited = 0;
	buffer_add_span(&reader->notes, bytes);
	return SINK_TAKEN;
}

static enum sink_result push(struct form_data *form, struct span bytes, struct error *err)
{
	enum sink_result result;
	while ((result = form_data_write(form, bytes, err)) == SINK_WAIT)
		;
	return result;
}

static int read_split(
	struct reader *reader, struct span body, size_t cut, unsigned busy, struct error *err)
{
	const struct form_data_events events = {take_field, take_file, take_bytes, reader};
	struct arena *const arena = arena_new(1 << 20);
	struct form_data *const form = form_data_new(arena, span_text("B"), &events);
	*reader = (struct reader){.busy = busy};
	buffer_init(&reader->notes, 1 << 20);
	int outcome = -1;
	if (push(form, span_slice(body, 0, cut), err) == SINK_TAKEN &&
		push(form, span_slice(body, cut, body.len), err) == SINK_TAKEN)
		outcome = form_data_finish(form, err);
	form_data_free(form);
	arena_free(arena);
	return outcome;
}

static const struct {
	const char *body;
	const char *notes;
	enum error_kind error;
} forms[] = {
	{PART("key", "a") PART("acl", "private") FILE_PART("hello") "--B--\r\n",
		"key=a; acl=private; [f.txt]hello", ERROR_NONE},
	{FILE_PART("") "--B--", "[f.txt]", ERROR_NONE},
	{"preamble\r\n" PART("key", "") FILE_PART("x") "--B--\r\nepilogue --B", "key=; [f.txt]x",
		ERROR_NONE},
	{PART("key", "a\r\n--A\r\nb") FILE_PART("\r\n--\r\n-\r\r\n-B\r\n--") "--B--",
		"key=a\r\n--A\r\nb; [f.txt]\r\n--\r\n-\r\r\n-B\r\n--", ERROR_NONE},
	{PART("key", "a") FILE_PART("1") PART("later", "b") PART("key", "c") "--B--",
		"key=a; [f.txt]1", ERROR_NONE},
	{"--B \t\r\ncontent-disposition:form-data;filename=\"a;b=\\\"c\\\\\";name=file\r\n\r\n1\r\n--B--",
		"[a;b=\"c\\]1", ERROR_NONE},
	{PART("FILE", "1") "--B--", "[]1", ERROR_NONE},
	{"--B\r\nContent-Disposition: form-data; name=\"key\"; filename=\"x\"\r\n\r\na\r\n" PART(
		 "file", "1") "--B--",
		"key=a; []1", ERROR_NONE},
	{PART("key", "a") "--B--", "key=a; ", ERROR_NONE},
	{"--B--", "", ERROR_NONE},

	{"", NULL, ERROR_INVALID},
	{"nothing of the kind", NULL, ERROR_INVALID},
	{FILE_PART("cut"), NULL, ERROR_INVALID},
	{FILE_PART("cut") "--B", NULL, ERROR_INVALID},
	{FILE_PART("cut") "--B-", NULL, ERROR_INVALID},
	{"--Bx\r\n" FILE_PART("1") "--B--", NULL, ERROR_INVALID},
	{"--B\r\nContent-Disposition: form-data\r\n\r\n1\r\n--B--", NULL, ERROR_INVALID},
	{"--B\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--B--", NULL,
		ERROR_INVALID},
	{"--B\r\nContent-Type: text/plain\r\n\r\n1\r\n--B--", NULL, ERROR_INVALID},
	{"--B\r\nno header\r\n\r\n1\r\n--B--", NULL, ERROR_INVALID},
	{"--B\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--", NULL, ERROR_INVALID},
	{FILE_PART("1") FILE_PART("2") "--B--", NULL, ERROR_INVALID_REQUEST},
};

START_TEST(forms_cut_anywhere)
{
	for (size_t cut = 0; cut <= strlen(forms[_i].body); cut++) {
		struct reader reader;
		struct error err = {0};
		const int outcome = read_split(
			&reader, span_text(forms[_i].body), cut, (unsigned)(cut % 3), &err);
		ck_assert_msg(
			err.kind == forms[_i].error && (outcome == 0) == (err.kind == ERROR_NONE),
			"cut at %zu: %s %s", cut, error_kind_name(err.kind), err.text);
		if (outcome == 0)
			ck_assert_str_eq(buffer_text(&reader.notes), forms[_i].notes);
		buffer_release(&reader.notes);
	}
}
END_TEST

START_TEST(fields_are_bounded_together)
{
	struct buffer body;
	buffer_init(&body, 1 << 20);
	for (int i = 0; i < 60; i++)
		buffer_add_text(&body,
			PART("name",
				"................................................................................................................"
				"................................................................................................................"
				"................................................................................................................"
				"................................................................................................................"));
	struct reader reader;
	struct error err = {0};
	ck_assert_int_eq(read_split(&reader, buffer_span(&body), 100, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_release(&reader.notes);
	buffer_release(&body);
}
END_TEST

/* A parameter takes no more memory than it needs, so lines full of them fit into a small arena. */
START_TEST(many_parameters_take_little_memory)
{
	struct buffer body;
	struct reader reader;
	struct error err = {0};
	buffer_init(&body, 1 << 20);
	for (int part = 0; part < 4; part++) {
		buffer_add_text(&body, "--B\r\nContent-Disposition: form-data; ");
		for (int i = 0; i < 800; i++)
			buffer_add_text(&body, "a=\"\";");
		buffer_add_text(&body, "name=\"k\"\r\n\r\nv\r\n");
	}
	buffer_add_text(&body, "--B--");
	ck_assert_int_eq(read_split(&reader, buffer_span(&body), 150, 0, &err), 0);
	ck_assert_str_eq(buffer_text(&reader.notes), "k=v; k=v; k=v; k=v; ");
	buffer_release(&reader.notes);
	buffer_release(&body);
}
END_TEST

START_TEST(a_large_file_passes)
{
	struct buffer body;
	struct reader reader;
	struct error err = {0};
	buffer_init(&body, 1 << 20);
	buffer_add_text(&body, "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n");
	for (int i = 0; i < 300000; i++)
		buffer_add_byte(&body, (uint8_t)(i % 251));
	buffer_add_text(&body, "\r\n--B--");
	ck_assert_int_eq(read_split(&reader, buffer_span(&body), 150000, 1, &err), 0);
	ck_assert_uint_eq(reader.notes.len, 300002);
	for (int i = 0; i < 300000; i++)
		if (reader.notes.data[i + 2] != (uint8_t)(i % 251))
			ck_abort_msg("byte %d", i);
	buffer_release(&reader.notes);
	buffer_release(&body);
}
END_TEST

static const struct {
	const char *type;
	bool is_form;
	const char *boundary;
} types[] = {
	{"multipart/form-data; boundary=abc", true, "abc"},
	{"Multipart/Form-Data;BOUNDARY=\"a b\"; x=y", true, "a b"},
	{"multipart/form-data; charset=utf-8; boundary=----WebKitFormBoundary7MA4", true,
		"----WebKitFormBoundary7MA4"},
	{"multipart/form-data", true, NULL},
	{"multipart/form-data; boundary=", true, NULL},
	{"multipart/form-data; boundary=\"a\rb\"", true, NULL},
	{"multipart/form-data; boundary=01234567890123456789012345678901234567890123456789012345678901234567890",
		true, NULL},
	{"multipart/mixed; boundary=abc", false, "abc"},
	{"application/x-www-form-urlencoded", false, NULL},
	{"", false, NULL},
};

START_TEST(boundaries)
{
	struct arena *const arena = arena_new(100000);
	struct span boundary;
	ck_assert_int_eq(form_data_is_form(span_text(types[_i].type)), types[_i].is_form);
	ck_assert_int_eq(form_data_boundary(span_text(types[_i].type), arena, &boundary),
		types[_i].boundary != NULL);
	ck_assert(types[_i].boundary == NULL || span_equal_text(boundary, types[_i].boundary));
	arena_free(arena);
}
END_TEST

Suite *test_s3_form_data_suite(void);

Suite *test_s3_form_data_suite(void)
{
	Suite *const suite = suite_create("s3_form_data");
	TCase *const tcase = tcase_create("s3_form_data");
	tcase_add_loop_test(tcase, forms_cut_anywhere, 0, sizeof(forms) / sizeof(forms[0]));
	tcase_add_test(tcase, fields_are_bounded_together);
	tcase_add_test(tcase, many_parameters_take_little_memory);
	tcase_add_test(tcase, a_large_file_passes);
	tcase_add_loop_test(tcase, boundaries, 0, sizeof(types) / sizeof(types[0]));
	suite_add_tcase(suite, tcase);
	return suite;
}
