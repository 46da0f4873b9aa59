/* The fields of an upload form as the request's second set of headers: what PUT says in headers, a
 * form says in fields of the same names. */
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

/* Copies into the arena. invalid: the name was there already (in any case), or there are too
 * many. */
int post_form_add(struct post_form *form, struct arena *arena, struct span name, struct span value,
	struct error *err);
/* By name in any case: false when absent. */
bool post_form_find(const struct post_form *form, const char *name, struct span *out);
struct post_field *post_form_field(struct post_form *form, const char *name); /* NULL when absent */

/* Until post_form_hide the exchange's headers are the form's fields; x-amz-acl is the field "acl".
 * Gives what hide needs. */
const struct exchange_ops *post_form_show(struct exchange *exchange, const struct post_form *form);
void post_form_hide(struct exchange *exchange, const struct exchange_ops *ops);

#endif
