/* The fields of an upload form. A form has fields with the names that a PUT has as headers, so they
 * can take the place of the request's headers. */
#ifndef API_S3_POST_POST_FORM_H
#define API_S3_POST_POST_FORM_H

#include "api/exchange/exchange.h"

enum { POST_FORM_FIELDS_MAX = 256 };

struct post_form {
	struct post_field {
		struct span name; /* as sent */
		struct span value;
	} fields[POST_FORM_FIELDS_MAX];
	size_t count;
};

/* Adds a field; name and value are copied into the arena. invalid when the form has a field of that
 * name already, in any case, or too many fields; no_memory. */
int post_form_add(struct post_form *form, struct arena *arena, struct span name, struct span value,
	struct error *err);
/* The value of a field, by its name in any case; false when absent. */
bool post_form_find(const struct post_form *form, const char *name, struct span *out);
struct post_field *post_form_field(struct post_form *form, const char *name); /* NULL when absent */

/* Makes the form's fields the headers of the exchange until post_form_hide, which needs the result.
 * x-amz-acl is the field "acl". */
const struct exchange_ops *post_form_show(struct exchange *exchange, const struct post_form *form);
void post_form_hide(struct exchange *exchange, const struct exchange_ops *ops);

#endif
