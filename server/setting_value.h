/* The value of one setting in struct configuration: read from a text, and released. One thread. */
#ifndef SERVER_SETTING_VALUE_H
#define SERVER_SETTING_VALUE_H

#include "server/setting.h"

/* Reads `value` into the setting's field, in place of the value there; a list gets further items.
 * Fails with invalid; the message begins with `from`, the place of the value, and says which values
 * there may be. */
int setting_value_set(const struct setting *setting, void *field, const char *value,
	const char *from, struct error *err);
/* Frees a text or a list, and leaves the field empty. */
void setting_value_release(const struct setting *setting, void *field);

#endif
