#include "server/setting.h"

const struct setting settings[] = {
#define SETTING(name, TYPE, standard, least, most, unit, help)                                     \
	{#name, SETTING_##TYPE, offsetof(struct configuration, name), standard, least, most, unit, \
		help},
#include "server/configuration.def"
#undef SETTING
};

const size_t setting_count = sizeof(settings) / sizeof(settings[0]);

void setting_print_flag(const struct setting *setting, struct buffer *out)
{
	buffer_add_text(out, "--");
	for (const char *letter = setting->name; *letter != '\0'; letter++)
		buffer_add_byte(out, *letter == '_' ? '-' : (uint8_t)*letter);
}

void setting_print_upper(const char *text, struct buffer *out)
{
	for (; *text != '\0'; text++)
		buffer_add_byte(out,
			*text >= 'a' && *text <= 'z' ? (uint8_t)(*text - 'a' + 'A')
						     : (uint8_t)*text);
}
