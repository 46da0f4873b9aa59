/* Whether a word of the command line names a file or something in a bucket. For that only the
 * spelling decides, never what happens to be on the disk. */
#ifndef CLIENT_COMMANDS_FILE_WORD_H
#define CLIENT_COMMANDS_FILE_WORD_H

#include <stdbool.h>

bool file_word_is_path(const char *word);  /* begins with /, ./ or ../, or is . or .. */
bool file_word_is_stdin(const char *word); /* "-": stdin or stdout */
/* Whether there is something at this path that is not a folder, or nothing can be there because a
 * folder of the path is a file. */
bool file_word_is_no_folder(const char *path);

#endif
