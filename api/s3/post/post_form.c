#include "api/s3/post/post_form.h"

struct shown { /* exchange_ops with a form; exchange->ops points at the first member */
	struct exchange_ops ops;
	const struct post_form *form;
};

static struct span post_form_header(struct exchange *exchange, const char *name);
static void post_form_each_header(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker);

bool post_form_find(const struct post_form *form, const char *name, struct span *out)
{
	for (size_t i = 0; i < form->count; i++)
		if (span_equal_nocase(form->fields[i].name, name)) {
			*out = form->fields[i].value;
			return true;
		}
	return false;
}

struct post_field *post_form_field(struct post_form *form, const char *name)
{
	for (size_t i = 0; i < form->count; i++)
		if (span_equal_nocase(form->fields[i].name, name))
			return &form->fields[i];
	return NULL;
}

int post_form_add(struct post_form *form, struct arena *arena, struct span name, struct span value,
	struct error *err)
{
	struct span before;
	ASSERT(form->count <= POST_FORM_FIELDS_MAX);
	const char *const text = arena_text(arena, name);
	const struct span copy = arena_copy(arena, value);
	if (text == NULL || copy.data == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The form does not fit the memory of a request.");
	if (form->count == POST_FORM_FIELDS_MAX)
		return error_set(
			err, ERROR_INVALID, "The form has over %d fields.", POST_FORM_FIELDS_MAX);
	if (post_form_find(form, text, &before))
		return error_set(err, ERROR_INVALID, "The form has the field '%.60s' twice.", text);
	form->fields[form->count++] = (struct post_field){span_of(text, name.len), copy};
	return 0;
}

const struct exchange_ops *post_form_show(struct exchange *exchange, const struct post_form *form)
{
	const struct exchange_ops *const before = exchange->ops;
	struct shown *const shown = arena_take(exchange->arena, sizeof(*shown));
	ASSERT(shown != NULL); /* fields are capped far below the memory of a request */
	ASSERT(before->header != post_form_header); /* not shown already */
	*shown = (struct shown){{post_form_header, post_form_each_header, before->wake, before->cut,
					before->client},
		form};
	exchange->ops = &shown->ops;
	return before;
}

void post_form_hide(struct exchange *exchange, const struct exchange_ops *ops)
{
	ASSERT(exchange->ops->header == post_form_header && ops != NULL);
	exchange->ops = ops;
}

static struct span post_form_header(struct exchange *exchange, const char *name)
{
	const struct shown *const shown = (const struct shown *)exchange->ops;
	struct span value = {NULL, 0};
	post_form_find(
		shown->form, span_equal_text(span_text(name), "x-amz-acl") ? "acl" : name, &value);
	return value;
}

static void post_form_each_header(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker)
{
	const struct shown *const shown = (const struct shown *)exchange->ops;
	for (size_t i = 0; i < shown->form->count; i++)
		take(taker, shown->form->fields[i].name, shown->form->fields[i].value);
}
