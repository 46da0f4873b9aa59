#include "client/commands/file_word.h"

#include <string.h>

bool file_word_is_path(const char *word)
{
	return word[0] == '/' || strcmp(word, ".") == 0 || strcmp(word, "..") == 0 ||
		strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0;
}

bool file_word_is_stdin(const char *word)
{
	return strcmp(word, "-") == 0;
}
