#include "client/commands/file_word.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool file_word_is_path(const char *word)
{
	return word[0] == '/' || strcmp(word, ".") == 0 || strcmp(word, "..") == 0 ||
		strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0;
}

bool file_word_is_stdin(const char *word)
{
	return strcmp(word, "-") == 0;
}

bool file_word_is_no_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 ? !S_ISDIR(facts.st_mode) : errno == ENOTDIR;
}
